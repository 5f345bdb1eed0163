// choice.cpp: choice and bounds: shape rules and vjps.
#include "core/base/default_dtype.h"
#include "core/ops/family.h"
#include "core/ops/promotion.h"
#include "core/ops/rules.h"
#include "core/ops/scalar.h"

#include <algorithm>

namespace yoke {

namespace {

// Returns the result dtype of two numbers without a tensor.
yoke_dtype scalars_dtype(const yoke_arg &x, const yoke_arg &y)
{
    const int32_t widest = std::max(x.kind, y.kind);
    return widest == YOKE_ARG_FLOAT ? default_dtype()
           : widest == YOKE_ARG_INT ? YOKE_I64
                                    : YOKE_BOOL;
}

// States a result of the common shape of several arguments, in the memory order of the first argument that has this
// shape. Numbers among the arguments, and absent ones, have no shape.
void plan_broadcast(Args a, std::initializer_list<int> arguments, Plan &plan, yoke_dtype dtype)
{
    plan.scalar_dtype(dtype);
    Dims shape;
    for (const int i : arguments)
        if (a.value(i).kind == YOKE_ARG_TENSOR)
            shape = broadcast(shape, a.tensor(i).shape(), plan.name());
    for (const int i : arguments)
        if (a.value(i).kind == YOKE_ARG_TENSOR && same(a.tensor(i).shape(), shape))
            return plan.result_like(a.tensor(i), dtype);
    plan.result(shape, dtype);
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
    for (const int i : {a.kX, a.kY})
        if (is_scalar(a.value(i)))
            check_scalar_fits(a.value(i), dtype, plan.name(), i == a.kX ? "x" : "y");
    for (const int i : {a.kX, a.kY}) plan.cast(i, dtype);
    plan_broadcast(a, {a.kX, a.kY, a.kCondition}, plan, dtype);
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

void infer_clamp_between(ClampBetweenArgs a, Plan &plan)
{
    if (!a.min() && !a.max())
        fail(YOKE_E_VALUE, "clamp: arguments 'min' and 'max' are both absent; give one of them");
    yoke_dtype dtype = a.x().dtype;
    for (const yoke_tensor *bound : {a.min(), a.max()})
        if (bound) dtype = promote(dtype, promote_tensors(a.x(), *bound));
    if (dtype == YOKE_BOOL)
        fail(YOKE_E_TYPE,
             "clamp: bool tensors do not support clamp; cast the tensor to an integer dtype");
    for (const int i : {a.kX, a.kMin, a.kMax}) plan.cast(i, dtype);
    plan_broadcast(a, {a.kX, a.kMin, a.kMax}, plan, dtype);
}

// Sets the gradients: x has it between the bounds and at a bound, the upper bound where x or the lower bound is above,
// the lower bound elsewhere.
void vjp_clamp_between(ClampBetweenArgs a, Backward &b)
{
    const int64_t none = 0;
    const yoke_tensor &x = a.x(), *const min = a.min(), *const max = a.max();
    const auto where = [&](const Tensor &condition, bool yes) {
        return yes ? ops::where(condition, b.grad(), none) : ops::where(condition, none, b.grad());
    };
    const Tensor below = min ? ops::lt(x, *min) : Tensor();
    const Tensor above = max ? ops::gt(x, *max) : Tensor();
    const Tensor crossed = min && max ? ops::gt(*min, *max) : Tensor();
    if (b.needs(a.kX)) {
        const Tensor outside = min && max ? ops::logical_or(below, above) : min ? below : above;
        b.set(a.kX, sum_to(where(outside, false), x.shape()));
    }
    if (min && b.needs(a.kMin)) {
        const Tensor held = max ? ops::logical_and(below, ops::logical_not(crossed)) : below;
        b.set(a.kMin, sum_to(where(held, true), min->shape()));
    }
    if (max && b.needs(a.kMax)) {
        const Tensor held = min ? ops::logical_or(above, crossed) : above;
        b.set(a.kMax, sum_to(where(held, true), max->shape()));
    }
}

// ---- Products and sums -----------------------------------------------------------------------------------

namespace {

// Broadcasts the operands of x + alpha * y, and checks that their dtype can hold alpha.
void plan_scaled(Args a, int x, int y, const yoke_arg &alpha, Plan &plan, const char *call)
{
    const yoke_dtype dtype = rules::operand_dtype(a.value(x), a.value(y), call);
    if (dtype == YOKE_BOOL && *call == 's')
        fail(
            YOKE_E_TYPE,
            "%s: bool tensors do not support sub; use logical_xor, or cast one to an integer dtype",
            call);
    if (alpha.kind == YOKE_ARG_FLOAT && !is_floating(dtype))
        fail(
            YOKE_E_TYPE,
            "%s: argument 'alpha' is %s, and the tensors are %s together; give an integer, or cast a tensor to a floating dtype",
            call, text_of(alpha).c_str(), name(dtype));
    rules::broadcast_as(a, x, y, plan, dtype);
}

}  // namespace

void infer_add_scaled(AddScaledArgs a, Plan &plan)
{
    plan_scaled(a, a.kX, a.kY, a.alpha(), plan, "add");
}

void vjp_add_scaled(AddScaledArgs a, Backward &b)
{
    if (b.needs(a.kX)) set_broadcast(b, a.kX, a.x(), b.grad());
    if (b.needs(a.kY)) set_broadcast(b, a.kY, a.y(), ops::mul(b.grad(), a.alpha()));
}

void infer_sub_scaled(SubScaledArgs a, Plan &plan)
{
    plan_scaled(a, a.kX, a.kY, a.alpha(), plan, "sub");
}

void vjp_sub_scaled(SubScaledArgs a, Backward &b)
{
    if (b.needs(a.kX)) set_broadcast(b, a.kX, a.x(), b.grad());
    if (b.needs(a.kY)) set_broadcast(b, a.kY, a.y(), ops::neg(ops::mul(b.grad(), a.alpha())));
}

void infer_lerp(LerpArgs a, Plan &plan)
{
    yoke_dtype dtype = promote_tensors(a.x(), a.y());
    dtype = is_scalar(a.weight()) ? promote_scalar(dtype, a.weight().kind)
                                  : promote(dtype, promote_tensors(a.x(), *a.weight().v.tensor));
    if (!is_floating(dtype)) dtype = default_dtype();
    for (const int i : {a.kX, a.kY, a.kWeight}) plan.cast(i, dtype);
    plan_broadcast(a, {a.kX, a.kY, a.kWeight}, plan, dtype);
    // A number keeps its digits beside halves.
    if (is_half(dtype)) plan.scalar_dtype(YOKE_F32);
}

void vjp_lerp(LerpArgs a, Backward &b)
{
    if (b.needs(a.kX)) {
        const Tensor rest = is_scalar(a.weight()) ? ops::mul(b.grad(), 1 - scalar_f64(a.weight()))
                                                  : ops::mul(b.grad(), ops::sub(1.0, a.weight()));
        b.set(a.kX, sum_to(rest, a.x().shape()));
    }
    if (b.needs(a.kY)) b.set(a.kY, sum_to(ops::mul(b.grad(), a.weight()), a.y().shape()));
    if (b.needs(a.kWeight))
        set_broadcast(b, a.kWeight, a.weight(), ops::mul(b.grad(), ops::sub(a.y(), a.x())));
}

namespace {

// Broadcasts the three tensors of addcmul or addcdiv, whose dtype can hold `value`.
template <class TripleArgs>
void plan_triple(TripleArgs a, Plan &plan, bool divides)
{
    yoke_dtype dtype =
        promote(promote_tensors(a.x(), a.tensor1()), promote_tensors(a.x(), a.tensor2()));
    if (divides && !is_floating(dtype)) dtype = default_dtype();
    if (dtype == YOKE_BOOL)
        fail(YOKE_E_TYPE, "%s: bool tensors do not support %s; cast one to an integer dtype",
             plan.name(), plan.name());
    if (a.value().kind == YOKE_ARG_FLOAT && !is_floating(dtype))
        fail(
            YOKE_E_TYPE,
            "%s: argument 'value' is %s, and the tensors are %s together; give an integer, or cast a tensor to a floating dtype",
            plan.name(), text_of(a.value()).c_str(), name(dtype));
    for (const int i : {a.kX, a.kTensor1, a.kTensor2}) plan.cast(i, dtype);
    plan_broadcast(a, {a.kX, a.kTensor1, a.kTensor2}, plan, dtype);
}

}  // namespace

void infer_addcmul(AddcmulArgs a, Plan &plan)
{
    plan_triple(a, plan, false);
}

void vjp_addcmul(AddcmulArgs a, Backward &b)
{
    if (b.needs(a.kX)) b.set(a.kX, sum_to(b.grad(), a.x().shape()));
    if (b.needs(a.kTensor1))
        b.set(a.kTensor1,
              sum_to(ops::mul(ops::mul(b.grad(), a.tensor2()), a.value()), a.tensor1().shape()));
    if (b.needs(a.kTensor2))
        b.set(a.kTensor2,
              sum_to(ops::mul(ops::mul(b.grad(), a.tensor1()), a.value()), a.tensor2().shape()));
}

void infer_addcdiv(AddcdivArgs a, Plan &plan)
{
    plan_triple(a, plan, true);
}

void vjp_addcdiv(AddcdivArgs a, Backward &b)
{
    if (b.needs(a.kX)) b.set(a.kX, sum_to(b.grad(), a.x().shape()));
    if (!b.needs(a.kTensor1) && !b.needs(a.kTensor2)) return;
    const Tensor share = ops::mul(ops::div(b.grad(), a.tensor2()), a.value());
    if (b.needs(a.kTensor1)) b.set(a.kTensor1, sum_to(share, a.tensor1().shape()));
    if (b.needs(a.kTensor2))
        b.set(a.kTensor2, sum_to(ops::neg(ops::mul(share, ops::div(a.tensor1(), a.tensor2()))),
                                 a.tensor2().shape()));
}

// ---- Nearly equal ----------------------------------------------------------------------------------------

Tensor compose_allclose(AllcloseArgs a)
{
    return ops::all(ops::isclose(a.x(), a.y(), a.rtol(), a.atol(), a.equal_nan()));
}

Tensor compose_equal(EqualArgs a)
{
    const yoke_tensor &x = a.x();
    if (!same(x.shape(), a.y().shape())) return ops::full({}, int64_t{0}, YOKE_BOOL, x.device);
    return ops::all(ops::eq(x, a.y()));
}

}  // namespace yoke
