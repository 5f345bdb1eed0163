// Processes that use a card. The layouts of the lists differ from version to version.
#include <ctime>

#include "tests/fakes/edge/nvml/simple.h"

using namespace yoke::fake_nvml;

namespace {

constexpr const char *kKinds[] = {"compute", "graphics", "mps"};

// Returns processes of a kind. A whole card's list includes the processes of all instances. `kind` 3: all.
std::vector<Json> processes_of(const Gpu &gpu, Handle *device, int kind)
{
    std::vector<Json> found;
    for (const Json &process : gpu.processes(device->instance))
        if (kind == 3 || process.value("kind", "compute") == kKinds[kind]) found.push_back(process);
    return found;
}

uint id_of(const Gpu &gpu, const Json &process, const char *key)
{
    const auto which = process.value("instance", size_t{99});
    return which < gpu.instances().size() ? gpu.instances()[which].value(key, 0u) : kNoInstance;
}

ulonglong memory_of(const Json &process)
{
    return process.contains("memory") ? bytes_of(process["memory"]) : kMemoryNotTold;
}

template <class Layout>
Layout lay_out(const Gpu &gpu, const Json &process);

template <>
ProcessV1 lay_out(const Gpu &, const Json &process)
{
    return {process.value("pid", 0u), memory_of(process)};
}

template <>
ProcessV2 lay_out(const Gpu &gpu, const Json &process)
{
    return {process.value("pid", 0u), memory_of(process), id_of(gpu, process, "gpu_instance"),
            id_of(gpu, process, "compute_instance")};
}

template <class Layout>
int running(const char *call, Handle *device, int kind, uint *count, Layout *out)
{
    return on_any(call, device, {count}, [&](const Scenario &, const Gpu &gpu, const Json *) {
        std::vector<Layout> found;
        for (const Json &process : processes_of(gpu, device, kind))
            found.push_back(lay_out<Layout>(gpu, process));
        return tell_list(found, count, out);
    });
}

uint utilization_of(const Json &process)
{
    return process.value("utilization", 0u);
}

// Microseconds: the last sample is always of now.
ulonglong now_sampled()
{
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    return static_cast<ulonglong>(now.tv_sec) * 1000000 +
           static_cast<ulonglong>(now.tv_nsec) / 1000;
}

}  // namespace

#define YOKE_FAKE_RUNNING(name, kind)                                                             \
    EXPORT int nvmlDeviceGet##name##RunningProcesses(Handle *device, uint *count, ProcessV1 *out) \
    {                                                                                             \
        return running(__func__, device, kind, count, out);                                       \
    }                                                                                             \
    EXPORT int nvmlDeviceGet##name##RunningProcesses_v2(Handle *device, uint *count,              \
                                                        ProcessV2 *out)                           \
    {                                                                                             \
        return running(__func__, device, kind, count, out);                                       \
    }                                                                                             \
    EXPORT int nvmlDeviceGet##name##RunningProcesses_v3(Handle *device, uint *count,              \
                                                        ProcessV2 *out)                           \
    {                                                                                             \
        return running(__func__, device, kind, count, out);                                       \
    }
YOKE_FAKE_RUNNING(Compute, 0)
YOKE_FAKE_RUNNING(Graphics, 1)
YOKE_FAKE_RUNNING(MPSCompute, 2)

EXPORT int nvmlDeviceGetRunningProcessDetailList(Handle *device, ProcessDetailList *out)
{
    return on_any(__func__, device, {out}, [&](const Scenario &all, const Gpu &gpu, const Json *) {
        const uint wanted = version_of<ProcessDetailList>(1);
        if (const Return code =
                check_version(all, "nvmlProcessDetailList_v1_t", out->version, wanted))
            return code;
        if (out->mode > 3) return kInvalidArgument;
        std::vector<ProcessDetail> found;
        for (const Json &process : processes_of(gpu, device, static_cast<int>(out->mode))) {
            const auto plain = lay_out<ProcessV2>(gpu, process);
            found.push_back(
                {plain.pid, plain.memory, plain.gpu_instance, plain.compute_instance, 0});
        }
        return tell_list(found, &out->count, out->processes);
    });
}

// Samples since a time; without any, NOT_FOUND.
EXPORT int nvmlDeviceGetProcessUtilization(Handle *device, ProcessSample *out, uint *count,
                                           ulonglong since)
{
    return on_gpu(__func__, device, {count}, [&](const Scenario &, const Gpu &gpu) {
        if (gpu.flag("mig")) return kNotSupported;
        const ulonglong when = now_sampled();
        std::vector<ProcessSample> found;
        for (const Json &process : gpu.processes(-1))
            if (since < when)
                found.push_back({process.value("pid", 0u), when, utilization_of(process),
                                 utilization_of(process) / 2, 0, 0});
        if (found.empty()) {
            *count = 0;
            return kNotFound;
        }
        return tell_list(found, count, out);
    });
}

EXPORT int nvmlDeviceGetProcessesUtilizationInfo(Handle *device, ProcessesUtilization *out)
{
    return on_gpu(__func__, device, {out}, [&](const Scenario &all, const Gpu &gpu) {
        const uint wanted = version_of<ProcessesUtilization>(1);
        if (const Return code =
                check_version(all, "nvmlProcessesUtilizationInfo_v1_t", out->version, wanted))
            return code;
        const ulonglong when = now_sampled();
        std::vector<ProcessUtilization> found;
        for (const Json &process : gpu.processes(-1))
            if (out->last_seen < when)
                found.push_back({when, process.value("pid", 0u), utilization_of(process),
                                 utilization_of(process) / 2, 0, 0, 0, 0});
        return tell_list(found, &out->count, out->processes);
    });
}
