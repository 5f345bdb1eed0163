// Errors of memory, and the driver's remedies.
#include "tests/fakes/edge/nvml/simple.h"

using namespace yoke::fake_nvml;

namespace {

// 0: corrected, 1: uncorrected; counted since the driver was loaded (0) or ever (1).
Return errors_of(const Gpu &gpu, int kind, int counter, ulonglong *out)
{
    if (kind < 0 || kind > 1 || counter < 0 || counter > 1) return kInvalidArgument;
    if (!gpu.flag("ecc")) return kNotSupported;
    *out = gpu.keys.value(kind ? "ecc_uncorrected" : "ecc_corrected", 0ull);
    return kSuccess;
}

// From Ampere on rows are remapped; before, pages were retired.
bool remaps(const Gpu &gpu)
{
    return gpu.flag("ecc") && std::stod(gpu.text("cc")) >= 8;
}

RemappedRowsV2 rows_of(const Gpu &gpu)
{
    return {gpu.keys.value("remap_corrected", 0u),
            0,
            gpu.keys.value("remap_uncorrected", 0u),
            0,
            gpu.flag("remap_pending"),
            gpu.flag("remap_failed")};
}

int retired(const char *call, Handle *device, int cause, uint *count, ulonglong *addresses,
            ulonglong *times)
{
    return on_gpu(call, device, {count}, [&](const Scenario &, const Gpu &gpu) {
        if (cause < 0 || cause > 1) return kInvalidArgument;
        if (!gpu.flag("ecc") || remaps(gpu)) return kNotSupported;
        std::vector<ulonglong> pages(cause ? gpu.keys.value("retired_pages", 0u) : 0);
        for (size_t i = 0; i < pages.size(); ++i) pages[i] = 0x1000 * (i + 1);
        const std::vector<ulonglong> when(pages.size(), 1756316731);
        uint room = *count;
        if (times) {
            if (const Return code = tell_list(when, &room, times)) {
                *count = room;
                return code;
            }
        }
        return tell_list(pages, count, addresses);
    });
}

}  // namespace

EXPORT int nvmlDeviceGetEccMode(Handle *device, int *current, int *pending)
{
    return on_gpu(__func__, device, {current, pending}, [&](const Scenario &, const Gpu &gpu) {
        if (const Return code = tell(gpu, "ecc", current)) return code;
        *pending = gpu.keys.value("ecc_pending", *current != 0);
        return kSuccess;
    });
}

EXPORT int nvmlDeviceGetTotalEccErrors(Handle *device, int kind, int counter, ulonglong *out)
{
    return on_gpu(__func__, device, {out}, [&](const Scenario &, const Gpu &gpu) {
        return errors_of(gpu, kind, counter, out);
    });
}

EXPORT int nvmlDeviceGetMemoryErrorCounter(Handle *device, int kind, int counter, int place,
                                           ulonglong *out)
{
    return on_gpu(__func__, device, {out}, [&](const Scenario &, const Gpu &gpu) {
        if (place < 0 || place > 7) return kInvalidArgument;
        const Return code = errors_of(gpu, kind, counter, out);
        if (!code && place != 2) *out = 0;  // all of them are in device memory
        return code;
    });
}

EXPORT int nvmlDeviceGetDetailedEccErrors(Handle *device, int kind, int counter, EccCounts *out)
{
    return on_gpu(__func__, device, {out}, [&](const Scenario &, const Gpu &gpu) {
        *out = {};
        return errors_of(gpu, kind, counter, &out->device_memory);
    });
}

EXPORT int nvmlDeviceGetRemappedRows(Handle *device, uint *corrected, uint *uncorrected,
                                     uint *pending, uint *failed)
{
    return on_gpu(__func__, device, {corrected, uncorrected, pending, failed},
                  [&](const Scenario &, const Gpu &gpu) {
                      if (!remaps(gpu)) return kNotSupported;
                      const RemappedRowsV2 rows = rows_of(gpu);
                      *corrected = rows.corrected;
                      *uncorrected = rows.uncorrected;
                      *pending = rows.pending;
                      *failed = rows.failed;
                      return kSuccess;
                  });
}

EXPORT int nvmlDeviceGetRemappedRows_v2(Handle *device, RemappedRowsV2 *out)
{
    return on_gpu(__func__, device, {out}, [&](const Scenario &, const Gpu &gpu) {
        if (!remaps(gpu)) return kNotSupported;
        *out = rows_of(gpu);
        return kSuccess;
    });
}

EXPORT int nvmlDeviceGetRowRemapperHistogram(Handle *device, RemapperHistogram *out)
{
    return on_gpu(__func__, device, {out}, [&](const Scenario &, const Gpu &gpu) {
        if (!remaps(gpu)) return kNotSupported;
        *out = {640, 0, 0, 0, 0};
        const uint used = gpu.keys.value("remap_uncorrected", 0u);
        out->none = gpu.flag("remap_failed") ? 1 : 0;
        out->partial = used;
        out->max -= used + out->none;
        return kSuccess;
    });
}

EXPORT int nvmlDeviceGetRetiredPages(Handle *device, int cause, uint *count, ulonglong *addresses)
{
    return retired(__func__, device, cause, count, addresses, nullptr);
}

EXPORT int nvmlDeviceGetRetiredPages_v2(Handle *device, int cause, uint *count,
                                        ulonglong *addresses, ulonglong *times)
{
    return retired(__func__, device, cause, count, addresses, times);
}

EXPORT int nvmlDeviceGetRetiredPagesPendingStatus(Handle *device, int *pending)
{
    return on_gpu(__func__, device, {pending}, [&](const Scenario &, const Gpu &gpu) {
        if (!gpu.flag("ecc") || remaps(gpu)) return kNotSupported;
        *pending = gpu.flag("retired_pending");
        return kSuccess;
    });
}

// Returns the nanoseconds during which clocks were held down. Only causes that hold clocks down now have any.
EXPORT int nvmlDeviceGetViolationStatus(Handle *device, int policy, Violation *out)
{
    return on_gpu(__func__, device, {out}, [&](const Scenario &, const Gpu &gpu) {
        constexpr uint kReasons[] = {0x84, 0x68};  // power, heat
        if (policy < 0 || policy > 11) return kInvalidArgument;
        const uint reasons = gpu.keys.value("throttle", 0u);
        const bool held = policy < 2 && (reasons & kReasons[policy]);
        *out = {1756316731000000, held ? 42000000000ull : 0};
        return kSuccess;
    });
}
