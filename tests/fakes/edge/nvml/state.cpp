// How a card is doing: memory, utilization, clocks, power, temperature, fans.
#include <algorithm>

#include "tests/fakes/edge/nvml/simple.h"

using namespace yoke::fake_nvml;

namespace {

MemoryV2 memory_of(const Gpu &gpu, const Json *instance)
{
    MemoryV2 memory{};
    if (instance) {
        memory.total = bytes_of(instance->value("memory", Json(0)));
        memory.used = bytes_of(instance->value("used", Json(0)));
    } else {
        memory.total = gpu.bytes("memory");
        memory.reserved = gpu.bytes("reserved");
        memory.used = gpu.bytes("used");
        if (!memory.used)
            for (const Json &process : gpu.processes(-1))
                memory.used += bytes_of(process.value("memory", Json(0)));
    }
    memory.free = memory.total - std::min(memory.total, memory.reserved + memory.used);
    return memory;
}

// Graphics, SM, memory, video.
Return clock_of(const Gpu &gpu, int type, bool max, uint *out)
{
    if (type < 0 || type > 3) return kInvalidArgument;
    const char *key = type == 2 ? (max ? "memory_clock_max" : "memory_clock")
                                : (max ? "sm_clock_max" : "sm_clock");
    return tell(gpu, key, out, type == 3 ? 0.9 : 1);
}

int reasons(const char *call, Handle *device, ulonglong *out, bool supported)
{
    return on_gpu(call, device, {out}, [&](const Scenario &, const Gpu &gpu) {
        constexpr ulonglong kAll = 0x1ff;
        if (supported) *out = kAll;
        return supported ? kSuccess : tell(gpu, "throttle", out);
    });
}

int engine(const char *call, Handle *device, uint *percent, uint *period)
{
    return on_gpu(call, device, {percent, period}, [&](const Scenario &, const Gpu &gpu) {
        if (gpu.flag("mig")) return kNotSupported;
        *percent = 0;
        *period = 167000;
        return kSuccess;
    });
}

}  // namespace

EXPORT int nvmlDeviceGetMemoryInfo(Handle *device, Memory *out)
{
    return on_any(__func__, device, {out},
                  [&](const Scenario &, const Gpu &gpu, const Json *instance) {
                      if (gpu.flag("unified")) return kNotSupported;
                      const MemoryV2 memory = memory_of(gpu, instance);
                      *out = {memory.total, memory.free, memory.total - memory.free};
                      return kSuccess;
                  });
}

EXPORT int nvmlDeviceGetMemoryInfo_v2(Handle *device, MemoryV2 *out)
{
    return on_any(
        __func__, device, {out}, [&](const Scenario &all, const Gpu &gpu, const Json *instance) {
            const uint wanted = version_of<MemoryV2>(2);
            if (const Return code = check_version(all, "nvmlMemory_v2_t", out->version, wanted))
                return code;
            if (gpu.flag("unified")) return kNotSupported;
            *out = memory_of(gpu, instance);
            out->version = wanted;
            return kSuccess;
        });
}

EXPORT int nvmlDeviceGetBAR1MemoryInfo(Handle *device, Bar1Memory *out)
{
    return on_any(__func__, device, {out}, [&](const Scenario &, const Gpu &gpu, const Json *) {
        const ulonglong total = gpu.bytes("bar1");
        if (!total) return kNotSupported;
        *out = {total, total - (1 << 20), 1 << 20};
        return kSuccess;
    });
}

EXPORT int nvmlDeviceGetConfComputeMemSizeInfo(Handle *device, ConfidentialMemory *out)
{
    return on_gpu(__func__, device, {out}, [&](const Scenario &, const Gpu &gpu) {
        *out = {0, gpu.bytes("memory") >> 10};
        return kSuccess;
    });
}

// A partitioned card reports no utilization, and neither do its instances.
EXPORT int nvmlDeviceGetUtilizationRates(Handle *device, Utilization *out)
{
    return on_gpu(__func__, device, {out}, [&](const Scenario &, const Gpu &gpu) {
        if (gpu.flag("mig")) return kNotSupported;
        const Return code = tell(gpu, "utilization", &out->gpu);
        return code ? code : tell(gpu, "memory_utilization", &out->memory);
    });
}

EXPORT int nvmlDeviceGetEncoderUtilization(Handle *device, uint *percent, uint *period)
{
    return engine(__func__, device, percent, period);
}

EXPORT int nvmlDeviceGetDecoderUtilization(Handle *device, uint *percent, uint *period)
{
    return engine(__func__, device, percent, period);
}

EXPORT int nvmlDeviceGetClockInfo(Handle *device, int type, uint *out)
{
    return on_gpu(__func__, device, {out}, [&](const Scenario &, const Gpu &gpu) {
        return clock_of(gpu, type, false, out);
    });
}

EXPORT int nvmlDeviceGetMaxClockInfo(Handle *device, int type, uint *out)
{
    return on_gpu(__func__, device, {out},
                  [&](const Scenario &, const Gpu &gpu) { return clock_of(gpu, type, true, out); });
}

EXPORT int nvmlDeviceGetClock(Handle *device, int type, int which, uint *out)
{
    return on_gpu(__func__, device, {out}, [&](const Scenario &, const Gpu &gpu) {
        if (which < 0 || which > 3) return kInvalidArgument;
        return clock_of(gpu, type, which != 0, out);
    });
}

EXPORT int nvmlDeviceGetPowerManagementLimitConstraints(Handle *device, uint *least, uint *most)
{
    return on_gpu(__func__, device, {least, most}, [&](const Scenario &, const Gpu &gpu) {
        const Return code = tell(gpu, "power_limit_min", least, 1000);
        return code ? code : tell(gpu, "power_limit_max", most, 1000);
    });
}

EXPORT int nvmlDeviceGetPowerManagementDefaultLimit(Handle *device, uint *out)
{
    return on_gpu(__func__, device, {out}, [&](const Scenario &, const Gpu &gpu) {
        const bool own = gpu.keys.contains("power_limit_default");
        return tell(gpu, own ? "power_limit_default" : "power_limit", out, 1000);
    });
}

EXPORT int nvmlDeviceGetPowerManagementMode(Handle *device, int *on)
{
    return on_gpu(__func__, device, {on}, [&](const Scenario &, const Gpu &gpu) {
        *on = gpu.keys.contains("power_limit");
        return kSuccess;
    });
}

EXPORT int nvmlDeviceGetTemperature(Handle *device, int sensor, uint *out)
{
    return on_gpu(__func__, device, {out}, [&](const Scenario &, const Gpu &gpu) {
        return sensor ? kInvalidArgument : tell(gpu, "temperature", out);
    });
}

EXPORT int nvmlDeviceGetTemperatureV(Handle *device, TemperatureV *out)
{
    return on_gpu(__func__, device, {out}, [&](const Scenario &all, const Gpu &gpu) {
        const uint wanted = version_of<TemperatureV>(1);
        if (const Return code = check_version(all, "nvmlTemperature_v1_t", out->version, wanted))
            return code;
        return out->sensor ? kInvalidArgument : tell(gpu, "temperature", &out->celsius);
    });
}

// 0: shutdown, 1: slowdown, 2: of the memory, 3: of the chip while it works.
EXPORT int nvmlDeviceGetTemperatureThreshold(Handle *device, int which, uint *out)
{
    return on_gpu(__func__, device, {out}, [&](const Scenario &, const Gpu &gpu) {
        if (which < 0 || which > 7) return kInvalidArgument;
        if (which > 3) return kNotSupported;
        return tell(gpu, which == 0 ? "temperature_shutdown" : "temperature_slowdown", out);
    });
}

EXPORT int nvmlDeviceGetMarginTemperature(Handle *device, MarginTemperature *out)
{
    return on_gpu(__func__, device, {out}, [&](const Scenario &all, const Gpu &gpu) {
        const uint wanted = version_of<MarginTemperature>(1);
        if (const Return code =
                check_version(all, "nvmlMarginTemperature_v1_t", out->version, wanted))
            return code;
        const auto now = gpu.number_of("temperature"), most = gpu.number_of("temperature_slowdown");
        if (!now || !most) return kNotSupported;
        out->celsius = static_cast<int>(*most - *now);
        return kSuccess;
    });
}

EXPORT int nvmlDeviceGetFanSpeed_v2(Handle *device, uint fan, uint *out)
{
    return on_gpu(__func__, device, {out}, [&](const Scenario &, const Gpu &gpu) {
        if (gpu.keys.contains("fan") && fan >= gpu.keys.value("fans", 1u)) return kInvalidArgument;
        return tell(gpu, "fan", out);
    });
}

EXPORT int nvmlDeviceGetFanSpeedRPM(Handle *device, FanSpeedInfo *out)
{
    return on_gpu(__func__, device, {out}, [&](const Scenario &all, const Gpu &gpu) {
        const uint wanted = version_of<FanSpeedInfo>(1);
        if (const Return code = check_version(all, "nvmlFanSpeedInfo_v1_t", out->version, wanted))
            return code;
        if (gpu.keys.contains("fan") && out->fan >= gpu.keys.value("fans", 1u))
            return kInvalidArgument;
        return tell(gpu, "fan", &out->rpm, 36);  // at 100 %: 3600
    });
}

EXPORT int nvmlDeviceGetNumFans(Handle *device, uint *out)
{
    return on_gpu(__func__, device, {out}, [&](const Scenario &, const Gpu &gpu) {
        *out = gpu.keys.value("fans", 0u);
        return kSuccess;
    });
}

EXPORT int nvmlDeviceGetCurrentClocksEventReasons(Handle *device, ulonglong *out)
{
    return reasons(__func__, device, out, false);
}

EXPORT int nvmlDeviceGetCurrentClocksThrottleReasons(Handle *device, ulonglong *out)
{
    return reasons(__func__, device, out, false);
}

EXPORT int nvmlDeviceGetSupportedClocksEventReasons(Handle *device, ulonglong *out)
{
    return reasons(__func__, device, out, true);
}

EXPORT int nvmlDeviceGetSupportedClocksThrottleReasons(Handle *device, ulonglong *out)
{
    return reasons(__func__, device, out, true);
}

YOKE_FAKE_NUMBER(nvmlDeviceGetPowerUsage, uint, "power", 1000)
YOKE_FAKE_NUMBER(nvmlDeviceGetPowerManagementLimit, uint, "power_limit", 1000)
YOKE_FAKE_NUMBER(nvmlDeviceGetEnforcedPowerLimit, uint, "power_limit", 1000)
YOKE_FAKE_NUMBER(nvmlDeviceGetTotalEnergyConsumption, ulonglong, "energy", 1000)
YOKE_FAKE_NUMBER(nvmlDeviceGetPerformanceState, uint, "performance_state", 1)
YOKE_FAKE_NUMBER(nvmlDeviceGetPowerState, uint, "performance_state", 1)
YOKE_FAKE_NUMBER(nvmlDeviceGetFanSpeed, uint, "fan", 1)
