// scatter.cpp: writes and sums by an index along one axis, whose other coordinates stay the same.
//
// Indices count from 0 on, as in PyTorch. Of several writes to a place the last counts, on every device.
#include "core/ops/family.h"
#include "core/ops/index.h"
#include "core/ops/scalar.h"

namespace yoke {

namespace {

// Plans a copy of x, changed at the places that `index` names along `axis`. Returns the axis, not negative.
template <class Arguments>
int plan_scatter(Arguments a, Plan &plan)
{
    const yoke_tensor &x = a.x(), &index = a.index();
    check_index(index, plan.name(), "index");
    check_dtype_of_x(x, a.src(), "src", plan.name());
    const int axis = normalize_axis(a.axis(), x.ndim, plan.name());
    check_index_shape(index, x, "x", axis, plan.name());
    check_index_shape(index, a.src(), "src", -1, plan.name());
    // No kernel runs for an empty result.
    if (x.ndim && x.shape_[axis] == 0 && index.numel)
        fail(YOKE_E_INDEX,
             "%s: axis %d of argument 'x' is empty; for %lld indices it must have an element",
             plan.name(), axis, static_cast<long long>(index.numel));
    separate(plan, a.kIndex, x, index);
    separate(plan, a.kSrc, x, a.src());
    plan.result_like(x, x.dtype);
    return axis;
}

// Returns a gradient of src, of which the index reached the first elements of each axis.
Tensor with_untouched(const Tensor &part, const yoke_tensor &src)
{
    if (same(part->shape(), src.shape())) return part;
    const Tensor whole = ops::zeros(src.shape(), part->dtype, part->device);
    ops::copy_(make_view(whole, part->shape(), whole->strides_, 0), part);
    return whole;
}

// Returns zeros in the shape of an index, of a single element.
Tensor zeros_beside(const yoke_tensor &index, yoke_dtype dtype)
{
    return ops::expand(ops::zeros({}, dtype, index.device), index.shape());
}

// Returns true for each index whose element a later index wrote again.
Tensor written_again(const yoke_tensor &x, int64_t axis, const yoke_tensor &index)
{
    const Tensor order = ops::reshape(
        ops::arange(int64_t{0}, index.numel, int64_t{1}, YOKE_I64, x.device), index.shape());
    const Tensor blank = ops::zeros(x.shape(), YOKE_I64, x.device);
    const Tensor last = ops::gather(ops::scatter_internal(blank, axis, index, order), axis, index);
    return ops::ne(last, order);
}

}  // namespace

void infer_scatter_add(ScatterAddArgs a, Plan &plan)
{
    a.set_axis(plan_scatter(a, plan));
}

void vjp_scatter_add(ScatterAddArgs a, Backward &b)
{
    if (b.needs(a.kX)) b.set(a.kX, b.grad());
    if (b.needs(a.kSrc))
        b.set(a.kSrc, with_untouched(ops::gather(b.grad(), a.axis(), a.index()), a.src()));
}

void infer_scatter_internal(ScatterInternalArgs a, Plan &plan)
{
    a.set_axis(plan_scatter(a, plan));
}

void vjp_scatter_internal(ScatterInternalArgs a, Backward &b)
{
    const yoke_tensor &index = a.index();
    if (b.needs(a.kX))
        b.set(a.kX, ops::scatter_internal(b.grad(), a.axis(), index,
                                          zeros_beside(index, b.grad()->dtype)));
    if (!b.needs(a.kSrc)) return;
    Tensor part = ops::gather(b.grad(), a.axis(), index);
    if (index.numel > 1)
        part = ops::masked_fill(part, written_again(a.x(), a.axis(), index), int64_t{0});
    b.set(a.kSrc, with_untouched(part, a.src()));
}

// ---- scatter ---------------------------------------------------------------------------------------------

namespace {

enum class Reduce { kNone, kAdd, kMultiply };

Reduce reduce_of(std::string_view text, const char *call)
{
    if (text == "none") return Reduce::kNone;
    if (text == "add") return Reduce::kAdd;
    if (text != "multiply")
        fail(YOKE_E_VALUE,
             "%s: argument 'reduce' is \"%.*s\"; it must be \"none\", \"add\" or \"multiply\"",
             call, static_cast<int>(text.size()), text.data());
    return Reduce::kMultiply;
}

// Returns src as a tensor with the index's axes; a number has an element for each index.
Tensor scattered(const yoke_tensor &x, const yoke_tensor &index, const yoke_arg &src,
                 const char *call)
{
    if (is_scalar(src)) {
        check_scalar_fits(src, x.dtype, call, "src");
        return ops::expand(ops::full({}, src, x.dtype, x.device), index.shape());
    }
    yoke_tensor &given = *src.v.tensor;
    check_dtype_of_x(x, given, "src", call);
    if (given.ndim == 0) return ops::expand(given, index.shape());
    check_index_shape(index, given, "src", -1, call);
    return Tensor::share(&given);
}

// Arguments of a scatter, checked.
struct Scatter {
    const yoke_tensor &x, &index;
    int axis;
    Tensor src;
    Reduce reduce;

    Scatter(const yoke_tensor &given, int64_t along, const yoke_tensor &places,
            const yoke_arg &from, std::string_view how, const char *call)
        : x(given), index(places), reduce(reduce_of(how, call))
    {
        check_index(places, call, "index");
        axis = normalize_axis(along, x.ndim, call);
        check_index_shape(places, x, "x", axis, call);
        src = scattered(x, places, from, call);
    }

    // Returns the number of each index's element, in row-major order of x, as a vector.
    Tensor places() const
    {
        const Tensor along = ops::cast(index, YOKE_I64);
        Tensor numbers = x.ndim ? ops::zeros({}, YOKE_I64, x.device) : along;
        int64_t step = 1;
        for (int i = x.ndim - 1; i >= 0; step *= x.shape_[i--]) {
            Dims beside(x.ndim, 1);
            beside[i] = index.shape_[i];
            const int64_t end = index.shape_[i] * step;
            const Tensor own =
                i == axis
                    ? ops::mul(along, step)
                    : ops::view(ops::arange(int64_t{0}, end, step, YOKE_I64, x.device), beside);
            numbers = ops::add(numbers, own);
        }
        return ops::reshape(numbers, Dims{-1});
    }
};

// Returns, for each place, how many earlier places are the same.
Tensor rounds_of(const Tensor &places)
{
    const auto [sorted, order] = ops::sort(places);
    const Tensor numbers =
        ops::arange(int64_t{0}, places->numel, int64_t{1}, YOKE_I64, places->device);
    return ops::index_copy(places, 0, order, ops::sub(numbers, ops::searchsorted(sorted, sorted)));
}

// Multiplies elements by src, in rounds: in each round, an element is multiplied once.
Tensor multiplied(const Scatter &s, const char *call)
{
    if (!s.index.numel) return ops::scatter_internal(s.x, s.axis, s.index, s.src);
    Tensor src = s.src;
    for (int i = 0; i < s.index.ndim; ++i)
        if (src->shape_[i] != s.index.shape_[i]) src = ops::slice(src, i, 0, s.index.shape_[i]);
    Tensor places, rounds;
    {
        const NoGrad no_grad;
        // Checks the index, since numbers of elements have no bounds along the axis.
        ops::scatter_internal(ops::zeros(s.x.shape(), YOKE_BOOL, s.x.device), s.axis, s.index,
                              zeros_beside(s.index, YOKE_BOOL));
        places = s.places();
        rounds = rounds_of(places);
    }
    const Tensor values = ops::reshape(src, Dims{-1});
    Tensor result = ops::reshape(s.x, Dims{-1});
    int64_t last = 0;
    copy_to_host(ops::amax(rounds), &last, sizeof last, call);
    for (int64_t round = 0; round <= last; ++round) {
        const Tensor entries = ops::nonzero_tuple(ops::eq(rounds, round))[0];
        const Tensor at = ops::index_select(places, 0, entries);
        result = ops::index_copy(
            result, 0, at,
            ops::mul(ops::index_select(result, 0, at), ops::index_select(values, 0, entries)));
    }
    return ops::reshape(result, s.x.shape());
}

}  // namespace

Tensor compose_scatter(ScatterArgs a)
{
    const char *call = "scatter";
    const Scatter s(a.x(), a.axis(), a.index(), a.src(), a.reduce(), call);
    if (s.reduce == Reduce::kMultiply) return multiplied(s, call);
    if (s.reduce == Reduce::kAdd)
        return named_as(call, {"scatter_add"},
                        [&] { return ops::scatter_add(s.x, s.axis, s.index, s.src); });
    return ops::scatter_internal(s.x, s.axis, s.index, s.src);
}

void compose_scatter_(ScatterInplaceArgs a)
{
    const char *call = "scatter_";
    yoke_tensor &x = a.x();
    const Scatter s(x, a.axis(), a.index(), a.src(), a.reduce(), call);
    if (s.reduce == Reduce::kMultiply)
        ops::copy_(x, multiplied(s, call));
    else if (s.reduce == Reduce::kAdd)
        named_as(call, {"scatter_add", "scatter_add_"},
                 [&] { ops::scatter_add_(x, s.axis, s.index, s.src); });
    else
        ops::scatter_internal_(x, s.axis, s.index, s.src);
}

}  // namespace yoke
