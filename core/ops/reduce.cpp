// reduce.cpp: reductions over axes: shape rules and vjps.
#include "core/ops/family.h"

namespace yoke {

namespace {

// Settles a list of axes (absent: all), and states the one result.
template <class ReduceArgs>
void infer_over_axes(ReduceArgs a, Plan &plan, yoke_dtype dtype)
{
    const yoke_tensor &x = a.x();
    const std::optional<IntList> given = a.axis();
    const Dims axes = normalize_axes(given ? &*given : nullptr, x.ndim, plan.name());
    bool gone[YOKE_MAX_NDIM] = {};
    for (const int64_t axis : axes) gone[axis] = x.ndim > 0;
    Dims shape;
    for (int i = 0; i < x.ndim; ++i)
        if (!gone[i] || a.keepdim()) shape.push_back(gone[i] ? 1 : x.shape_[i]);
    a.set_axis(plan.keep(axes));
    plan.result(shape, dtype);
}

// A dtype argument means: in that dtype from the start. Wider accumulation of halves and integers the kernels do
// themselves.
yoke_dtype cast_for_sum(Plan &plan, int arg, const yoke_tensor &x, yoke_dtype wanted)
{
    const bool half = x.dtype == YOKE_F16 || x.dtype == YOKE_BF16;
    const yoke_dtype natural = is_floating(x.dtype) ? x.dtype : YOKE_I64;
    if (wanted == YOKE_NONE) return natural;
    if (wanted != natural && !(half && wanted == YOKE_F32)) plan.cast(arg, wanted);
    if (!is_floating(wanted) && wanted != YOKE_I64)
        fail(YOKE_E_TYPE, "%s: argument 'dtype' is %s; sums are taken in floating dtypes and int64",
             plan.name(), name(wanted));
    return wanted;
}

void check_not_empty(const yoke_tensor &x, IntList axes, const char *call)
{
    for (const int64_t axis : axes)
        if (x.ndim > 0 && x.shape_[axis] == 0)
            fail(YOKE_E_VALUE,
                 "%s: axis %lld of shape %s is empty, and nothing is the largest of nothing", call,
                 static_cast<long long>(axis), to_string(x.shape()).c_str());
}

Tensor stretched(const Tensor &gradient, IntList axes, const yoke_tensor &x)
{
    return ops::cast(expand_reduced(gradient, Dims(x.ndim ? axes : IntList()), x.shape()), x.dtype);
}

}  // namespace

void infer_sum(SumArgs a, Plan &plan)
{
    const yoke_dtype dtype = cast_for_sum(plan, a.kX, a.x(), a.dtype());
    infer_over_axes(a, plan, dtype);
}

void vjp_sum(SumArgs a, Backward &b)
{
    b.set(a.kX, stretched(b.grad(), *a.axis(), a.x()));
}

void infer_mean(MeanArgs a, Plan &plan)
{
    if (a.dtype() == YOKE_NONE ? !is_floating(a.x().dtype) : !is_floating(a.dtype()))
        fail(YOKE_E_TYPE, "%s: the mean of %s is not one; give dtype=float32", plan.name(),
             name(a.dtype() == YOKE_NONE ? a.x().dtype : a.dtype()));
    if (a.dtype() != YOKE_NONE) plan.cast(a.kX, a.dtype());
    infer_over_axes(a, plan, a.x().dtype);
}

void vjp_mean(MeanArgs a, Backward &b)
{
    const int64_t count = b.grad()->numel ? a.x().numel / b.grad()->numel : 0;
    b.set(a.kX, stretched(ops::div(b.grad(), static_cast<double>(count)), *a.axis(), a.x()));
}

void infer_amax(AmaxArgs a, Plan &plan)
{
    infer_over_axes(a, plan, a.x().dtype);
    check_not_empty(a.x(), *a.axis(), plan.name());
}

void vjp_amax(AmaxArgs a, Backward &b)
{
    // The kernel wants gradient and result with the reduced axes kept.
    Dims kept{a.x().shape()};
    const IntList axes = *a.axis();
    for (const int64_t axis : axes)
        if (a.x().ndim > 0) kept[static_cast<int>(axis)] = 1;
    b.set(a.kX, ops::amax_backward(ops::reshape(b.grad(), kept), a.x(), ops::view(b.out(), kept)));
}

void infer_amax_backward(AmaxBackwardArgs a, Plan &plan)
{
    plan.result(a.x().shape(), a.x().dtype);
}

void infer_argmax(ArgmaxArgs a, Plan &plan)
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
        check_not_empty(x, {&chosen, 1}, plan.name());
    } else {
        shape = Dims(a.keepdim() ? x.ndim : 0, 1);
        if (x.numel == 0)
            fail(YOKE_E_VALUE, "%s: a tensor of shape %s has no largest element", plan.name(),
                 to_string(x.shape()).c_str());
    }
    plan.result(shape, YOKE_I64);
}

}  // namespace yoke
