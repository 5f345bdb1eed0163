// shape.cpp: views: shape rules and vjps.
#include "core/ops/family.h"

#include <algorithm>

namespace yoke {

namespace {

// Returns `shape` with its only -1 replaced by the length that x's size requires. Raises YOKE_E_VALUE if the shape
// does not fit x.
Dims settled_shape(const yoke_tensor &x, IntList wanted, const char *call)
{
    Dims shape{wanted};
    int open = -1;
    for (int i = 0; i < shape.size(); ++i) {
        if (shape[i] != -1) continue;
        if (open >= 0)
            fail(YOKE_E_VALUE, "%s: shape %s has more than one -1; write every size except one",
                 call, to_string(wanted).c_str());
        open = i;
        shape[i] = 1;
    }
    const int64_t rest = checked_numel(shape, call);
    if (open >= 0 && rest == 0 && x.numel == 0)
        fail(
            YOKE_E_VALUE,
            "%s: shape %s is ambiguous for the empty %s: beside a size of 0, -1 may stand for any size; write the size",
            call, to_string(wanted).c_str(), describe(x).c_str());
    if (open >= 0 && rest > 0) shape[open] = x.numel / rest;
    if (rest == 0 ? x.numel != 0 || open >= 0 : checked_numel(shape, call) != x.numel)
        fail(YOKE_E_VALUE, "%s: shape %s does not hold the %lld elements of %s", call,
             to_string(wanted).c_str(), static_cast<long long>(x.numel), describe(x).c_str());
    return shape;
}

Tensor same_tensor(const yoke_tensor &x)
{
    return Tensor::share(const_cast<yoke_tensor *>(&x));
}

struct Range {
    int64_t first, count;
};

// Returns first index and length of a slice, by NumPy's rules: out-of-range bounds are cut, not refused.
Range settled_slice(int64_t size, std::optional<int64_t> start, std::optional<int64_t> stop,
                    int64_t step)
{
    const int64_t lowest = step > 0 ? 0 : -1, highest = step > 0 ? size : size - 1;
    const auto cut = [&](int64_t bound) {
        return std::clamp(bound < 0 ? bound + size : bound, lowest, highest);
    };
    const int64_t first = start ? cut(*start) : (step > 0 ? lowest : highest);
    const int64_t end = stop ? cut(*stop) : (step > 0 ? highest : lowest);
    const uint64_t length = static_cast<uint64_t>(step > 0 ? end - first : first - end);
    const uint64_t pace = step > 0 ? static_cast<uint64_t>(step) : 0 - static_cast<uint64_t>(step);
    const bool empty = step > 0 ? end <= first : first <= end;
    return {first, empty ? 0 : static_cast<int64_t>((length - 1) / pace + 1)};
}

}  // namespace

// ---- Another shape ---------------------------------------------------------------------------------------

Tensor compose_reshape(ReshapeArgs a)
{
    const Dims shape = settled_shape(a.x(), a.shape(), "reshape");
    int64_t strides[YOKE_MAX_NDIM];
    return view_strides(a.x(), shape, strides) ? ops::view(a.x(), shape)
                                               : ops::view(ops::clone(a.x()), shape);
}

void infer_view(ViewArgs a, Plan &plan)
{
    const Dims shape = settled_shape(a.x(), a.shape(), plan.name());
    int64_t strides[YOKE_MAX_NDIM];
    if (!view_strides(a.x(), shape, strides))
        fail(YOKE_E_VALUE,
             "%s: strides %s of shape %s cannot be seen as shape %s without a copy; use reshape",
             plan.name(), to_string(a.x().strides()).c_str(), to_string(a.x().shape()).c_str(),
             to_string(shape).c_str());
    plan.view(a.x(), shape, strides, 0);
}

void vjp_view(ViewArgs a, Backward &b)
{
    b.set(a.kX, ops::reshape(b.grad(), a.x().shape()));
}

Tensor compose_squeeze(SqueezeArgs a)
{
    const yoke_tensor &x = a.x();
    Dims shape;
    const int only = a.axis() ? normalize_axis(*a.axis(), x.ndim, "squeeze") : -1;
    for (int i = 0; i < x.ndim; ++i)
        if (x.shape_[i] != 1 || (only >= 0 && i != only)) shape.push_back(x.shape_[i]);
    return ops::view(x, shape);
}

Tensor compose_unsqueeze(UnsqueezeArgs a)
{
    Dims shape{a.x().shape()};
    shape.insert(normalize_axis(a.axis(), a.x().ndim + 1, "unsqueeze"), 1);
    return ops::view(a.x(), shape);
}

Tensor compose_contiguous(ContiguousArgs a)
{
    return a.x().contiguous ? same_tensor(a.x()) : ops::clone(a.x());
}

// ---- Another order ---------------------------------------------------------------------------------------

void infer_transpose(TransposeArgs a, Plan &plan)
{
    const yoke_tensor &x = a.x();
    const int first = normalize_axis(a.axis0(), x.ndim, plan.name());
    const int second = normalize_axis(a.axis1(), x.ndim, plan.name());
    a.set_axis0(first);
    a.set_axis1(second);
    Dims shape{x.shape()}, strides{x.strides()};
    if (x.ndim > 0) {
        std::swap(shape[first], shape[second]);
        std::swap(strides[first], strides[second]);
    }
    plan.view(x, shape, strides.data(), 0);
}

void vjp_transpose(TransposeArgs a, Backward &b)
{
    b.set(a.kX, ops::transpose(b.grad(), a.axis0(), a.axis1()));
}

void infer_permute(PermuteArgs a, Plan &plan)
{
    const yoke_tensor &x = a.x();
    Dims axes, shape, strides;
    uint32_t seen = 0;
    for (const int64_t given : a.axes()) {
        const int axis = normalize_axis(given, x.ndim, plan.name());
        seen |= 1u << axis;
        axes.push_back(axis);
        shape.push_back(x.shape_[axis]);
        strides.push_back(x.strides_[axis]);
    }
    if (axes.size() != x.ndim || seen != (1u << x.ndim) - 1)
        fail(YOKE_E_VALUE, "%s: axes %s do not name each of the %d axes of shape %s once",
             plan.name(), to_string(a.axes()).c_str(), x.ndim, to_string(x.shape()).c_str());
    a.set_axes(plan.keep(axes));
    plan.view(x, shape, strides.data(), 0);
}

void vjp_permute(PermuteArgs a, Backward &b)
{
    const IntList axes = a.axes();
    Dims inverse(static_cast<int>(axes.size()), 0);
    for (size_t i = 0; i < axes.size(); ++i)
        inverse[static_cast<int>(axes[i])] = static_cast<int64_t>(i);
    b.set(a.kX, ops::permute(b.grad(), inverse));
}

void infer_expand(ExpandArgs a, Plan &plan)
{
    const yoke_tensor &x = a.x();
    Dims shape{a.shape()};
    const int extra = shape.size() - x.ndim;
    for (int i = 0; i < shape.size(); ++i)
        if (shape[i] == -1 && i >= extra && extra >= 0) shape[i] = x.shape_[i - extra];
    checked_numel(shape, plan.name());
    if (!broadcasts_to(x.shape(), shape))
        fail(YOKE_E_VALUE, "%s: shape %s does not broadcast to %s; sizes must be equal or 1",
             plan.name(), to_string(x.shape()).c_str(), to_string(a.shape()).c_str());
    Dims strides(shape.size(), 0);
    for (int i = 0; i < x.ndim; ++i)
        if (x.shape_[i] == shape[i + extra]) strides[i + extra] = x.strides_[i];
    plan.view(x, shape, strides.data(), 0);
}

void vjp_expand(ExpandArgs a, Backward &b)
{
    b.set(a.kX, sum_to(b.grad(), a.x().shape()));
}

// ---- A part ----------------------------------------------------------------------------------------------

void infer_slice(SliceArgs a, Plan &plan)
{
    const yoke_tensor &x = a.x();
    if (a.step() == 0)
        fail(YOKE_E_VALUE, "%s: argument 'step' is 0; it must be positive or negative",
             plan.name());
    if (x.ndim == 0) fail(YOKE_E_INDEX, "%s: a tensor without axes cannot be sliced", plan.name());
    const int axis = normalize_axis(a.axis(), x.ndim, plan.name());
    const Range range = settled_slice(x.shape_[axis], a.start(), a.stop(), a.step());
    a.set_axis(axis);
    a.set_start(range.first);
    Dims shape{x.shape()}, strides{x.strides()};
    shape[axis] = range.count;
    // A step across an axis of one element leads nowhere, and may be too large to multiply.
    strides[axis] = range.count > 1 ? strides[axis] * a.step() : strides[axis];
    plan.view(x, shape, strides.data(), range.count ? range.first * x.strides_[axis] : 0);
}

void vjp_slice(SliceArgs a, Backward &b)
{
    const Tensor whole = ops::zeros(a.x().shape(), a.x().dtype, a.x().device);
    const int axis = static_cast<int>(a.axis());
    const int64_t count = b.grad()->shape_[axis];
    Dims strides{whole->strides()};
    const int64_t offset = count ? *a.start() * strides[axis] : 0;
    strides[axis] *= count > 1 ? a.step() : 1;
    const Tensor part = make_view(whole, b.grad()->shape(), strides.data(), offset);
    ops::copy_(part, b.grad());
    b.set(a.kX, whole);
}

}  // namespace yoke
