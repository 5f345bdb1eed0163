#include "yoke/amp.h"

#include "capi/src/guard.h"
#include "core/ops/autocast.h"
#include "core/ops/tf32.h"

using namespace yoke;
using namespace yoke::capi;

yoke_status yoke_autocast_create(int32_t enabled, yoke_dtype dtype, int32_t cache_enabled,
                                 yoke_autocast **out)
{
    constexpr const char *call = "yoke_autocast_create";
    return guard(call, [&] {
        yoke_autocast *&place = need_out(out, call);
        place = hand_out<yoke_autocast>(Autocast::make(enabled != 0, dtype, cache_enabled != 0));
    });
}

yoke_autocast *yoke_autocast_swap(yoke_autocast *region)
{
    constexpr const char *call = "yoke_autocast_swap";
    return guard_value(call, static_cast<yoke_autocast *>(nullptr), [&] {
        return lend<yoke_autocast>(set_autocast(object_of(region, call, "region")));
    });
}

yoke_autocast *yoke_autocast_current(void)
{
    return guard_value("yoke_autocast_current", static_cast<yoke_autocast *>(nullptr),
                       [] { return lend<yoke_autocast>(current_autocast()); });
}

yoke_autocast *yoke_autocast_retain(yoke_autocast *region)
{
    return retain_handle(region, "yoke_autocast_retain");
}

void yoke_autocast_release(yoke_autocast *region)
{
    release_handle(region, "yoke_autocast_release");
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
