#include "yoke/amp.h"

#include "capi/src/guard.h"
#include "core/ops/autocast.h"
#include "core/ops/tf32.h"

using namespace yoke;
using namespace yoke::capi;

namespace {

// The handle of C is the region itself.
yoke_autocast *to_handle(Autocast *region)
{
    return reinterpret_cast<yoke_autocast *>(region);
}

Autocast *from_handle(yoke_autocast *handle)
{
    return reinterpret_cast<Autocast *>(handle);
}

}  // namespace

yoke_status yoke_autocast_create(int32_t enabled, yoke_dtype dtype, int32_t cache_enabled,
                                 yoke_autocast **out)
{
    constexpr const char *call = "yoke_autocast_create";
    return guard(call, [&] {
        yoke_autocast *&place = need_out(out, call);
        place = to_handle(Autocast::make(enabled != 0, dtype, cache_enabled != 0).detach());
    });
}

yoke_autocast *yoke_autocast_swap(yoke_autocast *region)
{
    return guard_value("yoke_autocast_swap", static_cast<yoke_autocast *>(nullptr),
                       [&] { return to_handle(set_autocast(from_handle(region))); });
}

yoke_autocast *yoke_autocast_current(void)
{
    return to_handle(current_autocast());
}

yoke_autocast *yoke_autocast_retain(yoke_autocast *region)
{
    if (region) from_handle(region)->retain();
    return region;
}

void yoke_autocast_release(yoke_autocast *region)
{
    if (region) from_handle(region)->release();
}

int32_t yoke_is_autocast_enabled(void)
{
    const Autocast *region = current_autocast();
    return region && region->enabled() ? 1 : 0;
}

yoke_dtype yoke_autocast_dtype(yoke_device *device)
{
    return guard_value("yoke_autocast_dtype", static_cast<yoke_dtype>(YOKE_NONE), [&] {
        const Device &where = device_or_current(device);
        const Autocast *region = current_autocast();
        return region ? region->dtype_on(where) : default_autocast_dtype(where);
    });
}

yoke_status yoke_set_allow_tf32(int32_t enabled)
{
    return guard("yoke_set_allow_tf32", [&] { allow_tf32(enabled != 0); });
}

int32_t yoke_get_allow_tf32(void)
{
    return guard_value("yoke_get_allow_tf32", -1, [] { return allows_tf32() ? 1 : 0; });
}
