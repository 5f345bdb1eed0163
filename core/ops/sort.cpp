// sort.cpp: sort, argsort and topk: shape rules and vjps.
#include "core/ops/family.h"

namespace yoke {

namespace {

// Puts each element's gradient back at the element's former place; all other gradients are 0.
Tensor unsorted(const Tensor &gradient, const yoke_tensor &indices, int64_t axis,
                const yoke_tensor &x)
{
    if (x.ndim == 0) return gradient;
    const Tensor zeros = ops::zeros(x.shape(), gradient->dtype, x.device);
    return ops::scatter_add(zeros, axis, indices, gradient);
}

}  // namespace

void infer_sort(SortArgs a, Plan &plan)
{
    a.set_axis(normalize_axis(a.axis(), a.x().ndim, plan.name()));
    plan.result_like(a.x(), a.x().dtype);
    plan.result_like(a.x(), YOKE_I64);
}

void vjp_sort(SortArgs a, Backward &b)
{
    b.set(a.kX, unsorted(b.grad(), b.out(1), a.axis(), a.x()));
}

void infer_argsort(ArgsortArgs a, Plan &plan)
{
    a.set_axis(normalize_axis(a.axis(), a.x().ndim, plan.name()));
    plan.result_like(a.x(), YOKE_I64);
}

static void check_k(TopkArgs a, int axis, const char *name)
{
    const yoke_tensor &x = a.x();
    const int64_t length = x.ndim > 0 ? x.shape_[axis] : 1;
    if (a.k() < 0 || a.k() > length)
        fail(YOKE_E_VALUE,
             "%s: argument 'k' is %lld; it must be 0 to %lld, the length of axis %d of shape %s",
             name, static_cast<long long>(a.k()), static_cast<long long>(length), axis,
             to_string(x.shape()).c_str());
    if (x.ndim == 0 && a.k() == 0)
        fail(YOKE_E_VALUE, "%s: argument 'k' is 0; for a tensor of shape [] it must be 1", name);
}

void infer_topk(TopkArgs a, Plan &plan)
{
    const yoke_tensor &x = a.x();
    const int axis = normalize_axis(a.axis(), x.ndim, plan.name());
    check_k(a, axis, plan.name());
    a.set_axis(axis);
    Dims shape{x.shape()};
    if (x.ndim > 0) shape[axis] = a.k();
    plan.result(shape, x.dtype);
    plan.result(shape, YOKE_I64);
}

void vjp_topk(TopkArgs a, Backward &b)
{
    b.set(a.kX, unsorted(b.grad(), b.out(1), a.axis(), a.x()));
}

}  // namespace yoke
