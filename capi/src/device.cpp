#include "yoke/device.h"

#include "capi/src/guard.h"
#include "core/backend/registry.h"
#include "core/base/config.h"
#include "core/base/dtype.h"
#include "core/base/thread_state.h"
#include "core/device/availability.h"
#include "core/device/free_memory.h"
#include "core/select/select.h"

#include <utility>

using namespace yoke;
using namespace yoke::capi;

namespace {

int32_t count_of(const char *kind)
{
    return !Availability::of(kind) ? 0 : static_cast<int32_t>(devices_of(kind).size());
}

// Returns the first kind beside the CPU with devices, or "".
std::string first_accelerator()
{
    for (const std::string &kind : platforms().kinds)
        if (kind != kHostKind && count_of(kind.c_str()) > 0) return kind;
    return "";
}

[[noreturn]] void fail_without_accelerator(int32_t index)
{
    std::string reasons;
    for (const std::string &kind : platforms().kinds)
        if (kind != kHostKind) reasons += "; " + kind + ": " + Availability::of(kind).text();
    fail(YOKE_E_UNAVAILABLE,
         "index %d is not a device, because there is no accelerator; for the CPU give \"cpu\"%s",
         index, reasons.c_str());
}

yoke_device *retained(Device &device)
{
    device.retain();
    return &device;
}

Device &device_at(const char *kind, int32_t index, const char *call)
{
    const auto &devices = devices_of(kind);
    if (index < 0 || static_cast<size_t>(index) >= devices.size())
        fail(YOKE_E_INDEX, "%s: argument 'index' is %d; it must be %s", short_name(call), index,
             devices.size() == 1
                 ? format("0, because %s has a single device", kind).c_str()
                 : format("0 to %zu, the devices of %s", devices.size() - 1, kind).c_str());
    return *devices[static_cast<size_t>(index)];
}

}  // namespace

yoke_status yoke_device_open(const char *spec, yoke_device **out)
{
    constexpr const char *call = "yoke_device_open";
    return guard(call, [&] {
        yoke_device *&place = need_out(out, call);
        place = retained(open_device(spec ? spec : "auto"));
    });
}

yoke_status yoke_device_get(const char *kind, int32_t index, yoke_device **out)
{
    constexpr const char *call = "yoke_device_get";
    return guard(call, [&] {
        yoke_device *&place = need_out(out, call);
        need(kind, call, "kind");
        place = retained(device_at(kind, index, call));
    });
}

yoke_status yoke_accelerator_get(int32_t index, yoke_device **out)
{
    constexpr const char *call = "yoke_accelerator_get";
    return guard(call, [&] {
        yoke_device *&place = need_out(out, call);
        std::string kind = current_device().kind();
        if (kind == kHostKind) kind = first_accelerator();
        if (kind.empty()) fail_without_accelerator(index);
        place = retained(device_at(kind.c_str(), index, call));
    });
}

yoke_device *yoke_device_retain(yoke_device *device)
{
    return retain_handle(device, "yoke_device_retain");
}

void yoke_device_release(yoke_device *device)
{
    release_handle(device, "yoke_device_release");
}

yoke_status yoke_device_count(const char *kind, int32_t *count)
{
    constexpr const char *call = "yoke_device_count";
    return guard(call, [&] {
        need(count, call, "count");
        int32_t total = 0;
        if (kind)
            total = count_of(kind);
        else
            for (const std::string &each : platforms().kinds) total += count_of(each.c_str());
        *count = total;
    });
}

int32_t yoke_is_available(const char *kind)
{
    return guard_value("yoke_is_available", 0, [&] {
        return kind ? static_cast<bool>(Availability::of(kind)) : !first_accelerator().empty();
    });
}

const char *yoke_why_unavailable(const char *kind)
{
    constexpr const char *call = "yoke_why_unavailable";
    const char *reason = guard_value(call, static_cast<const char *>(nullptr), [&] {
        return Availability::of(&need(kind, call, "kind")).text();
    });
    return reason ? reason : last_error()->message;
}

const char *yoke_device_kind(yoke_device *device)
{
    constexpr const char *call = "yoke_device_kind";
    return guard_value(call, static_cast<const char *>(nullptr),
                       [&] { return need(device, call, "device").kind(); });
}

int32_t yoke_device_index(yoke_device *device)
{
    constexpr const char *call = "yoke_device_index";
    return guard_value(call, -1, [&] { return need(device, call, "device").index; });
}

const char *yoke_device_spec(yoke_device *device)
{
    constexpr const char *call = "yoke_device_spec";
    return guard_value(call, static_cast<const char *>(nullptr),
                       [&] { return need(device, call, "device").name.c_str(); });
}

const char *yoke_device_name(yoke_device *device)
{
    constexpr const char *call = "yoke_device_name";
    return guard_value(call, static_cast<const char *>(nullptr),
                       [&]() -> const char * { return need(device, call, "device").info.name; });
}

yoke_status yoke_device_memory(yoke_device *device, int64_t *free_bytes, int64_t *total_bytes)
{
    constexpr const char *call = "yoke_device_memory";
    return guard(call, [&] {
        need(free_bytes, call, "free_bytes");
        need(total_bytes, call, "total_bytes");
        const Device &asked = device_or_current(device);
        check_usable(asked);
        FreeMemory free_memory;
        check_backend(free_memory_on(asked, &free_memory), short_name(call));
        *free_bytes = static_cast<int64_t>(free_memory.free);
        *total_bytes = static_cast<int64_t>(free_memory.total);
    });
}

yoke_status yoke_device_supports(yoke_device *device, yoke_dtype dtype, const char *feature,
                                 int32_t *out)
{
    constexpr const char *call = "yoke_device_supports";
    return guard(call, [&] {
        int32_t &place = need(out, call, "out");
        const Device &asked = need(device, call, "device");
        check_dtype(dtype, short_name(call));
        const std::string_view name = &need(feature, call, "feature");
        if (name == "compute")
            place = 1;
        else if (name == "tensor_cores")
            place = asked.info.matrix_dtypes >> dtype & 1;
        else
            fail(YOKE_E_VALUE, "%s: argument 'feature' is '%s'; it must be compute or tensor_cores",
                 short_name(call), feature);
    });
}

yoke_status yoke_set_device(yoke_device *device)
{
    constexpr const char *call = "yoke_set_device";
    return guard(call, [&] { set_current_device(need(device, call, "device")); });
}

yoke_device *yoke_device_swap(yoke_device *device)
{
    constexpr const char *call = "yoke_device_swap";
    return guard_value(call, static_cast<yoke_device *>(nullptr), [&] {
        Device *own = device ? &need(device, call, "device") : nullptr;
        return std::exchange(thread_state().device, own);
    });
}

yoke_status yoke_current_device(yoke_device **out)
{
    constexpr const char *call = "yoke_current_device";
    return guard(call, [&] {
        yoke_device *&place = need_out(out, call);
        place = retained(current_device());
    });
}

yoke_status yoke_device_synchronize(yoke_device *device)
{
    return guard("yoke_device_synchronize", [&] { synchronize(device_or_current(device)); });
}

yoke_status yoke_set_num_threads(int32_t count)
{
    constexpr const char *call = "yoke_set_num_threads";
    return guard(call, [&] {
        if (count < 0)
            fail(YOKE_E_VALUE, "%s: argument 'count' is %d; give 1 or more, or 0 for the default",
                 short_name(call), count);
        set_num_threads(count);
    });
}

int32_t yoke_get_num_threads(void)
{
    return guard_value("yoke_get_num_threads", -1, [] { return num_threads(); });
}
