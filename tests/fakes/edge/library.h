// library.h: the fake NVML library over a single scenario, for its tests: rendered, loaded, calls found by name.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "tests/fakes/edge/nvml/abi.h"

namespace yoke::fake_nvml {

struct Handle;

// A machine: SCENARIO of scenarios/, or the path of a file. The folder goes with it.
class Machine {
public:
    enum Library { kWithLibrary, kWithoutLibrary };

    explicit Machine(const std::string &scenario, Library wanted = kWithLibrary)
    {
        std::string made = (std::filesystem::temp_directory_path() / "fake-edge-XXXXXX").string();
        if (!mkdtemp(made.data())) throw std::runtime_error("no temporary folder");
        folder = made;
        const std::string command = std::string(PYTHON) + " -B " RENDER " '" + scenario + "' '" +
                                    made + "' --nvml " LIBRARY " > '" + made + "/log' 2>&1";
        if (std::system(command.c_str())) throw std::runtime_error("render.py: " + read("log"));
        setenv("YOKE_FAKE_SCENARIO", (folder / "scenario.json").c_str(), 1);
        setenv("FAKE_NVML_CALLS", (folder / "calls").c_str(), 1);
        if (wanted == kWithoutLibrary) return;
        library = dlopen((folder / "lib/libnvidia-ml.so.1").c_str(), RTLD_NOW | RTLD_LOCAL);
        if (!library) throw std::runtime_error(dlerror());
    }
    ~Machine()
    {
        while (started-- > 0) call("nvmlShutdown");
        unsetenv("YOKE_FAKE_SCENARIO");
        std::filesystem::remove_all(folder);
    }
    Machine(const Machine &) = delete;
    Machine &operator=(const Machine &) = delete;

    std::string read(const std::string &file) const
    {
        std::ifstream stream(folder / file);
        return (std::stringstream() << stream.rdbuf()).str();
    }
    void *find(const std::string &name) const { return dlsym(library, name.c_str()); }

    // Does a call by name; arguments must have the types of NVML's call.
    template <class... Arguments>
    int call(const std::string &name, Arguments... arguments) const
    {
        auto *const found = reinterpret_cast<int (*)(Arguments...)>(find(name));
        if (!found) throw std::runtime_error("the fake library has no " + name);
        return found(arguments...);
    }
    int start()
    {
        const int code = call("nvmlInit_v2");
        started += code == 0;
        return code;
    }
    Handle *device(uint index) const
    {
        Handle *found = nullptr;
        EXPECT_EQ(call("nvmlDeviceGetHandleByIndex_v2", index, &found), 0);
        return found;
    }
    // Returns a card's number from a call.
    template <class Number = uint>
    Number number(const std::string &name, Handle *of) const
    {
        Number told{};
        EXPECT_EQ(call(name, of, &told), 0) << name;
        return told;
    }
    std::string text(const std::string &name, Handle *of) const
    {
        char told[96] = "";
        EXPECT_EQ(call(name, of, static_cast<char *>(told), 96u), 0) << name;
        return told;
    }
    // Returns the first and last byte of the UUID of a card: "8fa1".
    std::string uuid_ends(int card) const
    {
        const std::string whole = read("scenario.json");
        size_t at = 0;
        for (int i = 0; i <= card; ++i) at = whole.find("\"uuid\": \"GPU-", at + 1);
        return whole.substr(at + 13, 2) + whole.substr(at + 13 + 34, 2);
    }
    // Returns the names of calls that were made, without repeats.
    std::set<std::string> called() const
    {
        std::set<std::string> names;
        std::istringstream lines(read("calls"));
        for (std::string line; std::getline(lines, line);)
            names.insert(line.substr(0, line.find(' ')));
        return names;
    }

    std::filesystem::path folder;
    void *library = nullptr;
    int started = 0;
};

// Returns every call in a library's table of names.
inline std::set<std::string> exported(const Machine &machine)
{
    std::ifstream file(LIBRARY, std::ios::binary);
    const std::string code = (std::stringstream() << file.rdbuf()).str();
    std::set<std::string> names;
    const std::string mark("\0nvml", 5);
    for (size_t at = code.find(mark); at != std::string::npos; at = code.find(mark, at + 1)) {
        const std::string name = code.c_str() + at + 1;
        if (machine.find(name)) names.insert(name);
    }
    return names;
}

}  // namespace yoke::fake_nvml
