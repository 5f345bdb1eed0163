#include "core/parallel/powersgd_math.h"

#include "core/base/config.h"
#include "core/base/random.h"
#include "core/ops/ops.h"
#include "core/select/select.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace yoke {

namespace {

constexpr const char *kName = "DistributedDataParallel";

// Some rows of a single matrix, or all rows of a batch.
struct MatrixRows {
    int64_t first = 0, count = 0;  // matrices
    int64_t row = 0, rows = 0;

    Tensor of(const Tensor &matrices) const
    {
        const auto strides = matrices->strides();
        const int64_t shape[] = {count, rows, matrices->shape()[2]};
        return make_view(*matrices, shape, strides.data(), first * strides[0] + row * strides[1]);
    }
    Tensor all_rows_of(const Tensor &matrices) const
    {
        const int64_t shape[] = {count, matrices->shape()[1], matrices->shape()[2]};
        return make_view(*matrices, shape, matrices->strides().data(),
                         first * matrices->strides()[0]);
    }
};

// Calls visit with each block of a batch: some rows of a matrix. A batch that is small, or not in host memory, is a
// single block.
template <class Visit>
void by_blocks(const yoke_tensor &batch, const Visit &visit)
{
    // Two blocks, with their thin matrices, fit the caches of the cores.
    const int64_t most = (int64_t{1} << 19) * num_threads();
    const int64_t count = batch.shape()[0], rows = batch.shape()[1], columns = batch.shape()[2];
    const int64_t of_a_row = columns * static_cast<int64_t>(item_size(batch.dtype));
    if (!batch.device->host || count * rows * of_a_row <= most)
        return visit(MatrixRows{0, count, 0, rows});
    const int64_t at_once = std::max<int64_t>(1, most / of_a_row);
    for (int64_t i = 0; i < count; ++i)
        for (int64_t row = 0; row < rows; row += at_once)
            visit(MatrixRows{i, 1, row, std::min(at_once, rows - row)});
}

// Undoes an operation on the first `count` blocks of a batch, after a later block has failed.
template <class Undo>
void undo_blocks(const yoke_tensor &batch, size_t count, const Undo &undo)
{
    by_blocks(batch, [&](const MatrixRows &block) {
        if (count == 0) return;
        --count;
        undo(block);
    });
}

}  // namespace

// Returns normal numbers by Box and Muller, from a counter.
Tensor normal_numbers(Device &device, yoke_dtype dtype, const std::vector<int64_t> &shape,
                      uint64_t seed)
{
    const auto uniform = [&seed] {
        return (static_cast<double>(next_mixed(seed) >> 11) + 1) * 0x1p-53;
    };
    Tensor wide = make_tensor(open_device("cpu"), YOKE_F64, shape, kName);
    std::vector<double> values(static_cast<size_t>(wide->numel));
    for (double &each : values) {
        const double radius = std::sqrt(-2 * std::log(uniform()));  // calls in a fixed order
        each = radius * std::cos(2 * std::numbers::pi * uniform());
    }
    copy_from_host(*wide, values.data(), wide->nbytes(), kName);
    const Tensor made = ops::cast(*wide, dtype);
    if (device.host) return made;
    Tensor there = make_tensor(device, dtype, shape, kName);
    transfer(*there, *made, false);
    return there;
}

namespace {

// Scales columns [count, rows, 1] to length 1. Columns with length 0 stay.
Tensor of_length_1(const Tensor &columns)
{
    const int64_t axis[] = {1};
    return ops::div(*columns, *ops::maximum(*ops::norm(*columns, 2, axis, true),
                                            std::numeric_limits<float>::min()));
}

// Returns the part of the columns at right angles to `others`, which are at right angles to each other.
Tensor beside(const Tensor &columns, const Tensor &others)
{
    const Tensor along = ops::matmul(*transposed(others), *columns);
    return ops::sub(*columns, *ops::matmul(*others, *along));
}

// Scales each column's largest number to 1, so every square is in a float's range.
void scale_columns(const Tensor &matrices)
{
    const int64_t axis[] = {1};
    const Tensor largest = ops::amax(*ops::abs(*matrices), axis, true);
    ops::div_(*matrices, *ops::where(*ops::eq(*largest, 0.0), 1.0, *largest));
}

double least_part(yoke_dtype dtype)
{
    constexpr double kRoundings = 16;
    return kRoundings * (dtype == YOKE_F64 ? std::numeric_limits<double>::epsilon()
                                           : std::numeric_limits<float>::epsilon());
}

}  // namespace

// Orthogonalises by Gram and Schmidt, each column twice: the first pass may leave little but rounding errors.
void orthogonalize(const Tensor &matrices, const Tensor &fresh)
{
    const int64_t count = matrices->shape()[0], rows = matrices->shape()[1],
                  rank = matrices->shape()[2];
    const auto columns = [&](const Tensor &of, int64_t from, int64_t to) {
        const int64_t shape[] = {count, rows, to - from}, strides[] = {rows * rank, rank, 1};
        return make_view(*of, shape, strides, from);
    };
    const int64_t axis[] = {1};
    scale_columns(matrices);
    for (int64_t i = 0; i < rank; ++i) {
        const Tensor column = columns(matrices, i, i + 1), others = columns(matrices, 0, i);
        const Tensor part = i > 0 ? beside(column, others) : column;
        const Tensor least =
            ops::mul(*ops::norm(*column, 2, axis, true), least_part(matrices->dtype));
        const Tensor is_nothing = ops::le(*ops::norm(*part, 2, axis, true), *least);
        Tensor made = fresh.present() ? ops::where(*is_nothing, *columns(fresh, i, i + 1), *part)
                                      : ops::where(*is_nothing, 0.0, *part);
        made = of_length_1(made);
        if (i > 0) made = of_length_1(beside(made, others));
        ops::copy_(*column, *made);
    }
}

bool is_finite(const yoke_tensor &tensor)
{
    const Tensor zero = ops::sum(*ops::mul(tensor, 0.0), {}, false);
    double sum = 0;
    copy_to_host(*ops::cast(*zero, YOKE_F64), &sum, sizeof sum, kName);
    return sum == 0;
}

Tensor transposed(const Tensor &matrices)
{
    const auto shape = matrices->shape(), strides = matrices->strides();
    const int64_t turned[] = {shape[0], shape[2], shape[1]},
                  steps[] = {strides[0], strides[2], strides[1]};
    return make_view(*matrices, turned, steps, 0);
}

Tensor take_in(const Tensor &errors, const Tensor &matrices, const Tensor &q)
{
    const auto shape = matrices->shape();
    const int64_t thin[] = {shape[0], shape[1], q->shape()[2]};
    const Tensor p = make_tensor(*matrices->device, matrices->dtype, thin, kName);
    size_t added = 0;
    try {
        by_blocks(*matrices, [&](const MatrixRows &block) {
            const Tensor some = block.of(errors);
            ops::add_(*some, *block.of(matrices));
            ++added;
            ops::copy_(*block.of(p), *ops::matmul(*some, *block.all_rows_of(q)));
        });
    } catch (...) {
        undo_blocks(*matrices, added, [&](const MatrixRows &block) {
            ops::sub_(*block.of(errors), *block.of(matrices));
        });
        throw;
    }
    return p;
}

void put_out(const Tensor &errors, const Tensor &matrices, const Tensor &p, const Tensor &q)
{
    size_t taken = 0;
    try {
        by_blocks(*matrices, [&](const MatrixRows &block) {
            const Tensor some = block.of(matrices);
            ops::copy_(*some, *ops::matmul(*block.of(p), *transposed(block.all_rows_of(q))));
            ops::sub_(*block.of(errors), *some);
            ++taken;
        });
    } catch (...) {
        undo_blocks(*matrices, taken, [&](const MatrixRows &block) {
            ops::add_(*block.of(errors), *block.of(matrices));
        });
        throw;
    }
}

}  // namespace yoke
