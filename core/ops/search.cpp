// search.cpp: places in sorted values, values without repeats, and counts. No result is differentiable.
#include "core/ops/arrange.h"
#include "core/ops/rules.h"
#include "core/ops/scalar.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace yoke {

namespace {

// Reads a tensor of one element as an int64.
int64_t read_int(const Tensor &x, const char *call)
{
    int64_t value = 0;
    copy_to_host(ops::cast(x, YOKE_I64), &value, sizeof value, call);
    return value;
}

Tensor numbers_to(int64_t count, Device *device)
{
    return ops::arange(int64_t{0}, count, int64_t{1}, YOKE_I64, device);
}

// ---- Places in sorted values -----------------------------------------------------------------------------

// Finds places of an operand, which is cast with the sequence to their promoted dtype.
Tensor search(const yoke_tensor &sequence, const yoke_arg &operand, bool right, bool narrow,
              const char *call)
{
    const yoke_dtype dtype = rules::operand_dtype(arg_tensor(sequence), operand, call);
    if (is_scalar(operand)) check_scalar_fits(operand, dtype, call, "x");
    const Tensor x = is_scalar(operand) ? ops::full({}, operand, dtype, sequence.device)
                                        : ops::cast(*operand.v.tensor, dtype);
    const Tensor found = ops::searchsorted_internal(ops::cast(sequence, dtype), x, right);
    return narrow ? ops::cast(found, YOKE_I32) : found;
}

}  // namespace

void infer_searchsorted_internal(SearchsortedInternalArgs a, Plan &plan)
{
    plan.result(a.x().shape(), YOKE_I64);
    for (const int i : {a.kSortedSequence, a.kX})
        if (!a.tensor(i).contiguous) plan.replace(i, ops::clone(a.tensor(i)));
}

Tensor compose_searchsorted(SearchsortedArgs a)
{
    const NoGrad no_grad;
    const yoke_tensor &sequence = a.sorted_sequence();
    const int64_t ndim = is_scalar(a.x()) ? 0 : a.x().v.tensor->ndim;
    bool fits = sequence.ndim == 1 || (sequence.ndim > 1 && sequence.ndim == ndim);
    for (int i = 0; fits && i < sequence.ndim - 1; ++i)
        fits = sequence.shape_[i] == a.x().v.tensor->shape_[i];
    if (!fits)
        fail(
            YOKE_E_VALUE,
            "searchsorted: argument 'sorted_sequence' has shape %s and 'x' %s; the sequence must be a vector, or alike in all axes but the last",
            to_string(sequence.shape()).c_str(),
            is_scalar(a.x()) ? "[]" : to_string(a.x().v.tensor->shape()).c_str());
    return search(sequence, a.x(), a.right(), a.out_int32(), "searchsorted");
}

Tensor compose_bucketize(BucketizeArgs a)
{
    const NoGrad no_grad;
    if (a.boundaries().ndim != 1)
        fail(YOKE_E_VALUE, "bucketize: argument 'boundaries' has shape %s; it must be a vector",
             to_string(a.boundaries().shape()).c_str());
    return search(a.boundaries(), a.x(), a.right(), a.out_int32(), "bucketize");
}

// ---- Values without repeats ------------------------------------------------------------------------------

namespace {

// Rows in ascending order, and their former places.
struct SortedRows {
    Tensor rows, order;
};

// Sorts the rows of a matrix by the first column, then by the next. Sorting by the last column first works, because the
// sort is stable.
SortedRows sorted_rows(const Tensor &rows)
{
    if (rows->shape_[1] == 1) {
        auto [values, places] = ops::sort(rows, 0);
        return {values, ops::reshape(places, Dims{-1})};
    }
    Tensor order = numbers_to(rows->shape_[0], rows->device);
    for (int64_t i = rows->shape_[1]; i-- > 0;) {
        const Tensor column =
            ops::index_select(ops::squeeze(ops::slice(rows, 1, i, i + 1), 1), 0, order);
        order = ops::index_select(order, 0, ops::argsort(column, 0));
    }
    return {ops::index_select(rows, 0, order), order};
}

// Returns, for rows in order, whether a row differs from the row before.
Tensor begins(const Tensor &rows)
{
    const int64_t count = rows->shape_[0];
    const Tensor first = ops::ones(Dims{std::min<int64_t>(count, 1)}, YOKE_BOOL, rows->device);
    if (count < 2) return first;
    const Tensor unlike = ops::ne(ops::slice(rows, 0, 1), ops::slice(rows, 0, 0, count - 1));
    const Tensor differs =
        rows->shape_[1] == 1 ? ops::reshape(unlike, Dims{-1}) : ops::any(unlike, IntList(Dims{1}));
    yoke_tensor *const parts[] = {first.get(), differs.get()};
    return ops::cat(parts);
}

}  // namespace

int64_t count_unique(UniqueArgs a)
{
    return 1 + a.return_inverse() + a.return_counts();
}

std::vector<Tensor> compose_unique(UniqueArgs a)
{
    const NoGrad no_grad;
    const yoke_tensor &x = a.x();
    const int axis = a.axis() ? existing_axis(x, *a.axis(), "unique") : 0;
    const Tensor parts = a.axis() ? ops::transpose(x, 0, axis) : ops::reshape(x, Dims{-1});
    const int64_t count = parts->shape_[0];
    const Tensor rows = ops::reshape(parts, Dims{count, count ? parts->numel / count : 1});
    const auto [sorted, order] = sorted_rows(rows);
    const Tensor begin = begins(sorted);
    const Tensor places = ops::nonzero_tuple(begin)[0];
    const Tensor values = a.axis()
                              ? ops::index_select(parts, 0, ops::index_select(order, 0, places))
                              : ops::reshape(ops::index_select(sorted, 0, places), Dims{-1});
    std::vector<Tensor> results{a.axis() ? ops::contiguous(ops::transpose(values, 0, axis))
                                         : values};
    if (a.return_inverse()) {
        const Tensor group = ops::sub(ops::cumsum(begin, 0), int64_t{1});
        const Tensor inverse = ops::index_copy(ops::zeros_like(group), 0, order, group);
        results.push_back(a.axis() ? inverse : ops::view(inverse, x.shape()));
    }
    if (a.return_counts()) {
        const Tensor all = ops::full(Dims{1}, count, YOKE_I64, x.device);
        yoke_tensor *const ends[] = {places.get(), all.get()};
        const Tensor bounds = ops::cat(ends);
        results.push_back(ops::sub(ops::slice(bounds, 0, 1), places));
        if (!count) results.back() = ops::zeros(Dims{0}, YOKE_I64, x.device);
    }
    return results;
}

// ---- Counts ----------------------------------------------------------------------------------------------

Tensor compose_bincount(BincountArgs a)
{
    const NoGrad no_grad;
    const yoke_tensor &x = a.x();
    if (is_floating(x.dtype) || x.dtype == YOKE_BOOL)
        fail(YOKE_E_TYPE, "bincount: argument 'x' is %s; it takes integers: cast it first",
             name(x.dtype));
    if (x.ndim != 1)
        fail(YOKE_E_VALUE, "bincount: argument 'x' has shape %s; it must have one axis: reshape it",
             to_string(x.shape()).c_str());
    if (a.minlength() < 0)
        fail(YOKE_E_VALUE, "bincount: argument 'minlength' is %lld; it must be 0 or more",
             static_cast<long long>(a.minlength()));
    const yoke_tensor *weights = a.weights();
    if (weights && !same(weights->shape(), x.shape()))
        fail(YOKE_E_VALUE,
             "bincount: argument 'weights' has shape %s and 'x' %s; both must have the same shape",
             to_string(weights->shape()).c_str(), to_string(x.shape()).c_str());
    int64_t size = a.minlength();
    if (x.numel) {
        const int64_t least = read_int(ops::amin(x), "bincount");
        const int64_t largest = read_int(ops::amax(x), "bincount");
        if (least < 0)
            fail(YOKE_E_VALUE,
                 "bincount: argument 'x' has the number %lld; numbers must be 0 or more",
                 static_cast<long long>(least));
        if (largest == INT64_MAX)
            fail(
                YOKE_E_VALUE,
                "bincount: argument 'x' has the number %lld; numbers must be smaller, since each has a count of its own",
                static_cast<long long>(largest));
        size = std::max(size, largest + 1);
    }
    const yoke_dtype dtype = !weights ? YOKE_I64 : weights->dtype == YOKE_F32 ? YOKE_F32 : YOKE_F64;
    const Tensor amounts = weights ? ops::cast(*weights, dtype)
                                   : ops::expand(ops::ones({}, dtype, x.device), x.shape());
    return ops::scatter_add(ops::zeros(Dims{size}, dtype, x.device), 0, ops::cast(x, YOKE_I64),
                            amounts);
}

namespace {

struct BinBounds {
    double low, high;
};

// Returns the bounds of histc: of the arguments, or of x's elements.
BinBounds bin_bounds_of(HistcArgs a)
{
    BinBounds range{scalar_f64(a.min()), scalar_f64(a.max())};
    if (range.low == range.high && a.x().numel) {
        copy_to_host(ops::cast(ops::amin(a.x()), YOKE_F64), &range.low, sizeof range.low, "histc");
        copy_to_host(ops::cast(ops::amax(a.x()), YOKE_F64), &range.high, sizeof range.high,
                     "histc");
    }
    if (range.low == range.high) range = {range.low - 1, range.high + 1};
    if (!std::isfinite(range.low) || !std::isfinite(range.high) || range.low > range.high)
        fail(
            YOKE_E_VALUE,
            "histc: argument 'min' is %g and 'max' %g, or x's range if they are equal; both must be finite, and max must be above min",
            range.low, range.high);
    return range;
}

}  // namespace

Tensor compose_histc(HistcArgs a)
{
    const NoGrad no_grad;
    check_computable(a.x(), "histc", "x");
    if (a.bins() < 1 || a.bins() == INT64_MAX)
        fail(
            YOKE_E_VALUE,
            "histc: argument 'bins' is %lld; it must be 1 or more, and memory must hold a count for each",
            static_cast<long long>(a.bins()));
    const BinBounds range = bin_bounds_of(a);
    const yoke_dtype dtype = a.x().dtype;
    const Tensor x = ops::reshape(is_half(dtype) ? ops::cast(a.x(), YOKE_F32)
                                                 : Tensor::share(const_cast<yoke_tensor *>(&a.x())),
                                  Dims{-1});
    const Tensor inside = ops::logical_and(ops::ge(x, range.low), ops::le(x, range.high));
    const Tensor place = ops::div(ops::mul(ops::sub(x, range.low), static_cast<double>(a.bins())),
                                  range.high - range.low);
    const Tensor bin =
        ops::clamp(ops::cast(place, YOKE_I64), Operand(int64_t{0}), Operand(a.bins() - 1));
    // Elements outside are counted in a bin behind the others.
    const Tensor bins = ops::where(inside, bin, a.bins());
    const Tensor counts =
        ops::scatter_add(ops::zeros(Dims{a.bins() + 1}, YOKE_I64, x->device), 0, bins,
                         ops::expand(ops::ones({}, YOKE_I64, x->device), bins->shape()));
    return ops::cast(ops::slice(counts, 0, 0, a.bins()), dtype);
}

}  // namespace yoke
