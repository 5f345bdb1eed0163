// Sums over all axes except the channels of x [N, C, ...], and maps by channel: the engine of batch_norm and
// group_norm.
//
// Contract
//  * The values of a plane share a result: all values of a channel (batch_norm), or the values of a channel in one
//    sample (group_norm). Planes are numbered row-major by [N, C] or [C].
//  * The order in which values are combined depends on shapes and strides only, never on the number of threads. If
//    the values of a plane lie together, they are taken in items of a fixed length. If channels are neighbours in
//    memory (NHWC), columns of channels are taken side by side.
//  * State has static init and combine (a before b).
//  * A View defines the summed values: its first kLoaded operands are loaded. prepare(in, data, strides, count, room)
//    may replace an entry of `in`, and use `room` for this.
//  * Dense columns that widen at no cost are summed in place. All other values are first loaded as C.
#pragma once

#include "kernels/common/per_plane.h"
#include "kernels/cpu/simd/halves.h"
#include "kernels/cpu/simd/iterate.h"
#include "kernels/cpu/simd/load_vector.h"
#include "kernels/cpu/simd/share.h"
#include "kernels/cpu/simd/tile.h"

YOKE_SIMD_BEGIN

constexpr int64_t kPlaneItem = 65536;
constexpr int64_t kPlaneChunk = 1024;  // values that are loaded at a time
constexpr int64_t kPlaneColumns = 64;  // channels side by side: a row of them is four lines
constexpr int64_t kPlaneRows = 64;     // rows of channels at a time; they stay in a near cache

template <int N>
struct Planes {
    Loop<N> kept;     // channels, and samples if each has its own statistics; in row-major order
    Loop<N> reduced;  // the other axes
    yoke_dtype dtype;
    bool by_columns;

    Planes(const yoke_operand *const (&operands)[N], bool per_sample)
    {
        kernels::plan_planes<N>(kept, reduced, operands, per_sample);
        dtype = operands[0]->dtype;
        by_columns = are_columns();
    }

    bool are_columns() const
    {
        int64_t along_kept = kernels::stride_size(kept.stride[0][0]);
        if (kept.shape[0] < 4) return false;
        if (reduced.numel == 1) return true;
        return along_kept != 0 && along_kept < kernels::stride_size(reduced.stride[0][0]);
    }

    // Returns whether columns are all channels, and rows of channels follow each other in every operand.
    bool are_rows_together() const
    {
        const int64_t size = dtype_size(dtype);
        if (kept.ndim != 1 || reduced.ndim != 1 || kept.shape[0] > kPlaneColumns) return false;
        for (int i = 0; i < N; i++)
            if (kept.stride[0][i] != size || reduced.stride[0][i] != kept.shape[0] * size)
                return false;
        return true;
    }

    // Returns whether columns are neighbours in every operand.
    bool are_columns_dense() const { return are_dense(kept.stride[0], N, dtype_size(dtype)); }

    // Returns the number of values that an item of a plane (or of a column) covers.
    int64_t item_length() const
    {
        if (!by_columns) return kPlaneItem;
        return kPlaneRows * max(1, divide_up(kPlaneItem / kPlaneRows, kept.shape[0]));
    }
};

// View of the loaded operands without changes.
template <int N>
struct Loaded {
    static constexpr int kLoaded = N;
    template <class T>
    void prepare(const T *(&)[N], char *const *, const int64_t *, int64_t, T *) const
    {
    }
};

// Loads `count` elements of each operand, from data on with the operand's stride. Elements of type T are used in
// place. Other elements are widened into the operand's part of `room`; these parts are `apart` from each other. Then
// the view prepares `in`.
template <class T, int N, class View>
inline void load_values(yoke_dtype dtype, const View &view, char *const *data,
                        const int64_t *stride, int64_t count, T *room, int64_t apart,
                        const T *(&in)[N])
{
    for (int i = 0; i < View::kLoaded; i++)
        if constexpr (std::is_same_v<T, bf16>)
            in[i] = (const T *)data[i];
        else
            in[i] = see_elements(dtype, data[i], stride[i], count, room + i * apart);
    view.prepare(in, data, stride, count, room + (N - 1) * apart);
}

// Returns the state of values [begin, end) of a plane. The values pass chunk by chunk: sum(in[N], count) gives a
// chunk's state.
template <class C, class State, int N, class View, class Sum>
inline State sum_plane(const Planes<N> &planes, const View &view, const Cursor<N> &plane,
                       int64_t begin, int64_t end, const Sum &sum)
{
    State total = State::init();
    Loop<N> values = planes.reduced;
    for (int i = 0; i < N; i++) values.data[i] = plane.data[i];
    walk<N>(values, begin, end, [&](char *const *data, const int64_t *stride, int64_t n) {
        for (int64_t first = 0; first < n; first += kPlaneChunk) {
            C buffer[N][kPlaneChunk];
            const C *in[N];
            char *from[N];
            int64_t count = min(kPlaneChunk, n - first);
            for (int i = 0; i < N; i++) from[i] = data[i] + first * stride[i];
            load_values(planes.dtype, view, from, stride, count, buffer[0], kPlaneChunk, in);
            total = State::combine(total, sum(in, count));
        }
    });
    return total;
}

// Sums values [begin, end) of `columns` neighbouring planes into states[columns], by blocks of rows. sum(in[N][rows],
// count, columns, states) gives the states of a block. The caller provides the buffer, because threads of the host
// program may have a small stack.
template <class T, class State, int N, class View, class Sum>
inline void sum_columns(const Planes<N> &planes, const View &view, const Cursor<N> &plane,
                        int64_t begin, int64_t end, int64_t columns, State *states, T *buffer,
                        const Sum &sum)
{
    Loop<N> values = planes.reduced;
    for (int i = 0; i < N; i++) values.data[i] = plane.data[i];
    for (int64_t j = 0; j < columns; j++) states[j] = State::init();
    Cursor<N> cursor(values, begin);
    // Rows that are loaded at a time.
    const int64_t step = planes.are_rows_together() ? kPlaneRows : 1;
    while (begin < end) {
        const T *in[N][kPlaneRows];
        State block[kPlaneColumns];
        int64_t count = 0;
        while (count < kPlaneRows && begin < end) {
            const T *first[N] = {};
            const int64_t rows = min(step, end - begin);
            load_values(planes.dtype, view, cursor.data, planes.kept.stride[0], rows * columns,
                        buffer + count * kPlaneColumns, kPlaneRows * kPlaneColumns, first);
            for (int64_t r = 0; r < rows; r++)
                for (int i = 0; i < View::kLoaded; i++) in[i][count + r] = first[i] + r * columns;
            count += rows, begin += rows;
            cursor.advance(values, 0, rows);
        }
        sum(in, count, columns, block);
        for (int64_t j = 0; j < columns; j++) states[j] = State::combine(states[j], block[j]);
    }
}

// Work of sum_planes: all planes, each in items of per_item values.
struct PlaneItems {
    int64_t count, length, per_item, items;

    template <int N>
    explicit PlaneItems(const Planes<N> &planes)
        : count(planes.kept.numel),
          length(planes.reduced.numel),
          per_item(planes.item_length()),
          items(divide_up(length, per_item))
    {
    }
    int64_t begin(int64_t item) const { return item * per_item; }
    int64_t end(int64_t item) const { return min(length, (item + 1) * per_item); }
};

// Sums the items of all planes by tiles of neighbouring planes, by the team, into `partial`. Values are read as T, or
// widened to T.
template <class T, class State, int N, class View, class ByColumn>
inline yoke_status sum_all_columns(const yoke_launch *launch, const Planes<N> &planes,
                                   const View &view, State *partial, const ByColumn &by_column)
{
    const PlaneItems p(planes);
    const int64_t row = planes.kept.shape[0], tiles_a_row = divide_up(row, kPlaneColumns);
    const int64_t tiles = tiles_a_row * (p.count / row), slots = team_size();
    constexpr int64_t kRoom = N * kPlaneRows * kPlaneColumns;
    Scratch scratch(launch);
    if (yoke_status status = scratch.reserve((uint64_t)(slots * kRoom) * sizeof(T))) return status;
    parallel_shares(tiles * p.items, max(1, kGrain / max(1, p.per_item * min(row, kPlaneColumns))),
                    slots, [&](int64_t begin, int64_t end, int slot) {
                        for (int64_t unit = begin; unit < end; unit++) {
                            int64_t tile = unit % tiles, item = unit / tiles;
                            int64_t column = tile % tiles_a_row * kPlaneColumns;
                            int64_t first = tile / tiles_a_row * row + column;
                            sum_columns<T>(planes, view, Cursor<N>(planes.kept, first),
                                           p.begin(item), p.end(item),
                                           min(kPlaneColumns, row - column),
                                           partial + item * p.count + first,
                                           scratch.as<T>() + slot * kRoom, by_column(first));
                        }
                    });
    return YOKE_OK;
}

template <class C, class State, int N, class View, class ByPlane>
inline void sum_each_plane(const Planes<N> &planes, const View &view, State *partial,
                           const ByPlane &by_plane)
{
    const PlaneItems p(planes);
    parallel_shares(p.count * p.items, max(1, kGrain / max(1, min(p.per_item, p.length))),
                    [&](int64_t begin, int64_t end) {
                        for (int64_t unit = begin; unit < end; unit++) {
                            int64_t plane = unit % p.count, item = unit / p.count;
                            partial[unit] =
                                sum_plane<C, State>(planes, view, Cursor<N>(planes.kept, plane),
                                                    p.begin(item), p.end(item), by_plane(plane));
                        }
                    });
}

// Writes the state of every plane to `out`. `partial` has space for partial_count() states. by_plane(plane number)
// and by_column(first plane number) return the functions `sum` of sum_plane and sum_columns.
template <class C, class State, int N, class View, class ByPlane, class ByColumn>
inline yoke_status sum_planes(const yoke_launch *launch, const Planes<N> &planes, const View &view,
                              State *partial, State *out, const ByPlane &by_plane,
                              const ByColumn &by_column)
{
    yoke_status status = YOKE_OK;
    auto by_columns = [&]<class T>() {
        status = sum_all_columns<T>(launch, planes, view, partial, by_column);
    };
    if (!planes.by_columns)
        sum_each_plane<C>(planes, view, partial, by_plane);
    else if (!planes.are_columns_dense() || !for_direct<C>(planes.dtype, by_columns))
        by_columns.template operator()<C>();
    if (status) return status;
    const PlaneItems p(planes);
    for (int64_t plane = 0; plane < p.count; plane++) {
        State total = State::init();
        for (int64_t item = 0; item < p.items; item++)
            total = State::combine(total, partial[item * p.count + plane]);
        out[plane] = total;
    }
    return YOKE_OK;
}

// Calls sum.operator()<V, kCount>(first column) for kCount vectors of type V, which stay in registers over all rows.
// kCount is 4 as long as possible, then 2, then 1; remaining columns go singly.
template <class C, class Sum>
inline void each_vectors(int64_t columns, const Sum &sum)
{
    using V = Vector<C>;
    using One [[gnu::vector_size(sizeof(C)), gnu::may_alias]] = C;
    constexpr int64_t kStep = sizeof(V) / sizeof(C);
    int64_t j = 0;
    for (; j + 4 * kStep <= columns; j += 4 * kStep) sum.template operator()<V, 4>(j);
    for (; j + 2 * kStep <= columns; j += 2 * kStep) sum.template operator()<V, 2>(j);
    for (; j + kStep <= columns; j += kStep) sum.template operator()<V, 1>(j);
    for (; j < columns; j++) sum.template operator()<One, 1>(j);
}

// Returns how many states sum_planes needs in `partial`.
template <int N>
inline int64_t partial_count(const Planes<N> &planes)
{
    return planes.kept.numel * divide_up(planes.reduced.numel, planes.item_length());
}

using kernels::PerPlane;

YOKE_SIMD_END
