// choice.cpp: choice and bounds: shape rules and vjps.
#include "core/ops/family.h"
#include "core/ops/rules.h"
#include "core/ops/scalar.h"

#include <algorithm>

namespace yoke {

namespace {

// Returns the result dtype of two numbers without a tensor.
yoke_dtype scalars_dtype(const yoke_arg &x, const yoke_arg &y)
{
    const int32_t widest = std::max(x.kind, y.kind);
    return widest == YOKE_ARG_FLOAT ? YOKE_F32 : widest == YOKE_ARG_INT ? YOKE_I64 : YOKE_BOOL;
}

// Checks that an integer x can hold its bound. A bound beyond the other end of the dtype has no effect and passes.
void check_bound(const yoke_arg *bound, bool is_lower, yoke_dtype dtype, const char *call)
{
    if (!bound || scalar_fits(*bound, dtype)) return;
    if ((scalar_f64(*bound) > 0) == is_lower)
        check_scalar_fits(*bound, dtype, call, is_lower ? "min" : "max");
}

}  // namespace

// ---- Choice ----------------------------------------------------------------------------------------------

void infer_where(WhereArgs a, Plan &plan)
{
    if (a.condition().dtype != YOKE_BOOL)
        fail(YOKE_E_TYPE, "where: argument 'condition' is %s; it takes bool, as x > 0 gives",
             name(a.condition().dtype));
    const bool numbers = is_scalar(a.x()) && is_scalar(a.y());
    const yoke_dtype dtype =
        numbers ? scalars_dtype(a.x(), a.y()) : rules::operand_dtype(a.x(), a.y(), plan.name());
    plan.scalar_dtype(dtype);
    Dims shape{a.condition().shape()};
    for (const int i : {a.kX, a.kY}) {
        plan.cast(i, dtype);
        if (is_scalar(a.value(i)))
            check_scalar_fits(a.value(i), dtype, plan.name(), i == a.kX ? "x" : "y");
        else
            shape = broadcast(shape, a.value(i).v.tensor->shape(), plan.name());
    }
    // In the memory order of an argument that has the result's shape, the condition's last.
    for (const int i : {a.kX, a.kY, a.kCondition})
        if (!is_scalar(a.value(i)) && same(a.tensor(i).shape(), shape))
            return plan.result_like(a.tensor(i), dtype);
    plan.result(shape, dtype);
}

void vjp_where(WhereArgs a, Backward &b)
{
    const int64_t none = 0;
    if (b.needs(a.kX)) set_broadcast(b, a.kX, a.x(), ops::where(a.condition(), b.grad(), none));
    if (b.needs(a.kY)) set_broadcast(b, a.kY, a.y(), ops::where(a.condition(), none, b.grad()));
}

// ---- Extremes and bounds ---------------------------------------------------------------------------------

void vjp_maximum(MaximumArgs a, Backward &b)
{
    if (b.needs(a.kX)) set_broadcast(b, a.kX, a.x(), ops::maximum_backward(b.grad(), a.x(), a.y()));
    if (b.needs(a.kY)) set_broadcast(b, a.kY, a.y(), ops::maximum_backward(b.grad(), a.y(), a.x()));
}

void vjp_minimum(MinimumArgs a, Backward &b)
{
    if (b.needs(a.kX)) set_broadcast(b, a.kX, a.x(), ops::minimum_backward(b.grad(), a.x(), a.y()));
    if (b.needs(a.kY)) set_broadcast(b, a.kY, a.y(), ops::minimum_backward(b.grad(), a.y(), a.x()));
}

void infer_clamp(ClampArgs a, Plan &plan)
{
    if (!a.min() && !a.max())
        fail(YOKE_E_VALUE,
             "%s: arguments 'min' and 'max' are both missing; give at least one of them",
             plan.name());
    yoke_dtype dtype = a.x().dtype;
    if (dtype == YOKE_BOOL)
        fail(YOKE_E_TYPE,
             "%s: argument 'x' is bool, which cannot be clamped; cast it to an integer dtype first",
             plan.name());
    for (const yoke_arg *bound : {a.min(), a.max()})
        if (bound) dtype = promote_scalar(dtype, bound->kind);
    check_bound(a.min(), true, dtype, plan.name());
    check_bound(a.max(), false, dtype, plan.name());
    plan.cast(a.kX, dtype);
    rules::like(a, a.kX, plan);
}

void vjp_clamp(ClampArgs a, Backward &b)
{
    const auto bound = [](const yoke_arg *value) {
        return value ? std::optional<Operand>(*value) : std::nullopt;
    };
    b.set(a.kX, ops::clamp_backward(b.grad(), a.x(), bound(a.min()), bound(a.max())));
}

}  // namespace yoke
