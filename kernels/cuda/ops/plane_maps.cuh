// Maps over x [N, C, ...] with numbers by plane (planes.cuh).
#pragma once

#include "kernels/cuda/ops/planes.cuh"

YOKE_CUDA_BEGIN

using kernels::PerPlane;

// Sets operand 0 to f(inputs, the numbers of the plane). The inputs are the operands between the first and the last.
// The last operand is the first of several arrays of numbers, `planes` apart.
template <class T, class F, int N>
__global__ void map_planes(Walk<N> walk, yoke_dtype dtype, bool packed, int64_t planes, F f)
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
                x[k] = widen_as<T>(dtype, *reinterpret_cast<const T *>(place.data[k + 1]));
            *reinterpret_cast<T *>(place.data[0]) = stored_as<T>(dtype, f(x, numbers, planes));
            continue;
        }
        C in[kIn][V], out[V];
        YOKE_UNROLL
        for (int k = 0; k < kIn; k++)
            unpack_as<T, V>(dtype, load_pack<V>(reinterpret_cast<const T *>(place.data[k + 1])),
                            in[k]);
        YOKE_UNROLL
        for (int j = 0; j < V; j++) {
            C x[kIn];
            for (int k = 0; k < kIn; k++) x[k] = in[k][j];
            out[j] = f(x, numbers + j * next, planes);
        }
        store_pack<V>(reinterpret_cast<T *>(place.data[0]), packed_as<T, V>(dtype, out));
    }
}

// Maps K rows of the thread's channels, whose numbers are `own`.
template <int K, class T, class F, int N, bool kDense>
__device__ inline void map_rows(const Columns<T, N, kDense> &columns, const F &f, int64_t row,
                                const compute_type<T> (&own)[kPackLength<T>][F::kNumbers])
{
    using C = compute_type<T>;
    constexpr int V = kPackLength<T>, kIn = F::kInputs;
    Pack<T, V> packs[K][kIn];
    YOKE_UNROLL
    for (int u = 0; u < K; u++) {
        const Place<N> place = columns.place(row + u * columns.down);
        YOKE_UNROLL
        for (int k = 0; k < kIn; k++) packs[u][k] = columns.load(place, k + 1);
    }
    YOKE_UNROLL
    for (int u = 0; u < K; u++) {
        C in[kIn][V], out[V];
        YOKE_UNROLL
        for (int k = 0; k < kIn; k++) unpack_as<T, V>(columns.planes.dtype, packs[u][k], in[k]);
        YOKE_UNROLL
        for (int v = 0; v < V; v++) {
            C x[kIn];
            for (int k = 0; k < kIn; k++) x[k] = in[k][v];
            out[v] = f(x, own[v], 1);
        }
        columns.put(columns.place(row + u * columns.down), 0, out);
    }
}

// Does the same where channels are neighbours: a thread reads the numbers of its channels once.
template <class T, class F, int N, bool kDense>
__global__ void __launch_bounds__(kThreads, 2)
    map_columns(Planes<N> planes, const compute_type<T> *numbers, F f)
{
    constexpr int V = kPackLength<T>, kAtOnce = F::kInputs == 1 ? 4 : 2;
    const Columns<T, N, kDense> columns(planes);
    if (columns.channels == 0) return;
    compute_type<T> own[V][F::kNumbers];
    YOKE_UNROLL
    for (int v = 0; v < V; v++) YOKE_UNROLL
    for (int k = 0; k < F::kNumbers; k++)
        own[v][k] = numbers[k * planes.count + columns.plane + min(v, columns.channels - 1)];
    columns.template each_rows<kAtOnce>(
        [&]<int K>(int64_t row) { map_rows<K>(columns, f, row, own); });
}

// Sets operand 0 to f(the other operands, the numbers of the plane). `numbers` has F::kNumbers arrays.
template <class T, class F, int N>
inline yoke_status start_map(const yoke_launch *launch, const yoke_operand *const (&operands)[N],
                             bool per_sample, compute_type<T> *numbers, const F &f)
{
    constexpr int V = kPackLength<T>;
    const int threads = block_size(kThreads);
    if (operands[0]->numel == 0) return YOKE_OK;
    const Planes<N> planes = planes_of<N>(operands, per_sample);
    if (planes.by_columns) {
        const Grid grid{planes.column_blocks(), threads};
        if constexpr (sizeof(T) < 8)
            if (planes.is_dense())
                return start(launch, map_columns<T, F, N, true>, grid, planes, numbers, f);
        return start(launch, map_columns<General<T>, F, N, false>, grid, planes, numbers, f);
    }
    const PerPlane by_plane(*operands[1], per_sample, numbers, kernels::dtype_of<compute_type<T>>);
    const yoke_operand *all[N + 1];
    for (int i = 0; i < N; i++) all[i] = operands[i];
    all[N] = &by_plane.operand;
    Loop<N + 1> loop;
    plan_loop<N + 1>(loop, all);
    bool packed = loop.shape[0] % V == 0;
    for (int i = 0; i < N; i++) {
        packed = packed && loop.stride[0][i] == (int64_t)sizeof(T) && is_aligned(loop.data[i], 16);
        for (int axis = 1; axis < loop.ndim; axis++)
            packed = packed && loop.stride[axis][i] % 16 == 0;
    }
    return start(launch, map_planes<General<T>, F, N + 1>,
                 {blocks_for(launch, loop.numel, threads * (packed ? V : 1)), threads},
                 Walk<N + 1>(loop), operands[0]->dtype, packed, planes.count, f);
}

YOKE_CUDA_END
