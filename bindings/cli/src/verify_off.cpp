// yoke doctor --verify-off: maps, memory and threads of this process at three moments: before Yoke is used, with CUDA
// disabled and the CPU at work, and after CUDA was enabled and queried. CUDA's cost is the step from the second to
// the third moment. CUDA is off if the second moment has no map of CUDA.
#include "bindings/cli/src/json.h"
#include "bindings/cli/src/text.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

namespace yoke::cli {

namespace {

struct State {
    std::set<std::string> libraries;  // libraries around CUDA
    int64_t resident = 0;             // bytes
    int threads = 0;
};

bool is_of_cuda(const std::string &path)
{
    const std::string name = path.substr(path.rfind('/') + 1);
    for (const char *begin :
         {"libyoke_cuda", "libcuda", "libcublas", "libcudnn", "libnccl", "libnvrtc", "nvidia"})
        if (name.rfind(begin, 0) == 0) return true;
    return false;
}

// Opens a file of this process. An unreadable file proves nothing, so the command ends.
std::ifstream opened(const char *path)
{
    errno = 0;
    std::ifstream file(path);
    if (!file || file.peek() == std::ifstream::traits_type::eof())
        throw std::runtime_error(
            std::string("doctor: --verify-off must read ") + path +
            " of this process, but cannot: " + (errno ? strerror(errno) : "the file is empty") +
            "; mount /proc and run the command again");
    return file;
}

std::set<std::string> mapped_libraries()
{
    std::set<std::string> libraries;
    std::string line;
    for (std::ifstream maps = opened("/proc/self/maps"); std::getline(maps, line);) {
        const size_t slash = line.find('/');
        if (slash != std::string::npos && is_of_cuda(line.substr(slash)))
            libraries.insert(line.substr(slash));
    }
    return libraries;
}

State look()
{
    State state;
    state.libraries = mapped_libraries();
    std::string line, word;
    for (std::ifstream status = opened("/proc/self/status"); std::getline(status, line);) {
        std::istringstream words(line);
        words >> word;
        int64_t value = 0;
        words >> value;
        if (word == "VmRSS:") state.resident = value << 10;
        if (word == "Threads:") state.threads = static_cast<int>(value);
    }
    return state;
}

// Runs real work on the CPU, because the disabled kind must not come in by any call that a program uses. Raises if
// the result is wrong.
void work_on_cpu()
{
    const int64_t shape[] = {64, 64};
    const Device host = make<Device>(yoke_device_open, "auto");
    const Tensor x = make<Tensor>(yoke_ones, shape, 2, YOKE_F32, host.get());
    const Tensor y = make<Tensor>(yoke_matmul, x.get(), x.get());
    double corner = 0;
    const Tensor sum = make<Tensor>(yoke_amax, y.get(), nullptr, 0, 0);
    check(yoke_tensor_item_f64(sum.get(), &corner));
    if (corner != 64) throw std::runtime_error("a product of ones has a wrong result");
}

Json state_json(const char *when, const State &state)
{
    return {{"when", when},
            {"cuda_libraries", state.libraries},
            {"resident", state.resident},
            {"threads", state.threads}};
}

}  // namespace

int verify_off(bool json)
{
    const State before = look();
    check(yoke_disable("cuda"));
    work_on_cpu();
    const State off = look();
    check(yoke_enable("cuda"));
    const std::string missing = yoke_why_unavailable("cuda");  // loads CUDA
    const State on = look();
    const bool clean = off.libraries.empty();
    if (json) {
        print_json({{"off", clean},
                    {"why_unavailable", missing},
                    {"states",
                     {state_json("before", before), state_json("disabled, CPU at work", off),
                      state_json("enabled and queried", on)}}});
        return clean ? 0 : 1;
    }
    Table table({{"WHEN"}, {"CUDA LIBRARIES", true}, {"RESIDENT", true}, {"THREADS", true}});
    const auto add = [&](const char *when, const State &state) {
        table.add({when, std::to_string(state.libraries.size()), mebibytes(state.resident),
                   std::to_string(state.threads)});
    };
    add("before", before);
    add("disabled, CPU at work", off);
    add("enabled and queried", on);
    fputs(table.text(terminal_width()).c_str(), stdout);
    for (const std::string &library : off.libraries)
        printf("  mapped while disabled: %s\n", library.c_str());
    for (const std::string &library : on.libraries)
        printf("  mapped when enabled: %s\n", library.c_str());
    puts(clean ? "CUDA is off while disabled: none of its libraries is mapped."
               : "CUDA is not off while disabled: the libraries above are mapped.");
    if (!missing.empty()) printf("(When enabled: %s)\n", missing.c_str());
    return clean ? 0 : 1;
}

}  // namespace yoke::cli
