// places.cpp: reductions made of other ops: values with their places, moments with their means, quantiles.
#include <algorithm>
#include <cmath>

#include "core/ops/family.h"
#include "core/ops/scalar.h"

namespace yoke {

namespace {

// Returns the elements of x at the places `index`, along an axis that has length 1 in `index`, and the places. Without
// keepdim, both lose the axis.
std::array<Tensor, 2> values_and_places(const yoke_tensor &x, const Tensor &index, int64_t axis,
                                        bool keepdim)
{
    if (x.ndim == 0) return {ops::clone(x), index};
    const Tensor values = ops::gather(x, axis, *index);
    if (keepdim) return {values, index};
    return {ops::squeeze(*values, axis), ops::squeeze(*index, axis)};
}

// Returns an axis that is not negative. Raises YOKE_E_VALUE if the axis is empty.
int axis_with_elements(const yoke_tensor &x, int64_t axis, const char *call, const char *missing)
{
    const int own = normalize_axis(axis, x.ndim, call);
    if (x.ndim > 0 && x.shape_[own] == 0)
        fail(YOKE_E_VALUE, "%s: axis %d of shape %s is empty, so it has no %s", call, own,
             to_string(x.shape()).c_str(), missing);
    return own;
}

int64_t row_length(const yoke_tensor &x, int axis)
{
    return x.ndim > 0 ? x.shape_[axis] : 1;
}

}  // namespace

// ---- Extremes and ranks ----------------------------------------------------------------------------------

std::array<Tensor, 2> compose_max(MaxArgs a)
{
    const int axis = axis_with_elements(a.x(), a.axis(), "max", "largest element");
    return values_and_places(a.x(), ops::argmax(a.x(), axis, true), axis, a.keepdim());
}

std::array<Tensor, 2> compose_min(MinArgs a)
{
    const int axis = axis_with_elements(a.x(), a.axis(), "min", "smallest element");
    return values_and_places(a.x(), ops::argmin(a.x(), axis, true), axis, a.keepdim());
}

std::array<Tensor, 2> compose_aminmax(AminmaxArgs a)
{
    if (!a.axis())
        return {ops::amin(a.x(), std::nullopt, a.keepdim()),
                ops::amax(a.x(), std::nullopt, a.keepdim())};
    const int64_t axis = axis_with_elements(a.x(), *a.axis(), "aminmax", "smallest element");
    return {ops::amin(a.x(), IntList(&axis, 1), a.keepdim()),
            ops::amax(a.x(), IntList(&axis, 1), a.keepdim())};
}

std::array<Tensor, 2> compose_kthvalue(KthvalueArgs a)
{
    const int axis = axis_with_elements(a.x(), a.axis(), "kthvalue", "k-th smallest element");
    const int64_t length = row_length(a.x(), axis);
    if (a.k() < 1 || a.k() > length)
        fail(
            YOKE_E_VALUE,
            "kthvalue: argument 'k' is %lld; it must be 1 to %lld, the length of axis %d of shape %s",
            static_cast<long long>(a.k()), static_cast<long long>(length), axis,
            to_string(a.x().shape()).c_str());
    return values_and_places(a.x(), ops::kth_place(a.x(), a.k(), axis, false), axis, a.keepdim());
}

std::array<Tensor, 2> compose_median(MedianArgs a)
{
    const int axis = axis_with_elements(a.x(), a.axis(), "median", "middle element");
    const int64_t middle = (row_length(a.x(), axis) + 1) / 2;
    return values_and_places(a.x(), ops::kth_place(a.x(), middle, axis, true), axis, a.keepdim());
}

void infer_median_internal(MedianInternalArgs a, Plan &plan)
{
    const int64_t flat = a.x().numel;
    if (flat == 0)
        fail(YOKE_E_VALUE, "median: a tensor of shape %s has no middle element",
             to_string(a.x().shape()).c_str());
    if (a.x().ndim != 1) plan.replace(a.kX, ops::reshape(a.x(), IntList(&flat, 1)));
    plan.result({}, a.x().dtype);
}

void vjp_median_internal(MedianInternalArgs a, Backward &b)
{
    const int64_t one = 1;
    const IntList kept(&one, 1);
    b.set(a.kX, ops::amax_backward(ops::reshape(b.grad(), kept), a.x(), ops::view(b.out(), kept)));
}

std::array<Tensor, 2> compose_mode(ModeArgs a)
{
    const int axis = axis_with_elements(a.x(), a.axis(), "mode", "most frequent element");
    Tensor index;
    {
        const NoGrad no_grad;
        const auto [sorted, places] = ops::sort(a.x(), axis);
        const Tensor run = ops::longest_run(sorted, axis);
        index = a.x().ndim > 0 ? ops::gather(places, axis, run) : places;
    }
    return values_and_places(a.x(), index, axis, a.keepdim());
}

void infer_kth_place(KthPlaceArgs a, Plan &plan)
{
    Dims shape{a.x().shape()};
    if (a.x().ndim > 0) shape[static_cast<int>(a.axis())] = 1;
    plan.result(shape, YOKE_I64);
}

void infer_longest_run(LongestRunArgs a, Plan &plan)
{
    Dims shape{a.x().shape()};
    if (a.x().ndim > 0) shape[static_cast<int>(a.axis())] = 1;
    plan.result(shape, YOKE_I64);
}

// ---- Moments and counts ----------------------------------------------------------------------------------

std::array<Tensor, 2> compose_var_mean(VarMeanArgs a)
{
    check_floating(a.x(), "var_mean", "x");
    return {ops::var(a.x(), a.axis(), a.keepdim(), a.correction()),
            ops::mean(a.x(), a.axis(), a.keepdim())};
}

std::array<Tensor, 2> compose_std_mean(StdMeanArgs a)
{
    check_floating(a.x(), "std_mean", "x");
    return {ops::std(a.x(), a.axis(), a.keepdim(), a.correction()),
            ops::mean(a.x(), a.axis(), a.keepdim())};
}

Tensor compose_count_nonzero(CountNonzeroArgs a)
{
    if (!a.axis()) return ops::count_nonzero_internal(a.x());
    return ops::sum(ops::ne(a.x(), int64_t{0}), a.axis());
}

// ---- Quantiles -------------------------------------------------------------------------------------------

namespace {

enum class Between { kLinear, kLower, kHigher, kMidpoint, kNearest };

Between between_named(std::string_view text)
{
    constexpr const char *names[] = {"linear", "lower", "higher", "midpoint", "nearest"};
    for (int i = 0; i < 5; ++i)
        if (text == names[i]) return static_cast<Between>(i);
    fail(
        YOKE_E_VALUE,
        "quantile: argument 'interpolation' is \"%s\"; it takes \"linear\", \"lower\", \"higher\", \"midpoint\" or \"nearest\"",
        std::string(text).c_str());
}

void check_share(const yoke_arg &q)
{
    if (is_scalar(q)) {
        if (!(scalar_f64(q) >= 0 && scalar_f64(q) <= 1))
            fail(YOKE_E_VALUE, "quantile: argument 'q' is %s; it must be 0 to 1",
                 text_of(q).c_str());
        return;
    }
    const yoke_tensor &shares = *q.v.tensor;
    check_floating(shares, "quantile", "q");
    if (shares.ndim > 1)
        fail(
            YOKE_E_VALUE,
            "quantile: argument 'q' has shape %s; it takes a number, or a tensor with at most one axis",
            to_string(shares.shape()).c_str());
}

// Returns the rows of x whose quantiles are wanted, along the last axis: x with the axis moved there, or all elements.
Tensor quantile_rows(const yoke_tensor &x, std::optional<int64_t> axis)
{
    if (!axis || x.ndim == 0) {
        const int64_t flat = x.numel;
        return ops::reshape(x, IntList(&flat, 1));
    }
    Dims order;
    for (int i = 0; i < x.ndim; ++i)
        if (i != *axis) order.push_back(i);
    order.push_back(*axis);
    return ops::permute(x, order);
}

// Returns the values at a rank of sorted rows, with one element along the last axis.
Tensor at_rank(const Tensor &sorted, double rank, Between between)
{
    const double low = std::floor(rank), high = std::ceil(rank);
    const auto at = [&](double place) {
        const int64_t first = static_cast<int64_t>(place);
        return ops::slice(sorted, -1, first, first + 1);
    };
    switch (between) {
        case Between::kLower:
            return at(low);
        case Between::kHigher:
            return at(high);
        case Between::kNearest:
            return at(std::nearbyint(rank));
        default:
            return ops::lerp(at(low), at(high), between == Between::kMidpoint ? 0.5 : rank - low);
    }
}

// Returns the values at the ranks of a vector, side by side along the last axis.
Tensor at_ranks(const Tensor &sorted, const Tensor &ranks, Between between)
{
    const Tensor low = ops::floor(ranks), high = ops::ceil(ranks);
    const auto at = [&](const Tensor &places) {
        return ops::index_select(sorted, -1, ops::cast(places, YOKE_I64));
    };
    switch (between) {
        case Between::kLower:
            return at(low);
        case Between::kHigher:
            return at(high);
        case Between::kNearest:
            return at(ops::round(ranks));
        case Between::kMidpoint:
            return ops::lerp(at(low), at(high), 0.5);
        default:
            break;
    }
    // The weights are of float64, or of float32 where this is enough.
    const yoke_dtype wide = sorted->dtype == YOKE_F64 ? YOKE_F64 : YOKE_F32;
    const Tensor weights = ops::cast(ops::sub(ranks, low), wide);
    const Tensor found = ops::lerp(ops::cast(at(low), wide), ops::cast(at(high), wide), weights);
    return ops::cast(found, sorted->dtype);
}

Tensor ranks_of(const yoke_tensor &q, int64_t length)
{
    const NoGrad no_grad;
    const int64_t count = q.numel;
    const Tensor shares = ops::cast(ops::reshape(q, IntList(&count, 1)), YOKE_F64);
    return ops::mul(ops::clamp(shares, 0.0, 1.0), static_cast<double>(length - 1));
}

// Moves the quantiles from the last axis of `found` to the front, or away if there is a single one; puts axes of length
// 1 where x had those that are gone.
Tensor arranged_quantiles(Tensor found, const yoke_tensor &x, const yoke_arg &q,
                          std::optional<int64_t> axis, bool keepdim)
{
    const bool is_vector = !is_scalar(q) && q.v.tensor->ndim == 1;
    if (is_vector) {
        Dims order(1, found->ndim - 1);
        for (int i = 0; i + 1 < found->ndim; ++i) order.push_back(i);
        found = ops::permute(found, order);
    } else {
        found = ops::squeeze(found, found->ndim - 1);
    }
    if (!keepdim) return found;
    Dims shape;
    if (is_vector) shape.push_back(found->shape_[0]);
    for (int i = 0; i < x.ndim; ++i) shape.push_back(!axis || i == *axis ? 1 : x.shape_[i]);
    return ops::reshape(found, shape);
}

}  // namespace

Tensor compose_quantile(QuantileArgs a)
{
    const yoke_tensor &x = a.x();
    check_floating(x, "quantile", "x");
    check_share(a.q());
    const Between between = between_named(a.interpolation());
    std::optional<int64_t> axis = a.axis();
    if (axis) axis = axis_with_elements(x, *axis, "quantile", "quantile");
    const Tensor rows = quantile_rows(x, axis);
    const int64_t length = rows->shape_[rows->ndim - 1];
    if (length == 0)
        fail(YOKE_E_VALUE, "quantile: a tensor of shape %s has no quantile",
             to_string(x.shape()).c_str());
    const Tensor sorted = ops::sort(rows, -1)[0];
    const Tensor last = ops::slice(sorted, -1, length - 1, length);
    const Tensor found =
        is_scalar(a.q())
            ? at_rank(sorted, scalar_f64(a.q()) * static_cast<double>(length - 1), between)
            : at_ranks(sorted, ranks_of(*a.q().v.tensor, length), between);
    return arranged_quantiles(ops::where(ops::isnan(last), last, found), x, a.q(), axis,
                              a.keepdim());
}

}  // namespace yoke
