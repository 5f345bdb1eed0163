// index.cpp: ops with indices or masks: shape rules and vjps.
//
// gather and index_select take indices from 0 on, as in PyTorch. _index and index_put, used for x[…],
// also take negative indices, as in NumPy. The kernels check indices before any write.
#include "core/ops/index.h"

#include "core/ops/family.h"
#include "core/ops/scalar.h"

#include <vector>

namespace yoke {

void check_mask(const yoke_tensor &mask, const char *call)
{
    if (mask.dtype != YOKE_BOOL)
        fail(YOKE_E_TYPE, "%s: argument 'mask' is %s; it takes bool, as x > 0 gives", call,
             name(mask.dtype));
}

void check_lone_value(const yoke_tensor &x, const yoke_arg &value, const char *call)
{
    if (is_scalar(value)) return check_scalar_fits(value, x.dtype, call, "value");
    const yoke_tensor &given = *value.v.tensor;
    if (given.ndim)
        fail(YOKE_E_VALUE,
             "%s: argument 'value' has shape %s; it must be a number or a tensor of shape []", call,
             to_string(given.shape()).c_str());
    if ((is_floating(given.dtype) && !is_floating(x.dtype)) ||
        (x.dtype == YOKE_BOOL && given.dtype != YOKE_BOOL))
        fail(YOKE_E_TYPE,
             "%s: argument 'value' is %s, which does not fit into %s of 'x'; cast it first", call,
             name(given.dtype), name(x.dtype));
}

void check_dtype_of_x(const yoke_tensor &x, const yoke_tensor &other, const char *which,
                      const char *call)
{
    if (x.dtype != other.dtype)
        fail(YOKE_E_TYPE, "%s: argument 'x' is %s and '%s' is %s; cast one of them first", call,
             name(x.dtype), which, name(other.dtype));
}

void separate(Plan &plan, int arg, const yoke_tensor &x, const yoke_tensor &other)
{
    if (x.data == other.data && other.numel) plan.replace(arg, ops::clone(other));
}

namespace {

int64_t count_of(const yoke_tensor &x)
{
    int64_t count = 0;
    copy_to_host(ops::count_nonzero_internal(x), &count, sizeof count, "nonzero");
    return count;
}

}  // namespace

// ---- Along one axis --------------------------------------------------------------------------------------

void infer_index_select(IndexSelectArgs a, Plan &plan)
{
    const yoke_tensor &x = a.x(), &index = a.index();
    check_index(index, plan.name(), "index");
    if (index.ndim != 1)
        fail(YOKE_E_VALUE, "%s: argument 'index' has shape %s; it must have one axis: reshape it",
             plan.name(), to_string(index.shape()).c_str());
    if (x.ndim == 0)
        fail(YOKE_E_INDEX, "%s: argument 'x' has no axes; it must have at least one axis",
             plan.name());
    const int axis = normalize_axis(a.axis(), x.ndim, plan.name());
    a.set_axis(axis);
    Dims shape{x.shape()};
    shape[axis] = index.numel;
    plan.result(shape, x.dtype);
}

void vjp_index_select(IndexSelectArgs a, Backward &b)
{
    const Tensor nothing = ops::zeros(a.x().shape(), b.grad()->dtype, b.grad()->device);
    yoke_tensor *const indices[] = {const_cast<yoke_tensor *>(&a.index())};
    b.set(a.kX, ops::index_put(nothing, indices, b.grad(), true, a.axis()));
}

void check_index_shape(const yoke_tensor &index, const yoke_tensor &within, const char *which,
                       int axis, const char *call)
{
    bool fits = index.ndim == within.ndim;
    for (int i = 0; fits && i < index.ndim; ++i)
        fits = i == axis || index.shape_[i] <= within.shape_[i];
    if (fits) return;
    const std::string but = axis < 0 ? "" : format(", except axis %d", axis);
    fail(
        YOKE_E_VALUE,
        "%s: argument 'index' has shape %s and '%s' %s; both need the same number of axes, and 'index' may not be longer along any axis%s",
        call, to_string(index.shape()).c_str(), which, to_string(within.shape()).c_str(),
        but.c_str());
}

void infer_gather(GatherArgs a, Plan &plan)
{
    check_index(a.index(), plan.name(), "index");
    const int axis = normalize_axis(a.axis(), a.x().ndim, plan.name());
    check_index_shape(a.index(), a.x(), "x", axis, plan.name());
    a.set_axis(axis);
    plan.result(a.index().shape(), a.x().dtype);
}

void vjp_gather(GatherArgs a, Backward &b)
{
    const Tensor nothing = ops::zeros(a.x().shape(), b.grad()->dtype, b.grad()->device);
    b.set(a.kX, ops::scatter_add(nothing, a.axis(), a.index(), b.grad()));
}

// ---- By masks --------------------------------------------------------------------------------------------

void infer_count_nonzero_internal(CountNonzeroInternalArgs, Plan &plan)
{
    plan.result({}, YOKE_I64);
}

void infer_nonzero_internal(NonzeroInternalArgs a, Plan &plan)
{
    plan.result(Dims{a.count(), a.x().ndim}, YOKE_I64);
}

Tensor compose_nonzero(NonzeroArgs a)
{
    return ops::nonzero_internal(a.x(), count_of(a.x()));
}

Tensor compose_masked_select(MaskedSelectArgs a)
{
    check_mask(a.mask(), "masked_select");
    Dims shape = broadcast(a.x().shape(), a.mask().shape(), "masked_select");
    Tensor x = ops::expand(a.x(), shape), mask = ops::expand(a.mask(), shape);
    if (shape.size() == 0) {
        x = ops::unsqueeze(x, 0);
        mask = ops::unsqueeze(mask, 0);
    }
    const Tensor places = ops::nonzero(mask);
    std::vector<Tensor> columns = ops::unbind(places, 1);
    std::vector<yoke_tensor *> indices;
    for (const Tensor &column : columns) indices.push_back(column.get());
    return ops::index(x, indices, 0);
}

void infer_masked_fill(MaskedFillArgs a, Plan &plan)
{
    check_mask(a.mask(), plan.name());
    check_lone_value(a.x(), a.value(), plan.name());
    if (!broadcasts_to(a.mask().shape(), a.x().shape()))
        fail(YOKE_E_VALUE, "%s: argument 'mask' has shape %s; it must broadcast to shape %s of 'x'",
             plan.name(), to_string(a.mask().shape()).c_str(), to_string(a.x().shape()).c_str());
    plan.scalar_dtype(a.x().dtype);
    plan.cast(a.kValue, a.x().dtype);
    plan.result_like(a.x(), a.x().dtype);
}

void vjp_masked_fill(MaskedFillArgs a, Backward &b)
{
    const int64_t none = 0;
    if (b.needs(a.kX)) b.set(a.kX, ops::masked_fill(b.grad(), a.mask(), none));
    if (b.needs(a.kValue)) b.set(a.kValue, ops::sum(ops::where(a.mask(), b.grad(), none)));
}

// ---- By integer tensors ----------------------------------------------------------------------------------

namespace {

// Raises YOKE_E_INDEX for an index out of range, if the result is empty and so no kernel checks the indices. Negative
// indices count from the end if `wraps`.
void check_unused(const yoke_tensor &index, int64_t length, bool wraps, const char *call)
{
    const Tensor wide = ops::contiguous(ops::cast(index, YOKE_I64));
    std::vector<int64_t> host(static_cast<size_t>(wide->numel));
    copy_to_host(wide, host.data(), host.size() * sizeof(int64_t), call);
    for (const int64_t at : host)
        if (at < (wraps ? -length : 0) || at >= length)
            fail(YOKE_E_INDEX, "%s: the index %lld is out of range for an axis of length %lld",
                 call, static_cast<long long>(at), static_cast<long long>(length));
}

// Returns the shape of x[…, indices, …], whose index tensors stand for neighbouring axes from `axis` on. Raises if
// the indices do not fit x.
Dims indexed_shape(const yoke_tensor &x, TensorList indices, int64_t axis, bool wraps,
                   const char *call)
{
    const int count = static_cast<int>(indices.size());
    if (count == 0 || axis < 0 || axis + count > x.ndim)
        fail(YOKE_E_VALUE, "%s: %d indices from axis %lld on do not fit a tensor of shape %s", call,
             count, static_cast<long long>(axis), to_string(x.shape()).c_str());
    for (const yoke_tensor *index : indices) {
        check_index(*index, call, "indices");
        if (!same(index->shape(), indices[0]->shape()))
            fail(YOKE_E_VALUE, "%s: indices have shapes %s and %s; they must have the same shape",
                 call, to_string(indices[0]->shape()).c_str(), to_string(index->shape()).c_str());
    }
    Dims shape{x.shape().first(static_cast<size_t>(axis))};
    for (const int64_t size : indices[0]->shape()) shape.push_back(size);
    for (int i = static_cast<int>(axis) + count; i < x.ndim; ++i) shape.push_back(x.shape_[i]);
    if (checked_numel(shape, call) == 0)
        for (int i = 0; i < count; ++i)
            check_unused(*indices[static_cast<size_t>(i)], x.shape_[static_cast<int>(axis) + i],
                         wraps, call);
    return shape;
}

// Returns true for each written value that a later write to the same place replaced, in the shape of the indices.
Tensor overwritten(const yoke_tensor &x, TensorList indices, int64_t axis)
{
    Dims places;
    for (size_t i = 0; i < indices.size(); ++i)
        places.push_back(x.shape_[static_cast<size_t>(axis) + i]);
    const Dims shape{indices[0]->shape()};
    const int64_t count = indices[0]->numel;
    const Tensor order =
        ops::reshape(ops::arange(int64_t{0}, count, int64_t{1}, YOKE_I64, x.device), shape);
    const Tensor blank = ops::zeros(places, YOKE_I64, x.device);
    // Number of the last write to each write's place.
    const Tensor last = ops::index(ops::index_put(blank, indices, order), indices, 0);
    yoke_tensor *const writers[] = {last.get()};
    const Tensor lost = ops::full(Dims{count}, int64_t{1}, YOKE_BOOL, x.device);
    const Tensor kept = ops::full({}, int64_t{0}, YOKE_BOOL, x.device);
    return ops::reshape(ops::index_put(lost, writers, kept), shape);
}

}  // namespace

void infer_index(IndexArgs a, Plan &plan)
{
    plan.result(indexed_shape(a.x(), a.indices(), a.axis(), true, plan.name()), a.x().dtype);
}

void vjp_index(IndexArgs a, Backward &b)
{
    const Tensor nothing = ops::zeros(a.x().shape(), b.grad()->dtype, b.grad()->device);
    b.set(a.kX, ops::index_put(nothing, a.indices(), b.grad(), true, a.axis()));
}

// Returns the indices as integer tensors of one shape: a mask becomes its places along each of its axes.
static std::vector<Tensor> plain_indices(TensorList given, const char *call)
{
    std::vector<Tensor> indices;
    for (yoke_tensor *index : given) {
        if (index->dtype != YOKE_BOOL)
            indices.push_back(Tensor::share(index));
        else
            for (Tensor &places : ops::nonzero_tuple(*index)) indices.push_back(std::move(places));
    }
    Dims shape;
    for (const Tensor &index : indices) shape = broadcast(shape, index->shape(), call);
    for (Tensor &index : indices)
        if (!same(index->shape(), shape)) index = ops::expand(index, shape);
    return indices;
}

void infer_index_put(IndexPutArgs a, Plan &plan)
{
    a.set_axis(normalize_axis(a.axis(), a.x().ndim, plan.name()));
    plan.replace_list(a.kIndices, plain_indices(a.indices(), plan.name()));
    const Dims shape = indexed_shape(a.x(), a.indices(), a.axis(), a.wraps(), plan.name());
    if (!broadcasts_to(a.values().shape(), shape))
        fail(
            YOKE_E_VALUE,
            "%s: the values have shape %s; they must broadcast to %s, the shape that the indices select",
            plan.name(), to_string(a.values().shape()).c_str(), to_string(shape).c_str());
    plan.cast(a.kValues, a.x().dtype);
    separate(plan, a.kValues, a.x(), a.values());
    plan.result_like(a.x(), a.x().dtype);
}

void vjp_index_put(IndexPutArgs a, Backward &b)
{
    const TensorList indices = a.indices();
    if (b.needs(a.kX)) {
        const Tensor zero = ops::zeros({}, b.grad()->dtype, b.grad()->device);
        b.set(a.kX,
              a.accumulate() ? b.grad() : ops::index_put(b.grad(), indices, zero, false, a.axis()));
    }
    if (!b.needs(a.kValues)) return;
    Tensor part = ops::index(b.grad(), indices, a.axis());
    if (!a.accumulate() && indices[0]->numel > 1) {
        Tensor lost = overwritten(a.x(), indices, a.axis());
        for (int i = static_cast<int>(a.axis()) + static_cast<int>(indices.size()); i < a.x().ndim;
             ++i)
            lost = ops::unsqueeze(lost, -1);
        part = ops::masked_fill(part, lost, int64_t{0});
    }
    b.set(a.kValues, sum_to(part, a.values().shape()));
}

// ---- Classes ---------------------------------------------------------------------------------------------

void infer_one_hot(OneHotArgs a, Plan &plan)
{
    check_index(a.x(), plan.name(), "x");
    if (a.num_classes() < -1)
        fail(YOKE_E_VALUE,
             "%s: argument 'num_classes' is %lld; it must be -1 or a number of classes",
             plan.name(), static_cast<long long>(a.num_classes()));
    // No kernel runs for an empty result, and an index of no class is still out of range.
    if (a.num_classes() == 0 && a.x().numel > 0)
        fail(YOKE_E_INDEX,
             "%s: argument 'x' has %lld indices, but 'num_classes' is 0; give at least 1 class",
             plan.name(), static_cast<long long>(a.x().numel));
    if (a.num_classes() == -1) {
        if (a.x().numel == 0)
            fail(YOKE_E_VALUE,
                 "%s: argument 'x' is empty, so the number of classes is unknown; give num_classes",
                 plan.name());
        int64_t largest = 0;
        const Tensor top = ops::cast(ops::amax(a.x()), YOKE_I64);
        copy_to_host(top, &largest, sizeof largest, plan.name());
        if (largest < 0)
            fail(YOKE_E_INDEX, "%s: the largest index is %lld; indices must be 0 or more",
                 plan.name(), static_cast<long long>(largest));
        if (largest == INT64_MAX)
            fail(YOKE_E_VALUE,
                 "%s: the largest index is %lld; the number of classes would not fit into int64",
                 plan.name(), static_cast<long long>(largest));
        a.set_num_classes(largest + 1);
    }
    Dims shape{a.x().shape()};
    shape.push_back(a.num_classes());
    plan.result(shape, YOKE_I64);
}

}  // namespace yoke
