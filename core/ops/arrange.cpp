// arrange.cpp: tensors joined, repeated, mirrored and padded: shape rules and vjps. An op composed of views and a
// copy has no kernel; its gradient comes from its parts.
#include "core/ops/arrange.h"

#include "core/ops/scalar.h"

#include <algorithm>
#include <vector>

namespace yoke {

namespace {

std::vector<yoke_tensor *> pointers(const std::vector<Tensor> &tensors)
{
    std::vector<yoke_tensor *> list;
    for (const Tensor &x : tensors) list.push_back(x.get());
    return list;
}

Tensor join(const std::vector<Tensor> &parts, int64_t axis)
{
    return ops::cat(pointers(parts), axis);
}

}  // namespace

int existing_axis(const yoke_tensor &x, int64_t axis, const char *call)
{
    if (x.ndim == 0)
        fail(YOKE_E_VALUE, "%s: argument 'x' has no axes; add an axis with unsqueeze(0)", call);
    return normalize_axis(axis, x.ndim, call);
}

// ---- Together --------------------------------------------------------------------------------------------

void infer_cat(CatArgs a, Plan &plan)
{
    if (a.tensors().empty())
        fail(YOKE_E_VALUE, "%s: argument 'tensors' is an empty list; give at least one tensor",
             plan.name());
    const yoke_tensor &first = *a.tensors()[0];
    yoke_dtype dtype = first.dtype;
    for (const yoke_tensor *x : a.tensors()) dtype = promote(dtype, x->dtype);
    plan.cast_list(a.kTensors, dtype);
    if (first.ndim == 0)
        fail(YOKE_E_VALUE,
             "%s: tensors without axes cannot be joined; add an axis with unsqueeze(0)",
             plan.name());
    const int axis = normalize_axis(a.axis(), first.ndim, plan.name());
    a.set_axis(axis);
    Dims shape{first.shape()};
    for (size_t i = 1; i < a.tensors().size(); ++i) {
        const yoke_tensor &x = *a.tensors()[i];
        Dims expected{x.shape()};
        if (x.ndim == first.ndim) expected[axis] = shape[axis];
        if (x.ndim != first.ndim || !same(expected, shape))
            fail(YOKE_E_VALUE,
                 "%s: tensor %zu has shape %s and tensor 0 %s; they may differ only along axis %d",
                 plan.name(), i, to_string(x.shape()).c_str(), to_string(first.shape()).c_str(),
                 axis);
        if (__builtin_add_overflow(shape[axis], x.shape_[axis], &shape[axis]))
            fail(YOKE_E_VALUE,
                 "%s: axis %d of the result has more elements than memory can address", plan.name(),
                 axis);
    }
    plan.result(shape, dtype);
}

void vjp_cat(CatArgs a, Backward &b)
{
    int64_t start = 0;
    for (size_t i = 0; i < a.tensors().size(); ++i) {
        const int64_t stop = start + a.tensors()[i]->shape_[a.axis()];
        if (b.needs(a.kTensors, static_cast<int>(i)))
            b.set(a.kTensors, static_cast<int>(i), ops::slice(b.grad(), a.axis(), start, stop));
        start = stop;
    }
}

Tensor compose_stack(StackArgs a)
{
    if (a.tensors().empty())
        fail(YOKE_E_VALUE, "stack: argument 'tensors' is an empty list; give at least one tensor");
    const yoke_tensor &first = *a.tensors()[0];
    const int axis = normalize_axis(a.axis(), first.ndim + 1, "stack");
    std::vector<Tensor> parts;
    for (size_t i = 0; i < a.tensors().size(); ++i) {
        const yoke_tensor &x = *a.tensors()[i];
        if (!same(x.shape(), first.shape()))
            fail(YOKE_E_VALUE,
                 "stack: tensor %zu has shape %s and tensor 0 %s; they must have the same shape", i,
                 to_string(x.shape()).c_str(), to_string(first.shape()).c_str());
        parts.push_back(ops::unsqueeze(x, axis));
    }
    return join(parts, axis);
}

// ---- Another order ---------------------------------------------------------------------------------------

Tensor compose_flip(FlipArgs a)
{
    const IntList given = a.axes();
    Tensor view = Tensor::share(const_cast<yoke_tensor *>(&a.x()));
    if (a.x().ndim > 0)
        for (const int64_t axis : normalize_axes(&given, a.x().ndim, "flip"))
            view = ops::slice(view, axis, std::nullopt, std::nullopt, -1);
    return ops::clone(view);
}

Tensor compose_roll(RollArgs a)
{
    const yoke_tensor &x = a.x();
    if (!a.axes()) {
        if (a.shifts().size() != 1)
            fail(YOKE_E_VALUE,
                 "roll: argument 'shifts' is %s; without 'axes' it must be one number",
                 to_string(a.shifts()).c_str());
        const int64_t flat = 0;
        const Tensor rolled = ops::roll(ops::reshape(x, Dims{-1}), a.shifts(), IntList(&flat, 1));
        return ops::reshape(rolled, x.shape());
    }
    if (a.axes()->size() != a.shifts().size())
        fail(YOKE_E_VALUE,
             "roll: argument 'shifts' is %s and 'axes' %s; both must have the same length",
             to_string(a.shifts()).c_str(), to_string(*a.axes()).c_str());
    Tensor result = ops::clone(x);
    for (size_t i = 0; i < a.shifts().size(); ++i) {
        const int axis = existing_axis(x, (*a.axes())[i], "roll");
        const int64_t length = x.shape_[axis];
        const int64_t shift = length ? a.shifts()[i] % length : 0;
        const int64_t first = shift > 0 ? length - shift : -shift;  // index that moves to the front
        if (first == 0) continue;
        result = join({ops::slice(result, axis, first), ops::slice(result, axis, 0, first)}, axis);
    }
    return result;
}

// Repeats axis by axis, each time through a view of [axes before, copies, the axis and axes behind].
Tensor compose_tile(TileArgs a)
{
    Dims shape{a.x().shape()}, reps{a.reps()};
    while (shape.size() < reps.size()) shape.insert(0, 1);
    while (reps.size() < shape.size()) reps.insert(0, 1);
    Tensor result = ops::reshape(a.x(), shape);
    bool copied = false;
    for (int axis = 0; axis < shape.size(); ++axis) {
        if (reps[axis] < 0)
            fail(YOKE_E_VALUE, "tile: argument 'reps' is %s; repetitions must be 0 or more",
                 to_string(a.reps()).c_str());
        if (reps[axis] == 1) continue;
        int64_t before = 1, behind = 1;
        for (int i = 0; i < axis; ++i) before *= shape[i];
        for (int i = axis; i < shape.size(); ++i) behind *= shape[i];
        if (__builtin_mul_overflow(shape[axis], reps[axis], &shape[axis]))
            fail(YOKE_E_VALUE, "tile: axis %d of the result has more elements than memory can hold",
                 axis);
        const Tensor copies = ops::expand(ops::reshape(result, Dims{before, 1, behind}),
                                          Dims{before, reps[axis], behind});
        result = ops::view(ops::clone(copies), shape);
        copied = true;
    }
    return copied ? result : ops::clone(result);
}

// ---- Parts repeated, and diagonals -----------------------------------------------------------------------

namespace {

// Returns the length of the result. Raises YOKE_E_VALUE unless `repeats` has a number from 0 on for each part.
int64_t checked_repeats(const yoke_tensor &repeats, int64_t parts)
{
    check_index(repeats, "repeat_interleave", "repeats");
    if (repeats.ndim > 1 || (repeats.numel != 1 && repeats.numel != parts))
        fail(
            YOKE_E_VALUE,
            "repeat_interleave: argument 'repeats' has shape %s; it must be one number, or a vector of the %lld parts' numbers",
            to_string(repeats.shape()).c_str(), static_cast<long long>(parts));
    int64_t bounds[2] = {0, 0};
    if (repeats.numel && parts) {
        const Tensor least = ops::cast(ops::amin(repeats), YOKE_I64);
        copy_to_host(least, &bounds[0], sizeof bounds[0], "repeat_interleave");
        copy_to_host(ops::sum(ops::expand(repeats, Dims{parts})), &bounds[1], sizeof bounds[1],
                     "repeat_interleave");
    }
    if (bounds[0] < 0)
        fail(YOKE_E_VALUE,
             "repeat_interleave: argument 'repeats' has the number %lld; numbers must be 0 or more",
             static_cast<long long>(bounds[0]));
    return bounds[1];
}

void check_output_size(std::optional<int64_t> wanted, int64_t size)
{
    if (wanted && *wanted != size)
        fail(
            YOKE_E_VALUE,
            "repeat_interleave: argument 'output_size' is %lld, but the repeats sum to %lld; leave it out",
            static_cast<long long>(*wanted), static_cast<long long>(size));
}

}  // namespace

Tensor compose_repeat_interleave(RepeatInterleaveArgs a)
{
    const Tensor x =
        a.axis() ? Tensor::share(const_cast<yoke_tensor *>(&a.x())) : ops::reshape(a.x(), Dims{-1});
    const int axis = existing_axis(*x, a.axis().value_or(0), "repeat_interleave");
    const int64_t length = x->shape_[axis];
    if (!is_scalar(a.repeats())) {
        const yoke_tensor &repeats = *a.repeats().v.tensor;
        const int64_t size = checked_repeats(repeats, length);
        check_output_size(a.output_size(), size);
        const Tensor ends = ops::cumsum(ops::expand(repeats, Dims{length}), 0);
        const Tensor places = ops::arange(int64_t{0}, size, int64_t{1}, YOKE_I64, x->device);
        return ops::index_select(x, axis,
                                 ops::searchsorted(ends, places, /*out_int32=*/false, true));
    }
    const int64_t repeats = a.repeats().v.i;
    if (a.repeats().kind != YOKE_ARG_INT || repeats < 0)
        fail(
            YOKE_E_VALUE,
            "repeat_interleave: argument 'repeats' is %s; it must be a whole number from 0 on, or a tensor",
            text_of(a.repeats()).c_str());
    Dims shape{x->shape()}, wide{x->shape()};
    if (__builtin_mul_overflow(length, repeats, &shape[axis]))
        fail(YOKE_E_VALUE,
             "repeat_interleave: axis %d of the result has more elements than memory can hold",
             axis);
    check_output_size(a.output_size(), shape[axis]);
    wide.insert(axis + 1, repeats);
    return ops::view(ops::clone(ops::expand(ops::unsqueeze(x, axis + 1), wide)), shape);
}

// A vector becomes the first column of a matrix one column wider than the result. Read with rows of the result's
// length, the matrix has the vector on its diagonal.
Tensor compose_diag(DiagArgs a)
{
    const yoke_tensor &x = a.x();
    if (x.ndim == 2) return ops::clone(ops::diagonal(x, a.diagonal()));
    if (x.ndim != 1)
        fail(YOKE_E_VALUE, "diag: argument 'x' has shape %s; it must be a vector or a matrix",
             to_string(x.shape()).c_str());
    const int64_t k = a.diagonal(), away = k == INT64_MIN ? INT64_MAX : k < 0 ? -k : k;
    const int64_t n = x.numel;
    int64_t size = 0, all = 0;
    if (__builtin_add_overflow(n, away, &size) || __builtin_mul_overflow(size, size, &all))
        fail(
            YOKE_E_VALUE,
            "diag: argument 'diagonal' is %lld; it must be nearer to 0, or the matrix has more elements than memory can hold",
            static_cast<long long>(k));
    const Tensor out = ops::zeros(Dims{size, size}, x.dtype, x.device);
    ops::copy_(*ops::diagonal(out, k), x);
    return out;
}

// ---- More at the ends ------------------------------------------------------------------------------------

namespace {

// Returns `count` elements to put beside the end of an axis, for each mode but "constant".
Tensor beyond(const Tensor &x, int axis, int64_t count, bool after, std::string_view mode)
{
    const int64_t length = x->shape_[axis];
    if (mode == "replicate") {
        Dims shape{x->shape()};
        shape[axis] = count;
        const int64_t edge = after ? length - 1 : 0;
        return ops::expand(ops::slice(x, axis, edge, edge + 1), shape);
    }
    if (mode == "circular")
        return after ? ops::slice(x, axis, 0, count) : ops::slice(x, axis, length - count);
    const int64_t from = after ? length - 2 : count;  // the mirror stands on the edge element
    const int64_t past = from - count;
    return ops::slice(x, axis, from, past < 0 ? std::nullopt : std::optional<int64_t>(past), -1);
}

void check_reach(const yoke_tensor &x, int axis, int64_t count, std::string_view mode)
{
    const int64_t length = x.shape_[axis];
    const int64_t most = mode == "reflect"    ? length - 1
                         : mode == "circular" ? length
                                              : (length ? INT64_MAX : 0);
    if (count > std::max<int64_t>(most, 0))
        fail(
            YOKE_E_VALUE,
            "pad: %lld elements cannot be taken from axis %d of shape %s in mode \"%.*s\"; at most %lld",
            static_cast<long long>(count), axis, to_string(x.shape()).c_str(),
            static_cast<int>(mode.size()), mode.data(), static_cast<long long>(most));
}

Tensor pad_axis(const Tensor &x, int axis, int64_t before, int64_t after, const PadArgs &a)
{
    const int64_t length = x->shape_[axis];
    int64_t more = 0;
    if (__builtin_add_overflow(before, after, &more) || __builtin_add_overflow(more, length, &more))
        fail(YOKE_E_VALUE, "pad: padding (%lld, %lld) makes axis %d longer than memory can address",
             static_cast<long long>(before), static_cast<long long>(after), axis);
    if (before < -length || after < -length || more < 0)
        fail(YOKE_E_VALUE,
             "pad: padding (%lld, %lld) removes more elements than axis %d of shape %s has",
             static_cast<long long>(before), static_cast<long long>(after), axis,
             to_string(x->shape()).c_str());
    Tensor middle = x;
    if (before < 0 || after < 0)  // less, not more
        middle = ops::slice(x, axis, std::max<int64_t>(-before, 0),
                            length + std::min<int64_t>(after, 0));
    // A circle is closed behind what is taken away; a mirror and an edge stand where x ends.
    const Tensor &source = a.mode() == "circular" ? middle : x;
    std::vector<Tensor> parts;
    const auto add = [&](int64_t count, bool is_after) {
        if (count <= 0) return;
        Dims shape{x->shape()};
        shape[axis] = count;
        if (a.mode() != "constant") check_reach(*source, axis, count, a.mode());
        parts.push_back(a.mode() == "constant" ? ops::full(shape, a.value(), x->dtype, x->device)
                                               : beyond(source, axis, count, is_after, a.mode()));
    };
    add(before, false);
    parts.push_back(middle);
    add(after, true);
    return parts.size() == 1 ? middle : join(parts, axis);
}

}  // namespace

Tensor compose_pad(PadArgs a)
{
    const yoke_tensor &x = a.x();
    const IntList padding = a.padding();
    const std::string_view mode = a.mode();
    if (mode != "constant" && mode != "reflect" && mode != "replicate" && mode != "circular")
        fail(
            YOKE_E_VALUE,
            "pad: argument 'mode' is \"%.*s\"; it must be \"constant\", \"reflect\", \"replicate\" or \"circular\"",
            static_cast<int>(mode.size()), mode.data());
    if (padding.size() % 2 || padding.size() / 2 > static_cast<size_t>(x.ndim))
        fail(
            YOKE_E_VALUE,
            "pad: argument 'padding' is %s; for shape %s it must be up to %d pairs (before, after), the last axis first",
            to_string(padding).c_str(), to_string(x.shape()).c_str(), int{x.ndim});
    check_scalar_fits(a.value(), x.dtype, "pad", "value");
    Tensor result = Tensor::share(const_cast<yoke_tensor *>(&x));
    for (size_t i = 0; i < padding.size() / 2; ++i)
        result = pad_axis(result, x.ndim - 1 - static_cast<int>(i), padding[2 * i],
                          padding[2 * i + 1], a);
    const bool is_copy = !result->is_view && result.get() != &x;
    return is_copy ? result : ops::clone(result);
}

// ---- Triangles -------------------------------------------------------------------------------------------

namespace {

template <class Triangle>
void infer_triangle(Triangle a, Plan &plan)
{
    const yoke_tensor &x = a.x();
    if (x.ndim < 2)
        fail(YOKE_E_VALUE, "%s: argument 'x' has shape %s; a triangle needs two axes", plan.name(),
             to_string(x.shape()).c_str());
    // Beyond either corner, all diagonals are the same.
    a.set_diagonal(std::clamp(a.diagonal(), -x.shape_[x.ndim - 2], x.shape_[x.ndim - 1]));
    plan.result_like(x, x.dtype);
}

}  // namespace

void infer_tril(TrilArgs a, Plan &plan)
{
    infer_triangle(a, plan);
}

void vjp_tril(TrilArgs a, Backward &b)
{
    b.set(a.kX, ops::tril(b.grad(), a.diagonal()));
}

void infer_triu(TriuArgs a, Plan &plan)
{
    infer_triangle(a, plan);
}

void vjp_triu(TriuArgs a, Backward &b)
{
    b.set(a.kX, ops::triu(b.grad(), a.diagonal()));
}

}  // namespace yoke
