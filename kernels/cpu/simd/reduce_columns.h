// Reductions in which neighbours in memory belong to different results: those are accumulated side by side, so that
// every row of memory is read once and from end to end.
//
// Contract
//  * Rows of a block are taken one after another, blocks of an item likewise, and items are joined by pairs. Blocks
//    and items follow from the shape alone.
//  * A two-pass op (kernels/common/moments.h) goes over a block twice; a block is small enough to stay in the cache.
#pragma once

#include "kernels/common/moments.h"
#include "kernels/cpu/simd/reduce_axes.h"

YOKE_SIMD_BEGIN

constexpr int64_t kRowsAtATime = 4;  // rows between two visits to the states

template <class Op>
constexpr bool kTwoPass = requires(const Op &op)
{
    op.first_init();
};

// Columns of a tile and rows of a block: states of a tile stay in the first cache, a block of two passes in the second.
// States and parts of a tile lie on the stack, of which a small thread has 64 KiB: wide states get fewer columns.
template <class Op>
constexpr int64_t kTileColumns = kTwoPass<Op> || sizeof(typename Op::State) > 8 ? 256 : 1024;
template <class Op>
constexpr int64_t kBlockRows = kTwoPass<Op> ? 64 : 128;

// Reader of the next rows of a tile, as pointers to T with the reader's own step. f16 is widened into a buffer,
// because its conversion is an instruction for whole runs only.
template <class T, int64_t kColumns>
struct RowReader {
    static constexpr bool kWidens = std::is_same_v<T, f16>;
    using Element = std::conditional_t<kWidens, float, T>;
    Element buffer[kWidens ? kRowsAtATime * kColumns : 1];
    const char *row[kRowsAtATime];
    int64_t step;

    RowReader(int64_t x_step) : step(x_step) {}

    void read(Cursor<1> &cursor, const Loop<1> &rows, int64_t count, int64_t n)
    {
        for (int64_t r = 0; r < count; r++, cursor.advance(rows, 0, 1)) {
            row[r] = cursor.data[0];
            if constexpr (kWidens) {
                float *wide = buffer + r * kColumns;
                load_elements(YOKE_F16, row[r], step, n, wide);
                row[r] = (const char *)wide;
            }
        }
    }

    bool is_dense() const { return kWidens || step == sizeof(T); }
    int64_t element_step() const { return kWidens ? (int64_t)sizeof(float) : step; }
};

// Calls f(j, x...) for every element of `count` rows. The values of column j come in the order of the rows.
template <class E, class F>
inline void for_columns(const char *const *row, int64_t count, int64_t step, bool dense, int64_t n,
                        const F &f)
{
    if (dense && count == kRowsAtATime) {
        const E *a = (const E *)row[0], *b = (const E *)row[1];
        const E *c = (const E *)row[2], *d = (const E *)row[3];
#pragma omp simd
        for (int64_t j = 0; j < n; j++)
            f(j, load<E>(a[j]), load<E>(b[j]), load<E>(c[j]), load<E>(d[j]));
    } else if (dense) {
        for (int64_t r = 0; r < count; r++) {
            const E *a = (const E *)row[r];
#pragma omp simd
            for (int64_t j = 0; j < n; j++) f(j, load<E>(a[j]));
        }
    } else {
        for (int64_t r = 0; r < count; r++)
            for (int64_t j = 0; j < n; j++) f(j, load<E>(*(const E *)(row[r] + j * step)));
    }
}

// Goes over rows [begin, end) of n columns: acc[j] = take(acc[j], x, j) in the order of the rows.
template <class T, int64_t kColumns, class Acc, class Step>
inline void pass_over_rows(const Loop<1> &rows, int64_t x_step, int64_t n, int64_t begin,
                           int64_t end, Acc *acc, const Step &take)
{
    RowReader<T, kColumns> reader(x_step);
    using E = typename RowReader<T, kColumns>::Element;
    Cursor<1> cursor(rows, begin);
    for (; begin < end; begin += kRowsAtATime) {
        int64_t count = min(kRowsAtATime, end - begin);
        reader.read(cursor, rows, count, n);
        for_columns<E>(
            reader.row, count, reader.element_step(), reader.is_dense(),
            n, [&](int64_t j, auto... x) __attribute__((always_inline)) {
                Acc value = acc[j];
                ((value = take(value, x, j)), ...);
                acc[j] = value;
            });
    }
}

// Rows [begin, end) of n neighbouring columns, x_step bytes apart.
struct ColumnBlock {
    const Loop<1> &rows;
    int64_t x_step, n, begin, end;
};

// States of a block's columns whose plain sums are in doubt. operator[] computes the state of a column with care.
template <class T, class Op>
class DoubtfulColumns {
public:
    DoubtfulColumns(const Op &op, const ColumnBlock &block) : op_(op), block_(block)
    {
        if constexpr (kKnowsConstants) {
            for (int64_t j = 0; j < block.n; j++) first_[j] = (C)0, differs_[j] = 0;
            pass(
                block.begin + 1, first_,
                [](C, C x, int64_t) __attribute__((always_inline)) { return x; });
            pass(
                block.end, differs_, [this](Flag s, C x, int64_t j) __attribute__((always_inline)) {
                    return s | (Flag) !(x == first_[j]);
                });
        }
    }

    typename Op::State operator[](int64_t j) const
    {
        const int64_t count = block_.end - block_.begin;
        if constexpr (kKnowsConstants)
            if (!differs_[j] && first_[j] - first_[j] == 0)
                return op_.of_constant(count, first_[j]);
        C column[kBlockRows<Op>] = {};
        Cursor<1> cursor(block_.rows, block_.begin);
        for (int64_t i = 0; i < count; i++, cursor.advance(block_.rows, 0, 1))
            column[i] = load<T>(*(const T *)(cursor.data[0] + j * block_.x_step));
        return op_.careful(count, [&](int64_t i) { return column[i]; });
    }

private:
    using C = compute_type<T>;
    using Flag = kernels::flag_type<T>;
    static constexpr int64_t kColumns = kTileColumns<Op>;
    static constexpr bool kKnowsConstants = requires(const Op &op, C x) { op.of_constant(0, x); };

    template <class Acc, class Step>
    void pass(int64_t end, Acc *acc, const Step &take)
    {
        pass_over_rows<T, kColumns>(block_.rows, block_.x_step, block_.n, block_.begin, end, acc,
                                    take);
    }

    const Op &op_;
    const ColumnBlock &block_;
    C first_[kKnowsConstants ? kColumns : 1];
    Flag differs_[kKnowsConstants ? kColumns : 1];
};

// Does the work of join_block() if a column is doubtful or a state is not plain: takes doubtful columns from
// DoubtfulColumns.
template <class T, class Op, class IsDoubtful, class Plain>
[[gnu::noinline]] void join_carefully(const Op &op, const ColumnBlock &block,
                                      typename Op::State *states, const IsDoubtful &is_doubtful,
                                      const Plain &plain)
{
    const DoubtfulColumns<T, Op> doubtful(op, block);
    for (int64_t j = 0; j < block.n; j++)
        states[j] = op.combine(states[j], is_doubtful(j) ? doubtful[j] : plain(j));
}

// Combines the states of a block's columns, plain(j), into states[j]. If is_doubtful(j) holds for any column, or if a
// state is not plain, join_carefully joins the whole block. The search for such columns is a loop of its own, so the
// compiler vectorizes both loops.
template <class T, class Op, class IsDoubtful, class Plain>
inline void join_block(const Op &op, const ColumnBlock &block, typename Op::State *states,
                       const IsDoubtful &is_doubtful, const Plain &plain)
{
    constexpr bool kHasPlainStates = requires
    {
        op.is_plain(states[0]);
    };
    kernels::flag_type<T> doubts = 0;
#pragma omp simd reduction(| : doubts)
    for (int64_t j = 0; j < block.n; j++) {
        bool in_doubt = is_doubtful(j);
        if constexpr (kHasPlainStates) in_doubt |= !op.is_plain(states[j]);
        doubts |= in_doubt;
    }
    if (doubts) [[unlikely]]
        return join_carefully<T>(op, block, states, is_doubtful, plain);
#pragma omp simd
    for (int64_t j = 0; j < block.n; j++) {
        if constexpr (kHasPlainStates)
            states[j] = op.combine_plain(states[j], plain(j));
        else
            states[j] = op.combine(states[j], plain(j));
    }
}

template <class T, class Op>
inline void reduce_block(const Op &op, const Loop<1> &rows, int64_t x_step, int64_t n,
                         int64_t begin, int64_t end, typename Op::State *states)
{
    constexpr int64_t kColumns = kTileColumns<Op>;
    if constexpr (kTwoPass<Op>) {
        using C = typename Op::C;
        C first[kColumns], centre[kColumns], a[kColumns], b[kColumns];
        for (int64_t j = 0; j < n; j++) first[j] = op.first_init();
        pass_over_rows<T, kColumns>(
            rows, x_step, n, begin, end,
            first, [&](C s, C x, int64_t) __attribute__((always_inline)) {
                return op.first(s, x);
            });
        for (int64_t j = 0; j < n; j++) {
            centre[j] = op.centre(first[j], end - begin);
            a[j] = b[j] = (C)0;
        }
        pass_over_rows<T, kColumns>(
            rows, x_step, n, begin, end,
            a, [&](C s, C x, int64_t j) __attribute__((always_inline)) {
                return s + op.second_a(x, centre[j]);
            });
        if constexpr (Op::kHasSecondB)
            pass_over_rows<T, kColumns>(
                rows, x_step, n, begin, end,
                b, [&](C s, C x, int64_t j) __attribute__((always_inline)) {
                    return s + op.second_b(x, centre[j]);
                });
        const auto plain = [&](int64_t j) __attribute__((always_inline))
        {
            return op.state(end - begin, first[j], a[j], b[j]);
        };
        if constexpr (requires { op.is_doubtful(begin, a[0], b[0]); })
            join_block<T>(
                op, {rows, x_step, n, begin, end}, states,
                [&](int64_t j) __attribute__((always_inline)) {
                    return op.is_doubtful(end - begin, a[j], b[j]);
                },
                plain);
        else
            for (int64_t j = 0; j < n; j++) states[j] = op.combine(states[j], plain(j));
    } else if constexpr (kernels::HasParts<Op>) {
        typename Op::Part block[kColumns];
        for (int64_t j = 0; j < n; j++) block[j] = op.part_init();
        using C = compute_type<T>;
        pass_over_rows<T, kColumns>(
            rows, x_step, n, begin, end,
            block, [&](typename Op::Part p, C x, int64_t) __attribute__((always_inline)) {
                return op.part(p, x);
            });
        join_block<T>(
            op, {rows, x_step, n, begin, end}, states,
            [&](int64_t j) __attribute__((always_inline)) { return op.is_doubtful(block[j]); },
            [&](int64_t j) __attribute__((always_inline)) { return op.state(block[j]); });
    } else {
        typename Op::State block[kColumns];
        for (int64_t j = 0; j < n; j++) block[j] = op.init();
        using C = compute_type<T>;
        pass_over_rows<T, kColumns>(
            rows, x_step, n, begin, end,
            block, [&](typename Op::State s, C x, int64_t) __attribute__((always_inline)) {
                return op.reduce(s, x, 0);
            });
#pragma omp simd
        for (int64_t j = 0; j < n; j++) states[j] = op.combine(states[j], block[j]);
    }
}

// Reduces rows [begin, end) of n neighbouring results into states[n].
template <class T, class Op>
inline void reduce_columns(const Op &op, const Axes &axes, const char *x, int64_t n, int64_t begin,
                           int64_t end, typename Op::State *states)
{
    Loop<1> rows = axes.reduced;
    rows.data[0] = const_cast<char *>(x);
    for (int64_t j = 0; j < n; j++) states[j] = op.init();
    for (; begin < end; begin += kBlockRows<Op>)
        reduce_block<T>(op, rows, axes.kept.stride[0][kX], n, begin,
                        min(end, begin + kBlockRows<Op>), states);
}

// Tile of results: its start and its size.
struct Tile {
    const char *x;
    char *out;
    int64_t count, first;

    Tile(const Loop<2> &kept, int64_t index, int64_t columns)
    {
        int64_t per_row = divide_up(kept.shape[0], columns);
        int64_t row = index / per_row, column = index % per_row * columns;
        first = row * kept.shape[0] + column;
        count = min(columns, kept.shape[0] - column);
        Cursor<2> cursor(kept, first);
        out = cursor.data[kResult];
        x = cursor.data[kX];
    }
};

// Combines `items` rows of states into states[0], by pairs of neighbours.
template <class Op>
inline void join_items(const Op &op, typename Op::State *states, int64_t items, int64_t width)
{
    for (int64_t step = 1; step < items; step *= 2) {
        for (int64_t item = 0; item + step < items; item += 2 * step) {
            typename Op::State *left = states + item * width, *right = left + step * width;
#pragma omp simd
            for (int64_t j = 0; j < width; j++) left[j] = op.combine(left[j], right[j]);
        }
    }
}

// Reduces all tiles, each tile in a single thread, and stores the results by put(out, state).
template <class T, class Op, class Put>
inline yoke_status reduce_whole_tiles(const Op &op, const Axes &axes, int64_t tiles, const Put &put)
{
    const Loop<2> &kept = axes.kept;
    int64_t rows = axes.reduced.numel, step = kept.stride[0][kResult], columns = kTileColumns<Op>;
    int64_t grain = max(1, kGrain / max(1, rows * min(columns, kept.shape[0])));
    auto run = [&](int64_t index) {
        typename Op::State states[kTileColumns<Op>];
        Tile tile(kept, index, columns);
        reduce_columns<T>(op, axes, tile.x, tile.count, 0, rows, states);
        for (int64_t j = 0; j < tile.count; j++) put(tile.out + j * step, states[j]);
    };
    if (tiles < 2 * grain)
        for (int64_t i = 0; i < tiles; i++) run(i);
    else
        parallel_items(tiles, run);
    return YOKE_OK;
}

template <class T, class Op, class Put>
inline yoke_status reduce_by_columns(const yoke_launch *launch, const Op &op, const Axes &axes,
                                     const Put &put)
{
    using State = typename Op::State;
    const Loop<2> &kept = axes.kept;
    int64_t rows = axes.reduced.numel, columns = kTileColumns<Op>;
    int64_t tiles = divide_up(kept.shape[0], columns) * (kept.numel / kept.shape[0]);
    // Rows are cut where tiles alone would leave the team idle; the cut depends on the shape alone.
    int64_t least = max(kBlockRows<Op>, divide_up(kItem, kept.shape[0]));
    int64_t item_rows = tiles >= 16 ? rows : max(least, divide_up(rows, 64));
    int64_t items = divide_up(rows, item_rows);
    if (items <= 1) return reduce_whole_tiles<T>(op, axes, tiles, put);
    Scratch scratch(launch);
    if (yoke_status status = scratch.reserve((uint64_t)(items * kept.numel) * sizeof(State)))
        return status;
    State *states = static_cast<State *>(scratch.data());
    parallel_items(items, [&](int64_t item) {
        for (int64_t index = 0; index < tiles; index++) {
            Tile tile(kept, index, columns);
            reduce_columns<T>(op, axes, tile.x, tile.count, item * item_rows,
                              min(rows, (item + 1) * item_rows),
                              states + item * kept.numel + tile.first);
        }
    });
    join_items(op, states, items, kept.numel);
    for (int64_t index = 0; index < tiles; index++) {
        Tile tile(kept, index, columns);
        for (int64_t j = 0; j < tile.count; j++)
            put(tile.out + j * kept.stride[0][kResult], states[tile.first + j]);
    }
    return YOKE_OK;
}

YOKE_SIMD_END
