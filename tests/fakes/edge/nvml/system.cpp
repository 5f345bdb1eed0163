// Start, end, the way into every call, and NVML's facts about the machine.
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <thread>

#include "tests/fakes/edge/nvml/fake.h"

namespace yoke::fake_nvml {

static std::atomic<int> g_users{0};
static std::atomic<long> g_calls[kMaxGpus];

bool is_initialized()
{
    return g_users > 0;
}

void forget_calls()
{
    for (auto &calls : g_calls) calls = 0;
}

static void note(const char *call, const Scenario &scenario, int gpu)
{
    const char *path = getenv("FAKE_NVML_CALLS");
    if (!path) return;
    std::string line = call;
    if (gpu >= 0) line += " " + scenario.gpus[static_cast<size_t>(gpu)].text("pci");
    line += "\n";
    const int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0) return;
    if (write(file, line.data(), line.size()) < 0) perror(path);
    close(file);
}

static void hang(const char *call, const Scenario &scenario, int gpu)
{
    const Json hang = scenario.nvml().value("hang", Json::object());
    if (hang.value("call", "") != call || hang.value("gpu", gpu) != gpu) return;
    std::this_thread::sleep_for(std::chrono::duration<double>(hang.value("seconds", 0.0)));
}

// Tells whether a card is lost. A lost card stays lost, for all calls.
static Return lost(const Scenario &scenario, int gpu)
{
    const Json lost = scenario.nvml().value("lost", Json::object());
    if (gpu < 0 || lost.value("gpu", -1) != gpu) return kSuccess;
    const long calls = ++g_calls[gpu];
    return calls > lost.value("after_calls", 0l) ? static_cast<Return>(lost.value("code", 15))
                                                 : kSuccess;
}

Return enter(const char *call, const Scenario &scenario, int gpu)
{
    note(call, scenario, gpu);
    hang(call, scenario, gpu);
    const Json errors = scenario.nvml().value("errors", Json::object());
    if (errors.contains(call)) return static_cast<Return>(errors[call].get<int>());
    if (!is_initialized()) return kUninitialized;
    return lost(scenario, gpu);
}

Return enter_card(const char *call, const Scenario &scenario, int gpu)
{
    if (scenario.nvml().value("hang", Json::object()).contains("gpu")) hang(call, scenario, gpu);
    return lost(scenario, gpu);
}

Return look_up(const Scenario &scenario, const Handle *device, bool instances_too)
{
    const Handle *const first = handle_of(0);
    const auto step = reinterpret_cast<uintptr_t>(device) - reinterpret_cast<uintptr_t>(first);
    const bool ours = device >= first && step % sizeof(Handle) == 0 &&
                      step / sizeof(Handle) < size_t{kMaxGpus} * (kMaxInstances + 1);
    if (!ours || static_cast<size_t>(device->gpu) >= scenario.gpus.size()) return kInvalidArgument;
    if (device->instance < 0) return kSuccess;
    const Json &instances = scenario.gpus[static_cast<size_t>(device->gpu)].instances();
    if (static_cast<size_t>(device->instance) >= instances.size()) return kInvalidArgument;
    return instances_too ? kSuccess : kNotSupported;
}

Handle *handle_of(int gpu, int instance)
{
    static Handle *const all = [] {
        auto *const made = new Handle[kMaxGpus * (kMaxInstances + 1)];
        for (int i = 0; i < kMaxGpus * (kMaxInstances + 1); ++i)
            made[i] = {i / (kMaxInstances + 1), i % (kMaxInstances + 1) - 1};
        return made;
    }();
    return all + gpu * (kMaxInstances + 1) + instance + 1;
}

Return check_version(const Scenario &scenario, const char *name, uint given, uint wanted)
{
    for (const Json &refused : scenario.nvml().value("reject_structs", Json::array()))
        if (refused == name) return kArgumentVersionMismatch;
    return given == wanted ? kSuccess : kArgumentVersionMismatch;
}

Return tell_text(const std::string &text, char *out, uint length)
{
    if (text.size() + 1 > length) return kInsufficientSize;
    memcpy(out, text.c_str(), text.size() + 1);
    return kSuccess;
}

// Returns the code for the first user of the library.
static Return start(const Scenario &scenario)
{
    const Json &driver = scenario.driver(), &nvml = scenario.nvml();
    if (nvml.contains("init_error")) return static_cast<Return>(nvml["init_error"].get<int>());
    if (!driver.value("loaded", true)) return kDriverNotLoaded;
    const std::string version = driver.value("version", "");
    return driver.value("module_version", version) == version ? kSuccess : kVersionMismatch;
}

static int initialize(const char *call, uint flags)
{
    const auto now = scenario();
    const Return code = enter(call, *now, -1);
    if (code != kSuccess && code != kUninitialized) return code;
    if (flags & ~7u) return kInvalidArgument;
    if (const Return failed = start(*now)) return failed;
    ++g_users;
    return kSuccess;
}

static int cuda_version(const Scenario &scenario, int *version)
{
    int major = 0, minor = 0;
    const std::string text = scenario.driver().value("cuda", "");
    if (sscanf(text.c_str(), "%d.%d", &major, &minor) != 2) return kNotSupported;
    *version = major * 1000 + minor * 10;
    return kSuccess;
}

}  // namespace yoke::fake_nvml

using namespace yoke::fake_nvml;

EXPORT int nvmlInit_v2()
{
    return initialize(__func__, 0);
}

EXPORT int nvmlInit()
{
    return initialize(__func__, 0);
}

EXPORT int nvmlInitWithFlags(uint flags)
{
    return initialize(__func__, flags);
}

EXPORT int nvmlShutdown()
{
    if (const Return code = enter(__func__, *scenario(), -1)) return code;
    --g_users;
    return kSuccess;
}

EXPORT const char *nvmlErrorString(int code)
{
    static const std::map<int, const char *> kTexts = {
        {kSuccess, "Success"},
        {kUninitialized, "Uninitialized"},
        {kInvalidArgument, "Invalid Argument"},
        {kNotSupported, "Not Supported"},
        {kNoPermission, "Insufficient Permissions"},
        {5, "Already Initialized"},
        {kNotFound, "Not Found"},
        {kInsufficientSize, "Insufficient Size"},
        {8, "Insufficient External Power"},
        {kDriverNotLoaded, "Driver Not Loaded"},
        {kTimeout, "Timeout"},
        {11, "Interrupt Request Issue"},
        {12, "NVML Shared Library Not Found"},
        {13, "Function Not Found"},
        {14, "Corrupted infoROM"},
        {kGpuIsLost, "GPU is lost"},
        {16, "GPU requires reset"},
        {17, "GPU access blocked by the operating system"},
        {kVersionMismatch, "Driver/library version mismatch"},
        {19, "In use by another client"},
        {20, "Insufficient Memory"},
        {21, "No data"},
        {kArgumentVersionMismatch, "Argument version mismatch"},
        {kUnknown, "Unknown Error"}};
    const auto found = kTexts.find(code);
    return found == kTexts.end() ? "Unknown Error" : found->second;
}

EXPORT int nvmlSystemGetDriverVersion(char *version, uint length)
{
    return on_system(__func__, {version}, [&](const Scenario &all) {
        return tell_text(all.driver().value("version", ""), version, length);
    });
}

EXPORT int nvmlSystemGetNVMLVersion(char *version, uint length)
{
    return on_system(__func__, {version}, [&](const Scenario &all) {
        return tell_text(all.nvml().value("version", ""), version, length);
    });
}

EXPORT int nvmlSystemGetCudaDriverVersion(int *version)
{
    return on_system(__func__, {version},
                     [&](const Scenario &all) { return cuda_version(all, version); });
}

EXPORT int nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    return on_system(__func__, {version},
                     [&](const Scenario &all) { return cuda_version(all, version); });
}

EXPORT int nvmlSystemGetDriverBranch(DriverBranch *branch, uint length)
{
    return on_system(__func__, {branch}, [&](const Scenario &all) {
        const uint wanted = version_of<DriverBranch>(1);
        if (const Return code =
                check_version(all, "nvmlSystemDriverBranchInfo_v1_t", branch->version, wanted))
            return code;
        const std::string version = all.driver().value("version", "");
        return tell_text("r" + version.substr(0, version.find('.')) + "_00", branch->branch,
                         std::min(length, 80u));
    });
}

// A process of another PID namespace is not found, as with the true library.
EXPORT int nvmlSystemGetProcessName(uint pid, char *name, uint length)
{
    return on_system(__func__, {name}, [&](const Scenario &all) {
        for (const Gpu &gpu : all.gpus)
            for (const Json &process : gpu.processes(-1))
                if (process.value("pid", 0u) == pid && process.value("visible", true))
                    return tell_text(process.value("name", "python"), name, length);
        return kNotFound;
    });
}

EXPORT int nvmlGetExcludedDeviceCount(uint *count)
{
    return on_system(__func__, {count}, [&](const Scenario &) {
        *count = 0;
        return kSuccess;
    });
}
