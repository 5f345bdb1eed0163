// axes.cpp: axes joined, divided, moved or cut: compositions of views, and two views with a rule of their own.
#include "core/ops/arrange.h"

#include <algorithm>
#include <vector>

namespace yoke {

// ---- Fewer and more axes ---------------------------------------------------------------------------------

Tensor compose_flatten(FlattenArgs a)
{
    const yoke_tensor &x = a.x();
    const int first = normalize_axis(a.start_axis(), x.ndim, "flatten");
    const int last = normalize_axis(a.end_axis(), x.ndim, "flatten");
    if (first > last)
        fail(
            YOKE_E_VALUE,
            "flatten: argument 'start_axis' is %lld and 'end_axis' %lld, for shape %s; the end must not come before the start",
            static_cast<long long>(a.start_axis()), static_cast<long long>(a.end_axis()),
            to_string(x.shape()).c_str());
    Dims shape;
    for (int i = 0; i < x.ndim; ++i)
        if (i > first && i <= last)
            shape[first] *= x.shape_[i];
        else
            shape.push_back(x.shape_[i]);
    return ops::reshape(x, x.ndim ? shape : Dims{1});
}

Tensor compose_unflatten(UnflattenArgs a)
{
    const yoke_tensor &x = a.x();
    const int axis = existing_axis(x, a.axis(), "unflatten");
    const int64_t length = x.shape_[axis];
    Dims sizes{a.sizes()};
    int open = -1;
    int64_t known = 1;
    bool fits = sizes.size() > 0;
    for (int i = 0; i < sizes.size(); ++i) {
        if (sizes[i] == -1 && open < 0)
            open = i;
        else
            fits = fits && sizes[i] >= 0 && !__builtin_mul_overflow(known, sizes[i], &known);
    }
    if (fits && open >= 0) {
        fits = known > 0 && length % known == 0;
        if (fits) known *= sizes[open] = length / known;
    }
    if (!fits || known != length)
        fail(
            YOKE_E_VALUE,
            "unflatten: argument 'sizes' is %s; the sizes must multiply to %lld, the length of axis %d of shape %s, with one -1 at most",
            to_string(a.sizes()).c_str(), static_cast<long long>(length), axis,
            to_string(x.shape()).c_str());
    Dims shape{x.shape()};
    shape.erase(axis);
    for (int i = 0; i < sizes.size(); ++i) shape.insert(axis + i, sizes[i]);
    return ops::view(x, shape);
}

Tensor compose_ravel(RavelArgs a)
{
    return ops::reshape(a.x(), Dims{a.x().numel});
}

// ---- Another order ---------------------------------------------------------------------------------------

namespace {

// Returns the axes counted from 0. Raises YOKE_E_VALUE if an axis stands there twice.
Dims different_axes(const yoke_tensor &x, IntList given, const char *arg)
{
    Dims axes;
    uint64_t seen = 0;
    for (const int64_t one : given) {
        const int axis = normalize_axis(one, x.ndim, "movedim");
        if (seen >> axis & 1)
            fail(YOKE_E_VALUE,
                 "movedim: argument '%s' is %s, which names axis %d twice; name it once", arg,
                 to_string(given).c_str(), axis);
        seen |= uint64_t{1} << axis;
        axes.push_back(axis);
    }
    return axes;
}

}  // namespace

Tensor compose_movedim(MovedimArgs a)
{
    const yoke_tensor &x = a.x();
    const Dims from = different_axes(x, a.source(), "source");
    const Dims to = different_axes(x, a.destination(), "destination");
    if (from.size() != to.size())
        fail(
            YOKE_E_VALUE,
            "movedim: argument 'source' is %s and 'destination' %s; both must have the same length",
            to_string(a.source()).c_str(), to_string(a.destination()).c_str());
    if (x.ndim == 0) return ops::permute(x, {});
    Dims order(x.ndim, -1);
    bool moves[YOKE_MAX_NDIM] = {};
    for (int i = 0; i < from.size(); ++i) {
        order[static_cast<int>(to[i])] = from[i];
        moves[from[i]] = true;
    }
    int next = 0;
    for (int i = 0; i < x.ndim; ++i) {
        if (order[i] >= 0) continue;
        while (moves[next]) ++next;
        order[i] = next++;
    }
    return ops::permute(x, order);
}

Tensor compose_swapaxes(SwapaxesArgs a)
{
    return ops::transpose(a.x(), a.axis0(), a.axis1());
}

// ---- A part ----------------------------------------------------------------------------------------------

Tensor compose_narrow(NarrowArgs a)
{
    const yoke_tensor &x = a.x();
    const int axis = existing_axis(x, a.axis(), "narrow");
    const int64_t size = x.shape_[axis];
    const int64_t start = a.start() < 0 ? a.start() + size : a.start();
    if (start < 0 || start > size || a.length() < 0 || a.length() > size - start)
        fail(
            YOKE_E_VALUE,
            "narrow: arguments 'start' and 'length' are %lld and %lld; the part must lie within axis %d of shape %s",
            static_cast<long long>(a.start()), static_cast<long long>(a.length()), axis,
            to_string(x.shape()).c_str());
    return ops::slice(x, axis, start, start + a.length());
}

namespace {

// Shape and strides of the diagonals of a tensor, and the place of their first element.
struct Diagonals {
    Dims shape, strides;
    int64_t offset = 0;

    Diagonals(IntList sizes, const int64_t *steps, int64_t above, int axis1, int axis2)
    {
        const int64_t rows = sizes[static_cast<size_t>(axis1)],
                      columns = sizes[static_cast<size_t>(axis2)];
        for (int i = 0; i < static_cast<int>(sizes.size()); ++i)
            if (i != axis1 && i != axis2) {
                shape.push_back(sizes[static_cast<size_t>(i)]);
                strides.push_back(steps[i]);
            }
        // Beyond either corner there is no diagonal.
        above = std::clamp(above, -rows, columns);
        const int64_t length =
            above >= 0 ? std::min(rows, columns - above) : std::min(rows + above, columns);
        shape.push_back(length);
        strides.push_back(steps[axis1] + steps[axis2]);
        if (length > 0) offset = above >= 0 ? above * steps[axis2] : -above * steps[axis1];
    }
};

}  // namespace

void infer_diagonal(DiagonalArgs a, Plan &plan)
{
    const yoke_tensor &x = a.x();
    if (x.ndim < 2)
        fail(YOKE_E_VALUE, "%s: argument 'x' has shape %s; a diagonal needs two axes", plan.name(),
             to_string(x.shape()).c_str());
    const int axis1 = normalize_axis(a.axis1(), x.ndim, plan.name());
    const int axis2 = normalize_axis(a.axis2(), x.ndim, plan.name());
    if (axis1 == axis2)
        fail(
            YOKE_E_VALUE,
            "%s: arguments 'axis1' and 'axis2' are %lld and %lld, the same axis of shape %s; name two axes",
            plan.name(), static_cast<long long>(a.axis1()), static_cast<long long>(a.axis2()),
            to_string(x.shape()).c_str());
    a.set_axis1(axis1);
    a.set_axis2(axis2);
    const Diagonals d(x.shape(), x.strides_, a.offset(), axis1, axis2);
    plan.view(x, d.shape, d.strides.data(), d.offset);
}

void vjp_diagonal(DiagonalArgs a, Backward &b)
{
    const Tensor whole = ops::zeros(a.x().shape(), a.x().dtype, a.x().device);
    const Diagonals d(whole->shape(), whole->strides_, a.offset(), static_cast<int>(a.axis1()),
                      static_cast<int>(a.axis2()));
    ops::copy_(make_view(whole, d.shape, d.strides.data(), d.offset), b.grad());
    b.set(a.kX, whole);
}

void infer_unfold(UnfoldArgs a, Plan &plan)
{
    const yoke_tensor &x = a.x();
    const int axis = existing_axis(x, a.axis(), plan.name());
    if (a.size() < 0 || a.size() > x.shape_[axis])
        fail(YOKE_E_VALUE,
             "%s: argument 'size' is %lld; it must be 0 to %lld, the length of axis %d of shape %s",
             plan.name(), static_cast<long long>(a.size()), static_cast<long long>(x.shape_[axis]),
             axis, to_string(x.shape()).c_str());
    if (a.step() < 1)
        fail(YOKE_E_VALUE, "%s: argument 'step' is %lld; it must be 1 or more", plan.name(),
             static_cast<long long>(a.step()));
    a.set_axis(axis);
    Dims shape{x.shape()}, strides{x.strides()};
    shape[axis] = (x.shape_[axis] - a.size()) / a.step() + 1;
    // A step to no second window leads nowhere, and may be too large to multiply.
    strides[axis] = shape[axis] > 1 ? x.strides_[axis] * a.step() : x.strides_[axis];
    shape.push_back(a.size());
    strides.push_back(x.strides_[axis]);
    plan.view(x, shape, strides.data(), 0);
}

// Adds the gradients of windows, an element of all windows at a time: these elements lie in different places.
void vjp_unfold(UnfoldArgs a, Backward &b)
{
    const Tensor whole = ops::zeros(a.x().shape(), a.x().dtype, a.x().device);
    const int axis = static_cast<int>(a.axis());
    const int64_t windows = b.grad()->shape_[axis];
    for (int64_t i = 0; i < a.size(); ++i) {
        Dims shape{whole->shape()}, strides{whole->strides()};
        shape[axis] = windows;
        strides[axis] *= windows > 1 ? a.step() : 1;
        const Tensor part =
            make_view(whole, shape, strides.data(), whole->numel ? i * whole->strides_[axis] : 0);
        ops::add_(part, ops::squeeze(ops::slice(b.grad(), -1, i, i + 1), -1));
    }
    b.set(a.kX, whole);
}

}  // namespace yoke
