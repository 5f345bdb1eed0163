#include "yoke/engines.h"

#include "capi/src/guard.h"
#include "core/base/default_dtype.h"
#include "core/base/dtype.h"
#include "core/ops/engines.h"
#include "core/ops/promotion.h"

using namespace yoke;
using namespace yoke::capi;

static_assert(YOKE_CUDNN_SETTING_COUNT == kCudnnSettings);
static_assert(YOKE_CUDNN_WORKSPACE_LIMIT == static_cast<int>(CudnnSetting::kWorkspaceLimit));

static CudnnSetting need_setting(int32_t setting, const char *call)
{
    if (setting < 0 || setting >= kCudnnSettings)
        fail(YOKE_E_VALUE, "%s: argument 'setting' is %d; it must be one of YOKE_CUDNN_*, 0 to %d",
             short_name(call), setting, kCudnnSettings - 1);
    return static_cast<CudnnSetting>(setting);
}

yoke_status yoke_cudnn_set(int32_t setting, int64_t value)
{
    constexpr const char *call = "yoke_cudnn_set";
    return guard(call, [&] { set_cudnn_setting(need_setting(setting, call), value); });
}

yoke_status yoke_cudnn_get(int32_t setting, int64_t *value)
{
    constexpr const char *call = "yoke_cudnn_get";
    return guard(call, [&] {
        need(value, call, "value");
        *value = cudnn_setting(need_setting(setting, call));
    });
}

int64_t yoke_cudnn_version(void)
{
    return guard_value("yoke_cudnn_version", int64_t{-1}, [] { return find_cudnn().version; });
}

const char *yoke_cudnn_why_unavailable(void)
{
    const char *why =
        guard_value("yoke_cudnn_why_unavailable", static_cast<const char *>(nullptr), [] {
            thread_local std::string text;
            text = find_cudnn().why;
            return text.c_str();
        });
    return why ? why : last_error()->message;
}

yoke_status yoke_use_deterministic_algorithms(int32_t enabled)
{
    return guard("yoke_use_deterministic_algorithms",
                 [&] { use_deterministic_algorithms(enabled != 0); });
}

int32_t yoke_are_deterministic_algorithms_enabled(void)
{
    return guard_value("yoke_are_deterministic_algorithms_enabled", -1,
                       [] { return uses_deterministic_algorithms() ? 1 : 0; });
}

yoke_status yoke_set_weak_zero_dim(int32_t weak)
{
    return guard("yoke_set_weak_zero_dim", [&] { set_weak_zero_dim(weak != 0); });
}

yoke_status yoke_set_default_dtype(yoke_dtype dtype)
{
    constexpr const char *call = "yoke_set_default_dtype";
    return guard(call, [&] {
        if (dtype == YOKE_NONE) dtype = YOKE_F32;
        if (dtype != YOKE_F64 && dtype != YOKE_F32 && !is_half(dtype))
            fail(YOKE_E_TYPE,
                 "%s: argument 'dtype' is %s; it must be float64, float32, float16 or bfloat16",
                 short_name(call), is_dtype(dtype) ? name(dtype) : "no dtype");
        set_default_dtype(dtype);
    });
}

yoke_dtype yoke_get_default_dtype(void)
{
    return default_dtype();
}
