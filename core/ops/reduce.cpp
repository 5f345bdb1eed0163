// reduce.cpp: reductions over axes: shape rules and vjps.
#include <algorithm>
#include <cmath>

#include "core/ops/family.h"
#include "core/ops/rules.h"

namespace yoke {

namespace {

// Returns the dtype for computing with x: float32 for halves, else x's dtype.
yoke_dtype wide(const yoke_tensor &x)
{
    return is_half(x.dtype) ? YOKE_F32 : x.dtype;
}

// Casts as rules::cast_to_wanted does, for a reduction defined only for floats, named by `what`. Returns the result's
// dtype. Raises YOKE_E_TYPE if this dtype would not be floating.
yoke_dtype cast_floating_to_wanted(Plan &plan, int arg, const yoke_tensor &x, yoke_dtype wanted,
                                   const char *what)
{
    if (wanted != YOKE_NONE && !is_floating(wanted))
        fail(
            YOKE_E_TYPE,
            "%s: argument 'dtype' is %s, which cannot hold a %s; give a floating dtype, such as float32, and cast the result",
            plan.name(), name(wanted), what);
    if (wanted == YOKE_NONE && !is_floating(x.dtype))
        fail(
            YOKE_E_TYPE,
            "%s: argument 'x' is %s, which cannot hold a %s; give dtype=float32, or cast 'x' first",
            plan.name(), name(x.dtype), what);
    return is_floating(x.dtype) ? rules::cast_to_wanted(plan, arg, x, wanted)
                                : (plan.cast(arg, wanted), wanted);
}

// Raises YOKE_E_VALUE if a reduced axis is empty, for reductions without an identity; `missing` names the missing
// result.
void check_not_empty(const yoke_tensor &x, IntList axes, const char *call, const char *missing)
{
    for (const int64_t axis : axes)
        if (x.ndim > 0 && x.shape_[axis] == 0)
            fail(YOKE_E_VALUE, "%s: axis %lld of shape %s is empty, so it has no %s", call,
                 static_cast<long long>(axis), to_string(x.shape()).c_str(), missing);
}

// Returns x's shape with the reduced axes kept, at length 1.
Dims kept_shape(const yoke_tensor &x, IntList axes)
{
    Dims kept{x.shape()};
    for (const int64_t axis : axes)
        if (x.ndim > 0) kept[static_cast<int>(axis)] = 1;
    return kept;
}

// Returns a result, or its gradient, for a kernel that reads x beside this tensor, in the dtype for computing with x.
Tensor beside(const yoke_tensor &result, const yoke_tensor &x, IntList axes)
{
    return ops::cast(ops::reshape(result, kept_shape(x, axes)), wide(x));
}

Tensor stretched(const Tensor &gradient, IntList axes, const yoke_tensor &x)
{
    return ops::cast(expand_reduced(gradient, Dims(x.ndim ? axes : IntList()), x.shape()), x.dtype);
}

}  // namespace

void vjp_sum(SumArgs a, Backward &b)
{
    b.set(a.kX, stretched(b.grad(), *a.axis(), a.x()));
}

void infer_mean(MeanArgs a, Plan &plan)
{
    rules::reduce_to(a, a.kX, a.kAxis, a.kKeepdim, plan,
                     cast_floating_to_wanted(plan, a.kX, a.x(), a.dtype(), "mean"));
}

void vjp_mean(MeanArgs a, Backward &b)
{
    const int64_t count = b.grad()->numel ? a.x().numel / b.grad()->numel : 0;
    b.set(a.kX, stretched(ops::div(b.grad(), static_cast<double>(count)), *a.axis(), a.x()));
}

void vjp_prod(ProdArgs a, Backward &b)
{
    b.set(a.kX, ops::prod_backward(beside(b.grad(), a.x(), *a.axis()), a.x()));
}

void infer_amax(AmaxArgs a, Plan &plan)
{
    rules::reduce_to(a, a.kX, a.kAxis, a.kKeepdim, plan, a.x().dtype);
    check_not_empty(a.x(), *a.axis(), plan.name(), "largest element");
}

void infer_amin(AminArgs a, Plan &plan)
{
    rules::reduce_to(a, a.kX, a.kAxis, a.kKeepdim, plan, a.x().dtype);
    check_not_empty(a.x(), *a.axis(), plan.name(), "smallest element");
}

namespace {

template <class ExtremeArgs>
void share_among_ties(ExtremeArgs a, Backward &b)
{
    const Dims kept = kept_shape(a.x(), *a.axis());
    b.set(a.kX, ops::amax_backward(ops::reshape(b.grad(), kept), a.x(), ops::view(b.out(), kept)));
}

}  // namespace

void vjp_amax(AmaxArgs a, Backward &b)
{
    share_among_ties(a, b);
}

void vjp_amin(AminArgs a, Backward &b)
{
    share_among_ties(a, b);
}

namespace {

template <class ArgExtreme>
void infer_place(ArgExtreme a, Plan &plan, const char *missing)
{
    const yoke_tensor &x = a.x();
    Dims shape;
    if (a.axis()) {
        const int axis = normalize_axis(*a.axis(), x.ndim, plan.name());
        a.set_axis(axis);
        shape = Dims(x.shape());
        if (x.ndim > 0 && a.keepdim())
            shape[axis] = 1;
        else if (x.ndim > 0)
            shape.erase(axis);
        const int64_t chosen = axis;
        check_not_empty(x, {&chosen, 1}, plan.name(), missing);
    } else {
        shape = Dims(a.keepdim() ? x.ndim : 0, 1);
        if (x.numel == 0)
            fail(YOKE_E_VALUE, "%s: a tensor of shape %s has no %s", plan.name(),
                 to_string(x.shape()).c_str(), missing);
    }
    plan.result(shape, YOKE_I64);
}

}  // namespace

void infer_argmax(ArgmaxArgs a, Plan &plan)
{
    infer_place(a, plan, "largest element");
}

void infer_argmin(ArgminArgs a, Plan &plan)
{
    infer_place(a, plan, "smallest element");
}

namespace {

// States the result, and the mean in float64, which keeps the digits of the gradient's deviations.
template <class MomentArgs>
void plan_moment(MomentArgs a, Plan &plan)
{
    check_floating(a.x(), plan.name(), "x");
    rules::reduce_to(a, a.kX, a.kAxis, a.kKeepdim, plan, a.x().dtype);
    plan.result(Dims(plan.stated(0).shape()), YOKE_F64);
}

// Returns the divisor of the variance: the number of reduced elements less the correction, at least 0.
template <class MomentArgs>
double divisor_of(MomentArgs a, const Tensor &slope)
{
    const int64_t count = slope->numel ? a.x().numel / slope->numel : 0;
    return std::max(0.0, static_cast<double>(count) - static_cast<double>(a.correction()));
}

// Returns slope * (x - mean).
template <class MomentArgs>
Tensor deviations(MomentArgs a, Backward &b, const Tensor &slope)
{
    return ops::var_backward(slope, a.x(), ops::view(b.out(1), slope->shape()));
}

// Returns a result, or its gradient, in float64 beside x.
Tensor wide_beside(const yoke_tensor &result, const yoke_tensor &x, IntList axes)
{
    return ops::cast(ops::reshape(result, kept_shape(x, axes)), YOKE_F64);
}

}  // namespace

void infer_var(VarArgs a, Plan &plan)
{
    plan_moment(a, plan);
}

// States the result, the mean, and the result in float64 too: the dtype of x may not hold a small result.
void infer_std(StdArgs a, Plan &plan)
{
    plan_moment(a, plan);
    plan.result(Dims(plan.stated(0).shape()), YOKE_F64);
}

// Sets the gradient. If the correction leaves no elements to divide by, the gradient is infinite or NaN, as the
// result is.
void vjp_var(VarArgs a, Backward &b)
{
    const Tensor grad = wide_beside(b.grad(), a.x(), *a.axis());
    b.set(a.kX, deviations(a, b, ops::mul(grad, 2 / divisor_of(a, grad))));
}

void vjp_std(StdArgs a, Backward &b)
{
    const Tensor grad = wide_beside(b.grad(), a.x(), *a.axis());
    const Tensor share = ops::div(grad, divisor_of(a, grad));
    const Tensor deviation = ops::view(b.out(2), grad->shape());
    // Where all elements are equal, the root has no slope; 0 is as good as any, and does no harm.
    const auto inverse_of = [&](const Tensor &size) {
        return ops::where(ops::eq(deviation, 0.0), 0.0, ops::div(1.0, size));
    };
    if (a.x().dtype != YOKE_F64)
        return b.set(a.kX, deviations(a, b, ops::mul(share, inverse_of(deviation))));
    // In float64 products and the inverse may leave the range where the gradient does not.
    const Tensor is_tiny = ops::cast(ops::lt(deviation, 1e-290), YOKE_F64);
    const Tensor scale = ops::add(ops::mul(is_tiny, 0x1p200), 1.0);
    const Tensor slope = ops::mul(deviations(a, b, scale), inverse_of(ops::mul(deviation, scale)));
    b.set(a.kX, ops::mul(slope, share));
}

void infer_norm(NormArgs a, Plan &plan)
{
    const yoke_dtype dtype = cast_floating_to_wanted(plan, a.kX, a.x(), a.dtype(), "norm");
    rules::reduce_to(a, a.kX, a.kAxis, a.kKeepdim, plan, dtype);
    if (std::isnan(a.p()))
        fail(YOKE_E_VALUE, "%s: argument 'p' is NaN; it must be a number", plan.name());
    if (a.p() < 0 || std::isinf(a.p()))
        check_not_empty(a.x(), *a.axis(), plan.name(), format("norm of order %g", a.p()).c_str());
}

void vjp_norm(NormArgs a, Backward &b)
{
    const Tensor grad = beside(b.grad(), a.x(), *a.axis());
    b.set(a.kX, ops::norm_backward(grad, a.x(), beside(b.out(), a.x(), *a.axis()), a.p()));
}

void vjp_logsumexp(LogsumexpArgs a, Backward &b)
{
    const Tensor grad = beside(b.grad(), a.x(), *a.axis()), out = beside(b.out(), a.x(), *a.axis());
    // The result is rounded: of a large one exp(x - out) is off by far more than a rounding, for all elements alike.
    const Tensor weights = ops::logsumexp_backward(ops::ones_like(grad), a.x(), out);
    const Tensor total = ops::sum(weights, *a.axis(), true, grad->dtype);
    // Where a result is infinite there is no such total.
    const Tensor share = ops::where(ops::gt(total, 0.0), ops::div(grad, total), grad);
    b.set(a.kX, ops::logsumexp_backward(share, a.x(), out));
}

void infer_cumsum(CumsumArgs a, Plan &plan)
{
    const yoke_dtype wanted = a.dtype();
    const yoke_dtype dtype = rules::cast_to_wanted(plan, a.kX, a.x(), wanted);
    plan.cast(a.kX, is_floating(dtype) ? dtype : a.x().dtype);
    a.set_axis(normalize_axis(a.axis(), a.x().ndim, plan.name()));
    plan.result_like(a.x(), dtype);
}

void vjp_cumsum(CumsumArgs a, Backward &b)
{
    b.set(a.kX, ops::cast(ops::reverse_cumsum(b.grad(), a.axis()), a.x().dtype));
}

void infer_cumprod(CumprodArgs a, Plan &plan)
{
    const yoke_dtype wanted = a.dtype();
    const yoke_dtype dtype = rules::cast_to_wanted(plan, a.kX, a.x(), wanted);
    plan.cast(a.kX, is_floating(dtype) ? dtype : a.x().dtype);
    a.set_axis(normalize_axis(a.axis(), a.x().ndim, plan.name()));
    plan.result_like(a.x(), dtype);
}

void vjp_cumprod(CumprodArgs a, Backward &b)
{
    // The gradient of a half may be float32, where the result is.
    const Tensor x = ops::cast(a.x(), b.grad()->dtype);
    b.set(a.kX, ops::cast(ops::cumprod_backward(b.grad(), x, a.axis()), a.x().dtype));
}

}  // namespace yoke
