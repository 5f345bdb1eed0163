#include "core/machine/build.h"

#include "core/backend/registry.h"
#include "core/base/config.h"
#include "core/base/error.h"
#include "core/base/library.h"
#include "core/base/text.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

namespace yoke {

namespace {

// First driver releases for a major version of CUDA: for its libraries, and for the module, whose kernels have longer
// arguments than CUDA 12.0 takes.
struct Floor {
    int major;
    const char *libraries;
    const char *module;
};
constexpr Floor kFloors[] = {{11, "450.80.02", ""}, {12, "525", kOldestDriver}, {13, "580", "580"}};

const Floor *floor_of(int cuda_major)
{
    for (const Floor &floor : kFloors)
        if (floor.major == cuda_major) return &floor;
    return nullptr;
}

// Returns how an architecture serves a capability. "90" has both machine code and PTX, "90-real" only machine code,
// "90-virtual" only PTX; "90a" serves its own capability alone.
Served served_by(const std::string &arch, int capability)
{
    const int built = atoi(arch.c_str());
    const std::string rest = arch.substr(std::to_string(built).size());
    const bool exact = rest.compare(0, 1, "a") == 0, family = rest.compare(0, 1, "f") == 0;
    if (exact) return built == capability ? Served::kBinary : Served::kNo;
    if (built > capability) return Served::kNo;
    if (rest.find("virtual") == rest.npos && built / 10 == capability / 10) return Served::kBinary;
    return rest.find("real") == rest.npos && !family ? Served::kCompiled : Served::kNo;
}

std::string text_behind(const std::string &path, std::string_view marker)
{
    std::ifstream file(path, std::ios::binary);
    const std::string all{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    const size_t at = all.find(marker);
    if (at == all.npos) return "";
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(at + marker.size());
    return {begin, std::find_if(begin, all.end(), [](unsigned char c) { return c < ' '; })};
}

constexpr char kHere = 0;

// Returns the build. For the machine's own root, this is the module beside this library, which does not change while
// a process runs. For another root, this is the recorded build.
Build build_of(const Root &root)
{
    if (!root.prefix.empty())
        return build_of_mark(text_behind(root.path("/yoke/libyoke_cuda.so"), kBuildMark));
    static const Build own =
        build_of_mark(text_behind(folder_of_code(&kHere) + "/libyoke_cuda.so", kBuildMark));
    return own;
}

void add_folders(const char *list, std::vector<std::string> &folders)
{
    const std::string text = list ? list : "";
    for (size_t at = 0, end = 0; at < text.size(); at = end + 1) {
        end = std::min(text.find(':', at), text.size());
        if (end > at) folders.push_back(text.substr(at, end - at));
    }
}

void add_lines(const std::string &text, std::vector<std::string> &folders)
{
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
        if (line.rfind('/', 0) == 0) folders.push_back(trimmed(line));
}

// Returns the path of the driver's CUDA library, "" if missing. Looks in the same places as the module, without
// loading the library.
std::string driver_library(const Root &root)
{
    constexpr const char *kName = "libcuda.so.1";
    std::vector<std::string> folders;
    add_folders(peek_config("YOKE_CUDA_LIB_PATH"), folders);
    add_folders(getenv("LD_LIBRARY_PATH"), folders);
    for (const std::string &file : root.folder("/etc/ld.so.conf.d").names())
        add_lines(root.text("/etc/ld.so.conf.d/" + file), folders);
    for (const char *usual :
         {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib",
          "/lib/x86_64-linux-gnu", "/usr/lib/wsl/lib", "/usr/local/nvidia/lib64"})
        folders.push_back(usual);
    for (const std::string &folder : folders)
        if (root.has(folder + "/" + kName)) return folder + "/" + kName;
    // The loader may have indexed or loaded a library from any folder.
    const bool indexed = text_behind(root.path("/etc/ld.so.cache"), kName) != "" ||
                         text_behind(root.path("/proc/self/maps"), "/libcuda.so") != "";
    return indexed ? kName : "";
}

}  // namespace

Build build_of_mark(const std::string &mark)
{
    Build build;
    const size_t archs = mark.find(" archs ");
    if (mark.compare(0, 5, "cuda ") != 0 || archs == mark.npos) return build;
    build.present = true;
    build.cuda = atoi(mark.c_str() + 5);
    build.archs = split_list(mark.substr(archs + 7));
    return build;
}

Served served(const Build &build, int capability)
{
    Served best = Served::kNo;
    for (const std::string &arch : build.archs) {
        const Served by = served_by(arch, capability);
        if (by == Served::kBinary) return by;
        if (by == Served::kCompiled) best = by;
    }
    return best;
}

// Returns whether the capability is of a Jetson's GPU. Code for other GPUs of the same major capability does not run
// there.
static bool is_of_jetson(int capability)
{
    constexpr int kJetsons[] = {53, 62, 72, 87, 110};
    return std::find(std::begin(kJetsons), std::end(kJetsons), capability) != std::end(kJetsons);
}

Served served(const Build &build, const yoke_card_info &info)
{
    const int capability = 10 * info.cc_major + info.cc_minor;
    if (!is_of_jetson(capability)) return served(build, capability);
    Build able = build;
    std::erase_if(able.archs, [&](const std::string &arch) {
        return atoi(arch.c_str()) != capability && served_by(arch, 1000) != Served::kCompiled;
    });
    if (served(able, capability) == Served::kNo) return Served::kNo;
    const bool exact = std::any_of(able.archs.begin(), able.archs.end(), [&](const auto &arch) {
        return atoi(arch.c_str()) == capability && served_by(arch, capability) == Served::kBinary;
    });
    return exact ? Served::kBinary : Served::kCompiled;
}

const char *first_driver_of_libraries(int cuda_major)
{
    const Floor *floor = floor_of(cuda_major);
    return floor ? floor->libraries : "";
}

const char *first_driver_of_module(int cuda_major)
{
    const Floor *floor = floor_of(cuda_major);
    return floor ? floor->module : "";
}

int newest_cuda_of(const std::string &driver)
{
    int newest = 0;
    for (const Floor &floor : kFloors)
        if (*floor.module && compare_versions(driver, floor.module) >= 0) newest = floor.major;
    return newest;
}

std::string rebuild_for(const Build &build, int capability)
{
    if (build.cuda >= 13000 && capability < 75)
        return format(
            "install a Yoke that was built with CUDA 12 and -DYOKE_CUDA_ARCHS=%d: CUDA 13 does not compile for less than 7.5",
            capability);
    std::string archs;
    for (const std::string &arch : build.archs) archs += arch + ";";
    const std::string note = capability >= 100 && build.present && build.cuda < 12080
                                 ? " # needs a toolkit of CUDA 12.8 or newer"
                                 : "";
    return format(
        "cmake -S . -B out -DYOKE_CUDA=ON -DYOKE_CUDA_ARCHS=\"%s%d\" # in Yoke's source%s\n"
        "cmake --build out && sudo cmake --install out",
        archs.c_str(), capability, note.c_str());
}

int compare_versions(const std::string &a, const std::string &b)
{
    const char *left = a.c_str(), *right = b.c_str();
    while (*left || *right) {
        char *left_end = nullptr, *right_end = nullptr;
        const long x = strtol(left, &left_end, 10), y = strtol(right, &right_end, 10);
        if (x != y) return x < y ? -1 : 1;
        left = *left_end ? left_end + 1 : left_end;
        right = *right_end ? right_end + 1 : right_end;
    }
    return 0;
}

int cuda_version_of(const std::string &text)
{
    const size_t dot = text.find('.');
    const int minor = dot == text.npos ? 0 : atoi(text.c_str() + dot + 1);
    return atoi(text.c_str()) * 1000 + minor * 10;
}

Rejection reject_driver(const Root &root, const Machine &machine)
{
    const Build build = build_of(root);
    const std::string &driver = machine.driver;
    if (!build.present) {
        if (!driver.empty() && compare_versions(driver, kOldestDriver) < 0)
            return {Reason::kOldDriver,
                    format("the driver is %s, but Yoke needs %s or newer: install a newer driver",
                           driver.c_str(), kOldestDriver)};
        if (!root.prefix.empty()) return {};  // the recording names no build
        return {
            Reason::kNoModule,
            "this installation of Yoke has no CUDA module (libyoke_cuda.so): build or install Yoke with it"};
    }
    const std::string library = driver_library(root);
    if (library.empty())
        return {
            Reason::kNoCudaLibrary,
            "there is no libcuda.so.1, the driver's CUDA library: install it, or in a container ask for NVIDIA_DRIVER_CAPABILITIES=compute,utility"};
    const char *floor = first_driver_of_module(build.major());
    // A compatibility library takes the driver's place.
    const bool is_old = !driver.empty() && *floor && compare_versions(driver, floor) < 0 &&
                        library.find("/compat") == library.npos;
    if (!is_old) return {};
    return {
        Reason::kOldDriver,
        format(
            "the driver is %s, but this build's CUDA %d needs %s or newer: install a newer driver, or a Yoke that was built for this driver",
            driver.c_str(), build.major(), floor)};
}

bool serves(const Root &root, const yoke_card_info &info)
{
    return info.cc_major > 0 && served(build_of(root), info) != Served::kNo;
}

Rejection reject_card(const Root &root, const Machine &machine, const yoke_card_info &info)
{
    const Build build = build_of(root);
    if (!build.present || info.cc_major < 0) return {};
    const int driver = machine.cuda_driver;
    const Served by = served(build, info);
    const bool cannot_compile = by == Served::kCompiled && driver > 0 && driver < build.cuda;
    if (by != Served::kNo && !cannot_compile) return {};
    return {
        cannot_compile ? Reason::kCannotCompile : Reason::kNoCode,
        format(
            "the compute capability is %d.%d, but this build has code for %s%s; yoke doctor names a build that serves this GPU",
            info.cc_major, info.cc_minor, join(build.archs).c_str(),
            cannot_compile ? " alone, and this driver is too old to compile that code" : "")};
}

}  // namespace yoke
