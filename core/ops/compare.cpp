// compare.cpp: comparisons, logic, choice and bounds: shape rules and vjps.
#include "core/ops/pointwise.h"
#include "core/ops/scalar.h"

#include <algorithm>

namespace yoke {

namespace {

constexpr int kFirst = 0, kSecond = 1;

// Operands are promoted like those of arithmetic, except that a number which the tensor's dtype cannot hold is compared
// as what it is: 300 is above every uint8.
void infer_comparison(Args a, Plan &plan)
{
    const yoke_dtype common = operand_dtype(a.value(kFirst), a.value(kSecond), plan.name());
    yoke_dtype dtype = common;
    for (const int i : {kFirst, kSecond}) {
        const yoke_arg &value = a.value(i), &other = a.value(1 - i);
        if (!is_scalar(value)) continue;
        const bool crosses = value.kind == YOKE_ARG_FLOAT && !is_floating(other.v.tensor->dtype);
        if (crosses || !scalar_fits(value, common))
            dtype = crosses || is_floating(common) ? YOKE_F64 : YOKE_I64;
    }
    infer_binary(a, plan, dtype, YOKE_BOOL);
}

// Whether an element is 0 is the same in any dtype, so a number is no more than true or false.
void infer_logical(Args a, Plan &plan)
{
    const yoke_dtype dtype = operand_dtype(a.value(kFirst), a.value(kSecond), plan.name());
    for (const int i : {kFirst, kSecond}) {
        if (!is_scalar(a.value(i))) continue;
        a.set_integer(i, scalar_f64(a.value(i)) != 0);
        return infer_binary(a, plan, a.value(1 - i).v.tensor->dtype, YOKE_BOOL);
    }
    infer_binary(a, plan, dtype, YOKE_BOOL);
}

// What two numbers without a tensor become.
yoke_dtype scalars_dtype(const yoke_arg &x, const yoke_arg &y)
{
    const int32_t widest = std::max(x.kind, y.kind);
    return widest == YOKE_ARG_FLOAT ? YOKE_F32 : widest == YOKE_ARG_INT ? YOKE_I64 : YOKE_BOOL;
}

// The gradient of an extreme of two has grad's dtype, and so have the operands.
void infer_extreme_backward(const yoke_tensor &grad, Plan &plan)
{
    plan.scalar_dtype(grad.dtype);
    infer_like(grad, plan);
}

// An integer x must be able to hold what it is raised or lowered to; a bound beyond the other end bounds nothing.
void check_bound(const yoke_arg *bound, bool is_lower, yoke_dtype dtype, const char *call)
{
    if (!bound || scalar_fits(*bound, dtype)) return;
    if ((scalar_f64(*bound) > 0) == is_lower)
        check_scalar_fits(*bound, dtype, call, is_lower ? "min" : "max");
}

}  // namespace

// ---- Comparisons -----------------------------------------------------------------------------------------

void infer_eq(EqArgs a, Plan &plan)
{
    infer_comparison(a, plan);
}

void infer_ne(NeArgs a, Plan &plan)
{
    infer_comparison(a, plan);
}

void infer_lt(LtArgs a, Plan &plan)
{
    infer_comparison(a, plan);
}

void infer_le(LeArgs a, Plan &plan)
{
    infer_comparison(a, plan);
}

void infer_gt(GtArgs a, Plan &plan)
{
    infer_comparison(a, plan);
}

void infer_ge(GeArgs a, Plan &plan)
{
    infer_comparison(a, plan);
}

// ---- Logic -----------------------------------------------------------------------------------------------

void infer_logical_and(LogicalAndArgs a, Plan &plan)
{
    infer_logical(a, plan);
}

void infer_logical_or(LogicalOrArgs a, Plan &plan)
{
    infer_logical(a, plan);
}

void infer_logical_xor(LogicalXorArgs a, Plan &plan)
{
    infer_logical(a, plan);
}

void infer_logical_not(LogicalNotArgs a, Plan &plan)
{
    plan.result_like(a.x(), YOKE_BOOL);
}

void infer_isnan(IsnanArgs a, Plan &plan)
{
    plan.result_like(a.x(), YOKE_BOOL);
}

void infer_isfinite(IsfiniteArgs a, Plan &plan)
{
    plan.result_like(a.x(), YOKE_BOOL);
}

// ---- Choice ----------------------------------------------------------------------------------------------

void infer_where(WhereArgs a, Plan &plan)
{
    if (a.condition().dtype != YOKE_BOOL)
        fail(YOKE_E_TYPE, "where: argument 'condition' is %s; it takes bool, as x > 0 gives",
             name(a.condition().dtype));
    const bool numbers = is_scalar(a.x()) && is_scalar(a.y());
    const yoke_dtype dtype =
        numbers ? scalars_dtype(a.x(), a.y()) : operand_dtype(a.x(), a.y(), plan.name());
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

void infer_maximum(MaximumArgs a, Plan &plan)
{
    infer_binary(a, plan, operand_dtype(a.x(), a.y(), plan.name()));
}

void vjp_maximum(MaximumArgs a, Backward &b)
{
    if (b.needs(a.kX)) set_broadcast(b, a.kX, a.x(), ops::maximum_backward(b.grad(), a.x(), a.y()));
    if (b.needs(a.kY)) set_broadcast(b, a.kY, a.y(), ops::maximum_backward(b.grad(), a.y(), a.x()));
}

void infer_maximum_backward(MaximumBackwardArgs a, Plan &plan)
{
    infer_extreme_backward(a.grad(), plan);
}

void infer_minimum(MinimumArgs a, Plan &plan)
{
    infer_binary(a, plan, operand_dtype(a.x(), a.y(), plan.name()));
}

void vjp_minimum(MinimumArgs a, Backward &b)
{
    if (b.needs(a.kX)) set_broadcast(b, a.kX, a.x(), ops::minimum_backward(b.grad(), a.x(), a.y()));
    if (b.needs(a.kY)) set_broadcast(b, a.kY, a.y(), ops::minimum_backward(b.grad(), a.y(), a.x()));
}

void infer_minimum_backward(MinimumBackwardArgs a, Plan &plan)
{
    infer_extreme_backward(a.grad(), plan);
}

void infer_clamp(ClampArgs a, Plan &plan)
{
    if (!a.min() && !a.max())
        fail(YOKE_E_VALUE, "%s: arguments 'min' and 'max' are both absent; give one of them",
             plan.name());
    yoke_dtype dtype = a.x().dtype;
    if (dtype == YOKE_BOOL)
        fail(YOKE_E_TYPE, "%s: bool tensors have no clamp; cast one to an integer dtype",
             plan.name());
    for (const yoke_arg *bound : {a.min(), a.max()})
        if (bound) dtype = promote_scalar(dtype, bound->kind);
    check_bound(a.min(), true, dtype, plan.name());
    check_bound(a.max(), false, dtype, plan.name());
    plan.cast(a.kX, dtype);
    infer_like(a.x(), plan);
}

void vjp_clamp(ClampArgs a, Backward &b)
{
    const auto bound = [](const yoke_arg *value) {
        return value ? std::optional<Operand>(*value) : std::nullopt;
    };
    b.set(a.kX, ops::clamp_backward(b.grad(), a.x(), bound(a.min()), bound(a.max())));
}

void infer_clamp_backward(ClampBackwardArgs a, Plan &plan)
{
    infer_like(a.x(), plan);
}

}  // namespace yoke
