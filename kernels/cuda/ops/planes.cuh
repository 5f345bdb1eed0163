// Sums over all axes except the channels of x [N, C, ...], and maps by channel: the engine of batch_norm and
// group_norm.
//
// Contract
//  * The values of a plane share a result: all values of a channel (batch_norm), or the values of a channel in one
//    sample (group_norm). Planes are numbered row-major by [N, C] or [C].
//  * Values of a plane are taken in items of a fixed length. If channels are neighbours in memory (NHWC), 32 channels
//    are taken side by side. The order of combination depends on shapes and strides only.
//  * An Op gives State, init, combine and push(state, plane, x, count): `count` values of each operand.
#pragma once

#include "kernels/common/per_plane.h"
#include "kernels/cuda/ops/rows.cuh"

YOKE_CUDA_BEGIN

constexpr int64_t kPlaneItem = 8192;  // values of a plane that a block adds up
constexpr int64_t kColumnItem = 256;  // values of each of 32 neighbouring planes

template <int N>
struct Planes {
    Walk<N> kept, reduced;
    int64_t count, length, item, items;
    bool by_columns, packed;

    Planes(const Loop<N> &planes, const Loop<N> &values, int64_t size)
        : kept(planes), reduced(values), count(planes.numel), length(values.numel)
    {
        by_columns = are_columns();
        item = by_columns ? kColumnItem : kPlaneItem;
        items = divide_up(length, item);
        packed = values.shape[0] * size % 16 == 0;
        for (int i = 0; i < N; i++) {
            packed = packed && values.stride[0][i] == size && is_aligned(values.data[i], 16);
            for (int axis = 1; axis < values.ndim; axis++)
                packed = packed && values.stride[axis][i] % 16 == 0;
            for (int axis = 0; axis < planes.ndim; axis++)
                packed = packed && planes.stride[axis][i] % 16 == 0;
        }
    }
    bool are_columns() const
    {
        const int64_t along_kept = kernels::stride_size(kept.stride[0][0]);
        if (kept.shape[0] < 4 || along_kept == 0) return false;
        return length > 1 && along_kept < kernels::stride_size(reduced.stride[0][0]);
    }
    YOKE_HD int64_t partials() const { return count * items; }
};

template <int N>
inline Planes<N> planes_of(const yoke_operand *const (&operands)[N], bool per_sample)
{
    Loop<N> kept, reduced;
    kernels::plan_planes<N>(kept, reduced, operands, per_sample);
    return Planes<N>(kept, reduced, dtype_size(operands[0]->dtype));
}

// ---- sums ---------------------------------------------------------------------------------------------------------

// Both launch bounds end with 1: a multiprocessor needs only one block. Without the 1, the compiler spills the sums
// in float64 to make room for a fourth block.

// Adds up items of planes, each by `group` threads: a warp, or a block.
template <class Op, class T, int N>
__global__ void __launch_bounds__(kThreads, 1)
    sum_items(Planes<N> planes, Op op, typename Op::State *partial, int group)
{
    using C = compute_type<T>;
    using State = typename Op::State;
    constexpr int V = kPackLength<T>;
    const int in_warp = (int)threadIdx.x % group;
    const int64_t groups = blockDim.x / group;
    for (int64_t first = blockIdx.x * groups; first < planes.partials();
         first += gridDim.x * groups) {
        const int64_t unit = min(first + threadIdx.x / group, planes.partials() - 1);
        const int64_t plane = unit % planes.count, begin = unit / planes.count * planes.item;
        const int64_t end = min(planes.length, begin + planes.item);
        const Place<N> start = planes.kept.at(plane);
        State state = Op::init();
        for (int64_t i = begin + in_warp * V; i < end; i += (int64_t)group * V) {
            C x[N][V] = {};
            const int count = (int)min(V, end - i);
            if (planes.packed) {
                const Place<N> place = planes.reduced.at(i);
                YOKE_UNROLL
                for (int k = 0; k < N; k++)
                    unpack<T, V>(load_pack<V>(reinterpret_cast<const T *>(
                                     start.data[k] + (place.data[k] - planes.reduced.data[k]))),
                                 x[k]);
            } else {
                YOKE_UNROLL
                for (int j = 0; j < V; j++) {
                    if (j >= count) continue;
                    const Place<N> place = planes.reduced.at(i + j);
                    for (int k = 0; k < N; k++)
                        x[k][j] = load<T>(*reinterpret_cast<const T *>(
                            start.data[k] + (place.data[k] - planes.reduced.data[k])));
                }
            }
            state = op.push(state, plane, x, count);
        }
        state = reduce_group(state, group, Op::init(), Op::combine);
        if (in_warp == 0 && first + threadIdx.x / group < planes.partials()) partial[unit] = state;
    }
}

// Adds up items of 32 neighbouring planes. A warp lane has a plane, and the warps share its values, some at a time.
template <class Op, class T, int N>
__global__ void __launch_bounds__(kThreads, 1)
    sum_columns(Planes<N> planes, Op op, typename Op::State *partial)
{
    using C = compute_type<T>;
    using State = typename Op::State;
    constexpr int kAtOnce = 8;
    YOKE_SHARED(State, strips, kMostThreads);
    const int in_warp = place_in_warp(), warps = (int)blockDim.x / kWarp;
    const int64_t tiles = divide_up(planes.count, kWarp), item = blockIdx.x / tiles;
    const int64_t plane = blockIdx.x % tiles * kWarp + in_warp;
    const int64_t begin = item * planes.item, end = min(planes.length, begin + planes.item);
    const Place<N> start = planes.kept.at(min(plane, planes.count - 1));
    State state = Op::init();
    for (int64_t i = begin + warp_of_thread() * kAtOnce; i < end; i += warps * kAtOnce) {
        C x[N][kAtOnce] = {};
        const int count = (int)min(kAtOnce, end - i);
        YOKE_UNROLL
        for (int j = 0; j < kAtOnce; j++) {
            if (j >= count) continue;
            const Place<N> place = planes.reduced.at(i + j);
            for (int k = 0; k < N; k++)
                x[k][j] = load<T>(*reinterpret_cast<const T *>(
                    start.data[k] + (place.data[k] - planes.reduced.data[k])));
        }
        state = op.push(state, min(plane, planes.count - 1), x, count);
    }
    strips[threadIdx.x] = state;
    __syncthreads();
    if (warp_of_thread() > 0 || plane >= planes.count) return;
    for (int strip = 1; strip < warps; strip++)
        state = Op::combine(state, (State)strips[strip * kWarp + in_warp]);
    partial[item * planes.count + plane] = state;
}

// Combines the items of each plane, by a warp.
template <class Op>
__global__ void combine_items(const typename Op::State *partial, int64_t count, int64_t items,
                              typename Op::State *out)
{
    using State = typename Op::State;
    const int64_t warps = blockDim.x / kWarp, share = divide_up(items, kWarp);
    for (int64_t plane = blockIdx.x * warps + warp_of_thread(); plane < count;
         plane += gridDim.x * warps) {
        State state = Op::init();
        const int64_t begin = place_in_warp() * share, end = min(items, begin + share);
        for (int64_t item = begin; item < end; item++)
            state = Op::combine(state, partial[item * count + plane]);
        state = reduce_warp(state, Op::combine);
        if (place_in_warp() == 0) out[plane] = state;
    }
}

// Writes the state of every plane to `out`. `partial` is memory for planes.partials() states.
template <class Op, class T, int N>
inline yoke_status sum_planes(const yoke_launch *launch, const Planes<N> &planes, const Op &op,
                              typename Op::State *partial, typename Op::State *out)
{
    if (planes.count == 0) return YOKE_OK;
    const int threads = block_size(kThreads);
    yoke_status status = YOKE_OK;
    if (planes.items && planes.by_columns) {
        const int64_t blocks = divide_up(planes.count, kWarp) * planes.items;
        status = start(launch, sum_columns<Op, T, N>, {blocks, threads}, planes, op, partial);
    } else if (planes.items) {
        const int group = planes.length <= 1024 ? kWarp : threads;
        const int64_t blocks = divide_up(planes.partials(), threads / group);
        status = start(launch, sum_items<Op, T, N>, {min(blocks, 0x7fffffff), threads}, planes, op,
                       partial, group);
    }
    if (status) return status;
    return start(launch, combine_items<Op>,
                 {blocks_for(launch, planes.count, threads / kWarp), threads}, partial,
                 planes.count, planes.items, out);
}

// ---- maps by channel ------------------------------------------------------------------------------------------------

using kernels::PerPlane;

// Sets operand 0 to f(inputs, the numbers of the plane). The inputs are the operands between the first and the last.
// The last operand is the first of several arrays of numbers, `planes` apart.
template <class T, class F, int N>
__global__ void map_planes(Walk<N> walk, bool packed, int64_t planes, F f)
{
    using C = compute_type<T>;
    constexpr int V = kPackLength<T>, kIn = N - 2;
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    const int64_t count = packed ? walk.numel / V : walk.numel;
    const int64_t next = walk.stride[0][N - 1] / (int64_t)sizeof(C);
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
        const Place<N> place = walk.at(packed ? i * V : i);
        const C *numbers = reinterpret_cast<const C *>(place.data[N - 1]);
        if (!packed) {
            C x[kIn];
            for (int k = 0; k < kIn; k++)
                x[k] = load<T>(*reinterpret_cast<const T *>(place.data[k + 1]));
            *reinterpret_cast<T *>(place.data[0]) = store<T>(f(x, numbers, planes));
            continue;
        }
        C in[kIn][V], out[V];
        YOKE_UNROLL
        for (int k = 0; k < kIn; k++)
            unpack<T, V>(load_pack<V>(reinterpret_cast<const T *>(place.data[k + 1])), in[k]);
        YOKE_UNROLL
        for (int j = 0; j < V; j++) {
            C x[kIn];
            for (int k = 0; k < kIn; k++) x[k] = in[k][j];
            out[j] = f(x, numbers + j * next, planes);
        }
        store_pack<V>(reinterpret_cast<T *>(place.data[0]), pack_of<T, V>(out));
    }
}

template <class T, class F, int N>
inline yoke_status start_map(const yoke_launch *launch, const yoke_operand *const (&operands)[N],
                             int64_t planes, const F &f)
{
    constexpr int V = kPackLength<T>;
    if (operands[0]->numel == 0) return YOKE_OK;
    Loop<N> loop;
    plan_loop<N>(loop, operands);
    bool packed = loop.shape[0] % V == 0;
    for (int i = 0; i < N - 1; i++) {
        packed = packed && loop.stride[0][i] == (int64_t)sizeof(T) && is_aligned(loop.data[i], 16);
        for (int axis = 1; axis < loop.ndim; axis++)
            packed = packed && loop.stride[axis][i] % 16 == 0;
    }
    const int threads = block_size(kThreads);
    return start(launch, map_planes<T, F, N>,
                 {blocks_for(launch, loop.numel, threads * (packed ? V : 1)), threads},
                 Walk<N>(loop), packed, planes, f);
}

YOKE_CUDA_END
