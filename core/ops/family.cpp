#include "core/ops/family.h"

#include "core/base/default_dtype.h"
#include "core/ops/recompute/scope.h"

namespace yoke {

Tensor sum_to(const Tensor &gradient, IntList shape)
{
    const IntList from = gradient->shape();
    if (same(from, shape)) return gradient;
    Dims axes;
    const int extra = static_cast<int>(from.size() - shape.size());
    for (int i = 0; i < static_cast<int>(from.size()); ++i)
        if (i < extra ||
            (shape[static_cast<size_t>(i - extra)] == 1 && from[static_cast<size_t>(i)] != 1))
            axes.push_back(i);
    return ops::reshape(ops::sum(gradient, IntList(axes), true), shape);
}

Tensor expand_reduced(const yoke_tensor &reduced, const Dims &axes, IntList shape)
{
    Dims kept{shape};
    for (const int64_t axis : axes) kept[static_cast<int>(axis)] = 1;
    return ops::expand(ops::view(reduced, kept), shape);
}

yoke_dtype cast_to_floating(Plan &plan, int arg, const yoke_tensor &x)
{
    if (is_floating(x.dtype)) return x.dtype;
    plan.cast(arg, default_dtype());
    return default_dtype();
}

Tensor make_empty(Device &device, yoke_dtype dtype, IntList shape, const char *call)
{
    Tensor x = make_tensor(device, dtype, shape, call);
    if (Scope *scope = Scope::of_thread()) [[unlikely]]
        scope->log_empty(*x);
    return x;
}

void check_floating(const yoke_tensor &x, const char *call, const char *arg)
{
    if (!is_floating(x.dtype))
        fail(YOKE_E_TYPE, "%s: argument '%s' is %s; it takes a floating dtype: cast it first", call,
             arg, name(x.dtype));
}

void check_computable(const yoke_tensor &x, const char *call, const char *arg)
{
    check_floating(x, call, arg);
    if (item_size(x.dtype) == 1)
        fail(YOKE_E_TYPE, "%s: argument '%s' is %s, a dtype only for storage; cast it first", call,
             arg, name(x.dtype));
}

void check_index(const yoke_tensor &x, const char *call, const char *arg)
{
    if (x.dtype != YOKE_I64 && x.dtype != YOKE_I32)
        fail(YOKE_E_TYPE, "%s: argument '%s' is %s; it takes int64 or int32: cast it first", call,
             arg, name(x.dtype));
}

}  // namespace yoke
