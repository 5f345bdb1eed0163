// Sums over planes (planes.cuh): in the computing type within a block, in the op's State between blocks.
//
// Contract
//  * An Op has kInputs operands, and gives
//      State, init(), combine(a, b): the result of a plane, and how the results of its items are joined;
//      Sums, join(a, b): what a block adds up, in the computing type; Sums{} are the sums of nothing;
//      Local, local(plane, first): what the terms of an item need; first[k] is the item's first value of operand k;
//      add(sums, local, x): adds one value of each operand, and returns the value of the operand that is written;
//      state(local, n, sums): the State of an item with n values.
//  * A further operand, if there is one, is written by the same pass where op.writes().
//  * An Op may doubt its sums: is_doubtful(n, sums). Then careful(n, at) gives the State of each thread's values.
#pragma once

#include "kernels/cuda/ops/planes.cuh"
#include "kernels/cuda/ops/rows.cuh"

YOKE_CUDA_BEGIN

template <class Op>
concept Doubting = requires(const Op &op, typename Op::Sums sums)
{
    op.is_doubtful((int64_t)0, sums);
};

template <class Op, int N>
inline constexpr bool kWritesTo = N > Op::kInputs;

// ---- planes whose values are neighbours -------------------------------------------------------------------------

// An item of a plane, with its threads.
template <class T, int N>
struct PlaneItem {
    static constexpr int V = kPackLength<T>;
    using C = compute_type<T>;
    const Planes<N> &planes;
    Place<N> start;
    int64_t begin, end;
    int group, in_group;

    __device__ const T *element(int k, int64_t i) const
    {
        const Place<N> place = planes.reduced.at(i);
        return reinterpret_cast<const T *>(start.data[k] +
                                           (place.data[k] - planes.reduced.data[k]));
    }
    __device__ C value(int k, int64_t i) const { return widen_as<T>(planes.dtype, *element(k, i)); }
    // Takes the `count` values from number i on of the first K operands.
    template <int K>
    __device__ void take(int64_t i, int count, C (&x)[K][V]) const
    {
        YOKE_UNROLL
        for (int k = 0; k < K; k++) {
            if (planes.packed) {
                unpack_as<T, V>(planes.dtype, load_pack<V>(element(k, i)), x[k]);
            } else {
                YOKE_UNROLL
                for (int j = 0; j < V; j++) x[k][j] = j < count ? value(k, i + j) : (C)0;
            }
        }
    }
    __device__ void put(int k, int64_t i, int count, const C (&x)[V]) const
    {
        if (planes.packed)
            return store_pack<V>(const_cast<T *>(element(k, i)), packed_as<T, V>(planes.dtype, x));
        YOKE_UNROLL
        for (int j = 0; j < V; j++)
            if (j < count) *const_cast<T *>(element(k, i + j)) = stored_as<T>(planes.dtype, x[j]);
    }
    template <class Op>
    __device__ typename Op::Local local(const Op &op, int64_t plane) const
    {
        C first[Op::kInputs];
        YOKE_UNROLL
        for (int k = 0; k < Op::kInputs; k++) first[k] = value(k, begin);
        return op.local(plane, first);
    }
    template <class Op>
    __device__ typename Op::Sums sums(const Op &op, const typename Op::Local &local) const
    {
        typename Op::Sums sums{};
        for (int64_t i = begin + in_group * V; i < end; i += (int64_t)group * V) {
            C x[Op::kInputs][V], written[V];
            const int count = (int)min(V, end - i);
            take(i, count, x);
            YOKE_UNROLL
            for (int j = 0; j < V; j++) {
                C one[Op::kInputs];
                for (int k = 0; k < Op::kInputs; k++) one[k] = x[k][j];
                if (j < count) written[j] = op.add(sums, local, one);
            }
            if constexpr (kWritesTo<Op, N>)
                if (op.writes()) put(N - 1, i, count, written);
        }
        return reduce_group(sums, group, typename Op::Sums{}, Op::join);
    }
    // Every thread takes values a group apart.
    template <class Op>
    __device__ typename Op::State careful(const Op &op) const
    {
        const int64_t first = begin + in_group;
        const auto state = op.careful(first < end ? divide_up(end - first, group) : 0,
                                      [&](int64_t i) { return value(0, first + i * group); });
        return reduce_group(state, group, Op::init(), Op::combine);
    }
};

// Adds up items of planes, each by `group` threads: a warp, or a block.
template <class Op, class T, int N>
__global__ void __launch_bounds__(kThreads, 1)
    sum_items(Planes<N> planes, Split of_count, Op op, typename Op::State *partial, int group)
{
    const Member me(group);
    YOKE_NO_UNROLL
    for (int64_t first = (int64_t)blockIdx.x * me.groups(); first < planes.partials();
         first += (int64_t)gridDim.x * me.groups()) {
        const int64_t unit = min(first + me.number(), planes.partials() - 1);
        const int64_t number = of_count.quotient(unit), plane = unit - number * planes.count;
        const int64_t begin = number * planes.item;
        const PlaneItem<T, N> item{planes, planes.kept.at(plane),
                                   begin,  min(planes.length, begin + planes.item),
                                   group,  me.in_group};
        const auto local = item.local(op, plane);
        const auto sums = item.sums(op, local);
        typename Op::State state = op.state(local, item.end - begin, sums);
        if constexpr (Doubting<Op>)
            if (op.is_doubtful(item.end - begin, sums)) state = item.careful(op);
        if (me.in_group == 0 && first + me.number() < planes.partials()) partial[unit] = state;
    }
}

// ---- planes that are neighbours -----------------------------------------------------------------------------------

// Adds K rows of the thread's channels.
template <int K, class Op, class T, int N, bool kDense>
__device__ inline void add_rows(const Columns<T, N, kDense> &columns, const Op &op, int64_t row,
                                const typename Op::Local (&local)[kPackLength<T>],
                                typename Op::Sums (&sums)[kPackLength<T>])
{
    using C = compute_type<T>;
    constexpr int V = kPackLength<T>, kIn = Op::kInputs;
    Pack<T, V> packs[K][kIn];
    YOKE_UNROLL
    for (int u = 0; u < K; u++) {
        const Place<N> place = columns.place(row + u * columns.down);
        YOKE_UNROLL
        for (int k = 0; k < kIn; k++) packs[u][k] = columns.load(place, k);
    }
    YOKE_UNROLL
    for (int u = 0; u < K; u++) {
        C x[kIn][V], written[V];
        YOKE_UNROLL
        for (int k = 0; k < kIn; k++) unpack_as<T, V>(columns.planes.dtype, packs[u][k], x[k]);
        YOKE_UNROLL
        for (int v = 0; v < V; v++) {
            C one[kIn];
            for (int k = 0; k < kIn; k++) one[k] = x[k][v];
            written[v] = op.add(sums[v], local[v], one);
        }
        if constexpr (kWritesTo<Op, N>)
            if (op.writes()) columns.put(columns.place(row + u * columns.down), N - 1, written);
    }
}

template <class Op, class T, int N, bool kDense>
__device__ inline typename Op::Local local_of(const Columns<T, N, kDense> &columns, const Op &op,
                                              const Place<N> &first, int v)
{
    compute_type<T> x[Op::kInputs];
    YOKE_UNROLL
    for (int k = 0; k < Op::kInputs; k++)
        x[k] = widen_as<T>(columns.planes.dtype, *columns.element(first, k, v));
    return op.local(columns.plane + v, x);
}

// Place of a thread's sums of channel v in shared memory. Lines are a little longer than a block, so that threads with
// different channels use different banks.
__device__ inline int strip_at(int v, int thread)
{
    return v * ((int)blockDim.x + kPackLanes) + thread;
}

// Computes the doubtful states of a block's channels again, a channel of each pack at a time. The sums of a channel
// stand at the first thread of its column.
template <class Op, class T, int N, bool kDense, class Sums>
__device__ inline void mend_columns(const Columns<T, N, kDense> &columns, const Op &op,
                                    const Sums &sums, typename Op::State *partial)
{
    using State = typename Op::State;
    YOKE_SHARED(State, parts, kMostThreads / kWarp * kPackLanes);
    const int width = columns.width, warps = (int)blockDim.x / kWarp;
    YOKE_NO_UNROLL
    for (int v = 0; v < kPackLength<T>; v++) {
        const typename Op::Sums total = sums[strip_at(v, columns.across)];
        const bool is_doubtful =
            v < columns.channels && op.is_doubtful(columns.end - columns.begin, total);
        State state = Op::init();
        if (is_doubtful && columns.row < columns.end)
            state = op.careful(divide_up(columns.end - columns.row, columns.down), [&](int64_t i) {
                const Place<N> place = columns.place(columns.row + i * columns.down);
                return widen_as<T>(columns.planes.dtype, *columns.element(place, 0, v));
            });
        for (int distance = width; distance < kWarp; distance *= 2)
            state = Op::combine(state, shuffle_xor(state, distance));
        __syncthreads();  // an earlier turn may still read
        if (place_in_warp() < width) parts[warp_of_thread() * width + columns.across] = state;
        __syncthreads();
        if ((int)threadIdx.x >= width || !is_doubtful) continue;
        for (int warp = 1; warp < warps; warp++)
            state = Op::combine(state, (State)parts[warp * width + columns.across]);
        partial[columns.state(v)] = state;
    }
}

// Adds up an item of a tile of channels.
template <class Op, class T, int N, bool kDense>
__global__ void __launch_bounds__(kThreads, 2)
    sum_columns(Planes<N> planes, Op op, typename Op::State *partial)
{
    using Sums = typename Op::Sums;
    constexpr int V = kPackLength<T>, kAtOnce = Op::kInputs == 1 ? 4 : 2;
    YOKE_DYNAMIC_SHARED(Sums, strips);
    const Columns<T, N, kDense> columns(planes);
    const int64_t count = columns.end - columns.begin;
    const Place<N> first = columns.place(columns.begin);
    Sums sums[V] = {};
    if (columns.channels > 0) {
        typename Op::Local local[V];
        YOKE_UNROLL
        for (int v = 0; v < V; v++)
            local[v] = local_of(columns, op, first, min(v, columns.channels - 1));
        columns.template each_rows<kAtOnce>(
            [&]<int K>(int64_t row) { add_rows<K>(columns, op, row, local, sums); });
    }
    YOKE_UNROLL
    for (int v = 0; v < V; v++) strips[strip_at(v, (int)threadIdx.x)] = sums[v];
    __syncthreads();
    // The first thread of a column adds up the column's first channel, the second thread its second, and so on.
    bool doubts = false;
    for (int v = (int)threadIdx.x >> planes.width_bits; v < columns.channels; v += columns.down) {
        Sums total{};
        for (int y = 0; y < columns.down; y++)
            total = Op::join(total, (Sums)strips[strip_at(v, y * columns.width + columns.across)]);
        partial[columns.state(v)] = op.state(local_of(columns, op, first, v), count, total);
        if constexpr (Doubting<Op>) {
            strips[strip_at(v, columns.across)] = total;
            doubts |= op.is_doubtful(count, total);
        }
    }
    if constexpr (Doubting<Op>)
        if (__syncthreads_or(doubts)) mend_columns<Op>(columns, op, strips, partial);
}

// ---- items --------------------------------------------------------------------------------------------------------

struct NoMore {
    __device__ void operator()(int64_t) const {}
};

// Combines the items of each plane by `group` threads, then calls then(plane).
template <class Op, class Then>
__global__ void combine_items(const typename Op::State *partial, int64_t count, int64_t items,
                              typename Op::State *out, int group, Then then)
{
    using State = typename Op::State;
    const Member me(group);
    YOKE_NO_UNROLL
    for (int64_t first = (int64_t)blockIdx.x * me.groups(); first < count;
         first += (int64_t)gridDim.x * me.groups()) {
        const int64_t plane = min(first + me.number(), count - 1);
        State state = Op::init();
        for (int64_t item = me.in_group; item < items; item += group)
            state = Op::combine(state, partial[item * count + plane]);
        state = reduce_group(state, group, Op::init(), Op::combine);
        if (me.in_group || first + me.number() >= count) continue;
        out[plane] = state;
        then(plane);
    }
}

template <class Op, class T, int N>
inline yoke_status start_sums(const yoke_launch *launch, const Planes<N> &planes, const Op &op,
                              typename Op::State *partial)
{
    constexpr int V = kPackLength<T>;
    const int threads = block_size(kThreads);
    if (planes.by_columns) {
        const int64_t bytes = V * (threads + kPackLanes) * (int64_t)sizeof(typename Op::Sums);
        const Grid grid{planes.column_blocks(), threads, bytes};
        if constexpr (sizeof(T) < 8)
            if (planes.is_dense())
                return start(launch, sum_columns<Op, T, N, true>, grid, planes, op, partial);
        return start(launch, sum_columns<Op, General<T>, N, false>, grid, planes, op, partial);
    }
    const int group = planes.length <= 1024 ? kWarp : threads;
    const int64_t blocks = divide_up(planes.partials(), threads / group);
    return start(launch, sum_items<Op, General<T>, N>, {min(blocks, 0x7fffffff), threads}, planes,
                 Split(planes.count, planes.partials()), op, partial, group);
}

// Writes the state of every plane to `out`, then calls then(plane) for each plane. `partial` is memory for
// planes.partials() states.
template <class Op, class T, int N, class Then = NoMore>
inline yoke_status sum_planes(const yoke_launch *launch, const Planes<N> &planes, const Op &op,
                              typename Op::State *partial, typename Op::State *out,
                              const Then &then = {})
{
    if (planes.count == 0) return YOKE_OK;
    if (planes.items)
        if (const yoke_status status = start_sums<Op, T>(launch, planes, op, partial))
            return status;
    const int threads = block_size(kThreads), group = planes.items > 2 * kWarp ? threads : kWarp;
    return start(launch, combine_items<Op, Then>,
                 {blocks_for(launch, planes.count, threads / group), threads}, partial,
                 planes.count, planes.items, out, group, then);
}

YOKE_CUDA_END
