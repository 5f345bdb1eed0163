// The engine of reductions over any set of axes of a strided tensor.
//
// Contract: the order in which elements are combined depends on shapes and strides alone, never on the number of
// threads. Rows follow reduce_span in items of a fixed length, columns go row by row within blocks, and items are
// combined pairwise in order. Op is a reduction of kernels/common/reduce.h; put(char *out, State) stores a result.
#pragma once

#include "kernels/common/reduce.h"
#include "kernels/cpu/simd/copy.h"

YOKE_SIMD_BEGIN

constexpr int64_t kItem =
    65536;  // elements of one result that one thread reduces; a power of two of chunks
constexpr int64_t kColumns = 128;   // results that are accumulated side by side
constexpr int64_t kRowBlock = 128;  // rows added one after another before their sum joins the total

// States combined in order by pairs, like the digits of a binary counter.
template <class Op>
struct Pairwise {
    using State = typename Op::State;
    const Op &op;
    State partial[64];
    int depth = 0;
    int64_t count = 0;

    explicit Pairwise(const Op &reduction) : op(reduction) {}

    void push(State state)
    {
        for (int64_t digit = count++; digit & 1; digit >>= 1)
            state = op.combine(partial[--depth], state);
        partial[depth++] = state;
    }

    State finish()
    {
        if (depth == 0) return op.init();
        State state = partial[--depth];
        while (depth > 0) state = op.combine(partial[--depth], state);
        return state;
    }
};

// The axes of a reduction: what is kept, with its place in the result, and what is reduced.
struct Axes {
    Loop<2> kept;     // result, x
    Loop<1> reduced;  // x

    Axes(const yoke_operand &x, const yoke_operand &out, const bool *is_reduced)
    {
        kept.ndim = reduced.ndim = 0;
        kept.numel = reduced.numel = 1;
        kept.data[0] = data_of<char>(out);
        kept.data[1] = reduced.data[0] = data_of<char>(x);
        int64_t size = dtype_size(x.dtype), out_size = dtype_size(out.dtype);
        bool keepdim = out.ndim == x.ndim;
        int out_axis = out.ndim - 1;
        for (int axis = x.ndim - 1; axis >= 0; axis--) {
            int64_t step = x.strides[axis] * size;
            if (is_reduced[axis])
                add_axis<1>(reduced, x.shape[axis], {step});
            else
                add_axis<2>(kept, x.shape[axis], {out.strides[out_axis] * out_size, step});
            if (keepdim || !is_reduced[axis]) out_axis--;
        }
        // The result's order matters less than x's, by which the walk goes.
        for (int axis = 0; axis < kept.ndim; axis++) swap_sides(kept.stride[axis]);
        finish_loop<2>(kept);
        for (int axis = 0; axis < kept.ndim; axis++) swap_sides(kept.stride[axis]);
        finish_loop<1>(reduced);
    }

    // Whether neighbours in memory belong to different results.
    bool by_columns() const
    {
        int64_t along_kept = kept.stride[0][1], along_reduced = reduced.stride[0][0];
        if (kept.shape[0] < 4 || reduced.numel == 0) return false;
        if (reduced.numel == 1) return true;
        return along_kept != 0 && magnitude(along_kept) < magnitude(along_reduced);
    }

    static int64_t magnitude(int64_t stride) { return stride < 0 ? -stride : stride; }

    static void swap_sides(int64_t (&pair)[2])
    {
        int64_t first = pair[0];
        pair[0] = pair[1];
        pair[1] = first;
    }
};

// ---- rows: each result from its own run of elements ------------------------------------------------------------

// Elements [begin, end) of one result, whose first element is at `x`.
template <class T, class Op>
inline typename Op::State reduce_row(const Op &op, const Loop<1> &reduced, const char *x,
                                     int64_t begin, int64_t end)
{
    Loop<1> row = reduced;
    row.data[0] = const_cast<char *>(x);
    Pairwise<Op> total(op);
    walk<1>(row, begin, end, [&](char *const *data, const int64_t *stride, int64_t n) {
        total.push(kernels::reduce_span(op, (const T *)data[0], stride[0] / (int64_t)sizeof(T), n));
    });
    return total.finish();
}

// Few long results: each by the whole team, in items of a fixed length.
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
            states[item] = reduce_row<T>(op, axes.reduced, cursor.data[1], item * kItem,
                                         min(length, (item + 1) * kItem));
        });
        Pairwise<Op> total(op);
        for (int64_t item = 0; item < items; item++) total.push(states[item]);
        put(cursor.data[0], total.finish());
    }
    return YOKE_OK;
}

template <class T, class Op, class Put>
inline yoke_status reduce_rows(const yoke_launch *launch, const Op &op, const Axes &axes,
                               const Put &put)
{
    int64_t length = axes.reduced.numel;
    if (length > kItem) return reduce_long_rows<T>(launch, op, axes, put);
    parallel_range(
        axes.kept.numel, max(1, kGrain / max(1, length)), [&](int64_t begin, int64_t end) {
            Cursor<2> cursor(axes.kept, begin);
            for (; begin < end; begin++, cursor.advance(axes.kept, 0, 1))
                put(cursor.data[0], reduce_row<T>(op, axes.reduced, cursor.data[1], 0, length));
        });
    return YOKE_OK;
}

// ---- columns: neighbouring results accumulated side by side -----------------------------------------------------

// Rows [begin, end) of n neighbouring results into states[n].
template <class T, class Op>
inline void reduce_columns(const Op &op, const Axes &axes, const char *x, int64_t n, int64_t begin,
                           int64_t end, typename Op::State *states)
{
    typename Op::State block[kColumns];
    int64_t step = axes.kept.stride[0][1];
    Loop<1> rows = axes.reduced;
    rows.data[0] = const_cast<char *>(x);
    Cursor<1> cursor(rows, begin);
    for (int64_t j = 0; j < n; j++) states[j] = op.init();
    while (begin < end) {
        int64_t stop = min(end, begin + kRowBlock);
        for (int64_t j = 0; j < n; j++) block[j] = op.init();
        for (; begin < stop; begin++, cursor.advance(rows, 0, 1)) {
            const char *row = cursor.data[0];
            if (step == sizeof(T)) {
#pragma omp simd
                for (int64_t j = 0; j < n; j++)
                    block[j] = op.reduce(block[j], load<T>(((const T *)row)[j]), 0);
            } else {
                for (int64_t j = 0; j < n; j++)
                    block[j] = op.reduce(block[j], load<T>(*(const T *)(row + j * step)), 0);
            }
        }
        for (int64_t j = 0; j < n; j++) states[j] = op.combine(states[j], block[j]);
    }
}

// One tile of results: where it begins, and how many.
struct Tile {
    const char *x;
    char *out;
    int64_t count, first;

    Tile(const Loop<2> &kept, int64_t index)
    {
        int64_t per_row = divide_up(kept.shape[0], kColumns);
        int64_t row = index / per_row, column = index % per_row * kColumns;
        first = row * kept.shape[0] + column;
        count = min(kColumns, kept.shape[0] - column);
        Cursor<2> cursor(kept, first);
        out = cursor.data[0];
        x = cursor.data[1];
    }
};

template <class T, class Op, class Put>
inline yoke_status reduce_by_columns(const yoke_launch *launch, const Op &op, const Axes &axes,
                                     const Put &put)
{
    using State = typename Op::State;
    const Loop<2> &kept = axes.kept;
    int64_t rows = axes.reduced.numel, step = kept.stride[0][0];
    int64_t tiles = divide_up(kept.shape[0], kColumns) * (kept.numel / kept.shape[0]);
    // Rows are cut where tiles alone would leave the team idle; the cut depends on the shape alone.
    int64_t item_rows = tiles >= 16 ? rows : max(kRowBlock, divide_up(kItem, kept.shape[0]));
    int64_t items = divide_up(rows, item_rows);
    if (items <= 1) {
        int64_t grain = max(1, kGrain / max(1, rows * min(kColumns, kept.shape[0])));
        auto run = [&](int64_t index) {
            State states[kColumns];
            Tile tile(kept, index);
            reduce_columns<T>(op, axes, tile.x, tile.count, 0, rows, states);
            for (int64_t j = 0; j < tile.count; j++) put(tile.out + j * step, states[j]);
        };
        if (tiles < 2 * grain)
            for (int64_t i = 0; i < tiles; i++) run(i);
        else
            parallel_items(tiles, run);
        return YOKE_OK;
    }
    Scratch scratch(launch);
    if (yoke_status status = scratch.reserve((uint64_t)(items * kept.numel) * sizeof(State)))
        return status;
    State *states = static_cast<State *>(scratch.data());
    parallel_items(items, [&](int64_t item) {
        for (int64_t index = 0; index < tiles; index++) {
            Tile tile(kept, index);
            reduce_columns<T>(op, axes, tile.x, tile.count, item * item_rows,
                              min(rows, (item + 1) * item_rows),
                              states + item * kept.numel + tile.first);
        }
    });
    for (int64_t index = 0; index < tiles; index++) {
        Tile tile(kept, index);
        for (int64_t j = 0; j < tile.count; j++) {
            Pairwise<Op> total(op);
            for (int64_t item = 0; item < items; item++)
                total.push(states[item * kept.numel + tile.first + j]);
            put(tile.out + j * step, total.finish());
        }
    }
    return YOKE_OK;
}

// The axes that a parameter of kind none (all), int or ints names.
inline void mark_axes(const yoke_arg &axis, int ndim, bool *is_reduced)
{
    for (int i = 0; i < ndim; i++) is_reduced[i] = axis.kind == YOKE_ARG_NONE;
    if (axis.kind == YOKE_ARG_INT) is_reduced[axis.v.i] = true;
    if (axis.kind == YOKE_ARG_INTS)
        for (int32_t i = 0; i < axis.count; i++) is_reduced[axis.v.ints[i]] = true;
}

template <class T, class Op, class Put>
inline yoke_status reduce(const yoke_launch *launch, const Op &op, const Put &put)
{
    const yoke_operand &x = launch->operands[0], &out = launch->operands[1];
    if (out.numel == 0) return YOKE_OK;
    bool is_reduced[YOKE_MAX_NDIM];
    mark_axes(launch->params[0], x.ndim, is_reduced);
    Axes axes(x, out, is_reduced);
    return axes.by_columns() ? reduce_by_columns<T>(launch, op, axes, put)
                             : reduce_rows<T>(launch, op, axes, put);
}

YOKE_SIMD_END
