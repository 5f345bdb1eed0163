// softmax.cpp: softmax and its logarithm: shape rules and vjps.
#include "core/ops/family.h"

namespace yoke {

namespace {

template <class SoftmaxLike>
void infer_along_axis(SoftmaxLike a, Plan &plan)
{
    if (a.dtype() != YOKE_NONE && !is_floating(a.dtype()))
        fail(YOKE_E_TYPE, "%s: argument 'dtype' is %s; it takes a floating dtype", plan.name(),
             name(a.dtype()));
    if (a.dtype() != YOKE_NONE) plan.cast(a.kX, a.dtype());
    const yoke_dtype dtype = cast_to_floating(plan, a.kX, a.x());
    a.set_axis(normalize_axis(a.axis(), a.x().ndim, plan.name()));
    plan.result_like(a.x(), dtype);
}

}  // namespace

void infer_softmax(SoftmaxArgs a, Plan &plan)
{
    infer_along_axis(a, plan);
}

void vjp_softmax(SoftmaxArgs a, Backward &b)
{
    b.set(a.kX, ops::softmax_backward(b.grad(), b.out(), a.axis()));
}

void infer_log_softmax(LogSoftmaxArgs a, Plan &plan)
{
    infer_along_axis(a, plan);
}

void vjp_log_softmax(LogSoftmaxArgs a, Backward &b)
{
    b.set(a.kX, ops::log_softmax_backward(b.grad(), b.out(), a.axis()));
}

}  // namespace yoke
