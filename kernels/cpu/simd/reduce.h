// The engine of reductions over any set of axes of a strided tensor.
//
// Contract: the order in which elements are combined depends on shapes and strides alone, never on the number of
// threads. Rows follow reduce_span in items of a fixed length, columns go row by row within blocks, and items are
// combined pairwise in order. Op is a reduction of kernels/common/reduce.h; put(char *out, State) stores a result.
#pragma once

#include "kernels/common/axes.h"
#include "kernels/cpu/simd/reduce_columns.h"

YOKE_SIMD_BEGIN

using kernels::mark_axes;

// ---- rows: each result from its own run of elements ------------------------------------------------------------

// Type of the elements returned by load_elements for T.
template <class T>
using run_type = std::conditional_t<kernels::is_narrow<T>, float, T>;

// Reduces at most one chunk of dense elements. Compiled once for an op and the type of a run.
template <class Op, class C>
[[gnu::noinline]] inline typename Op::State reduce_dense(const Op &op, const C *x, int64_t n)
{
    return kernels::reduce_chunk(op, x, 1, 0, n);
}

// Reduces n elements of x, `stride` bytes apart. Elements that are not a dense run of C pass through a buffer, chunk
// by chunk.
template <class Op, class C>
[[gnu::noinline]] inline typename Op::State reduce_run(const Op &op, yoke_dtype dtype,
                                                       const char *x, int64_t stride, int64_t n)
{
    static_assert(kernels::kReduceChunk <= kMostElements);
    C buffer[kernels::kReduceChunk];
    auto chunk = [&](int64_t begin, int64_t count) {
        const void *run = load_elements(dtype, x + begin * stride, stride, count, buffer);
        return reduce_dense(op, static_cast<const C *>(run), count);
    };
    if (n <= kernels::kReduceChunk) return chunk(0, n);
    Pairwise<Op> total(op);
    for (int64_t begin = 0; begin < n; begin += kernels::kReduceChunk)
        total.push(chunk(begin, min(n - begin, kernels::kReduceChunk)));
    return total.finish();
}

// Reduces elements [begin, end) of a result, with the first element at `x`.
template <class T, class Op>
inline typename Op::State reduce_row(const Op &op, const Loop<1> &reduced, const char *x,
                                     int64_t begin, int64_t end)
{
    auto run = [&](const char *from, int64_t n) {
        return reduce_run<Op, run_type<T>>(op, kernels::dtype_of<T>, from, reduced.stride[0][0], n);
    };
    if (reduced.ndim == 1) return run(x + begin * reduced.stride[0][0], end - begin);
    Loop<1> row = reduced;
    row.data[0] = const_cast<char *>(x);
    Pairwise<Op> total(op);
    walk<1>(row, begin, end,
            [&](char *const *data, const int64_t *, int64_t n) { total.push(run(data[0], n)); });
    return total.finish();
}

// Reduces few long results: each result by the whole team, in items of a fixed length.
template <class T, class Op, class Put>
inline yoke_status reduce_long_rows(const yoke_launch *launch, const Op &op, const Axes &axes,
                                    const Put &put)
{
    int64_t length = axes.reduced.numel, items = divide_up(length, kItem);
    Scratch scratch(launch);
    if (yoke_status status = scratch.reserve((uint64_t)items * sizeof(typename Op::State)))
        return status;
    auto *states = static_cast<typename Op::State *>(scratch.data());
    for (int64_t result = 0; result < axes.kept.numel; result++) {
        Cursor<2> cursor(axes.kept, result);
        parallel_items(items, [&](int64_t item) {
            states[item] = reduce_row<T>(op, axes.reduced, cursor.data[kX], item * kItem,
                                         min(length, (item + 1) * kItem));
        });
        Pairwise<Op> total(op);
        for (int64_t item = 0; item < items; item++) total.push(states[item]);
        put(cursor.data[kResult], total.finish());
    }
    return YOKE_OK;
}

template <class T, class Op, class Put>
inline yoke_status reduce_rows(const yoke_launch *launch, const Op &op, const Axes &axes,
                               const Put &put)
{
    int64_t length = axes.reduced.numel;
    if (length > kItem) return reduce_long_rows<T>(launch, op, axes, put);
    parallel_range(axes.kept.numel, max(1, kGrain / max(1, length)),
                   [&](int64_t begin, int64_t end) {
                       Cursor<2> cursor(axes.kept, begin);
                       for (; begin < end; begin++, cursor.advance(axes.kept, 0, 1))
                           put(cursor.data[kResult],
                               reduce_row<T>(op, axes.reduced, cursor.data[kX], 0, length));
                   });
    return YOKE_OK;
}

// Reduces operand 0 by `op`, and stores each result by put(out, state). Parameter number `axis` names the reduced
// axes.
template <class T, class Op, class Put>
inline yoke_status reduce(const yoke_launch *launch, const Op &op, const Put &put, int axis = 0)
{
    const yoke_operand &x = launch->operands[0], &out = launch->operands[1];
    if (out.numel == 0) return YOKE_OK;
    bool is_reduced[YOKE_MAX_NDIM];
    mark_axes(launch->params[axis], x.ndim, is_reduced);
    Axes axes(x, out, is_reduced);
    return axes.by_columns() ? reduce_by_columns<T>(launch, op, axes, put)
                             : reduce_rows<T>(launch, op, axes, put);
}

// Stores a state in the result's dtype, which may be wider or narrower than x's dtype.
template <class State>
[[gnu::noinline]] inline void put_as(yoke_dtype dtype, char *out, State state)
{
#define YOKE_PUT(value, type)                \
    case value:                              \
        *(type *)out = convert<type>(state); \
        break;
    switch (dtype) {
        YOKE_ALL_TYPES(YOKE_PUT)
        default:
            break;  // refused before the first element
    }
#undef YOKE_PUT
}

YOKE_SIMD_END
