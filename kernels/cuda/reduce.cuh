// The driver of reductions over any set of axes of a strided tensor.
//
// Contract
//  * reduce<T>(launch, axes, op) reduces elements T by an Op of reduce_fold.cuh.
//  * Each byte of x is read once. Rows (elements of a result next to each other): a result by a few lanes, a warp or a
//    block, 16 bytes at a time. Columns (results next to each other): a block takes a tile of them, 8 bytes a
//    thread at a time. Where results are too few to keep the device busy, or long, each is cut into items, whose parts a second
//    kernel combines.
//  * Who takes which element follows from shapes, strides and addresses alone, and so do the bits. No thread adds
//    more than a few hundred numbers one after another; the rest is a tree.
#pragma once

#include "kernels/cuda/reduce_fold.cuh"

YOKE_CUDA_BEGIN

constexpr int64_t kReduceBlocks = 2048;  // that keep any device busy
constexpr int64_t kLongestRun = 64;      // packs that one thread takes of one item

inline int64_t power_of_two_from(int64_t n)
{
    int64_t power = 1;
    while (power < n) power *= 2;
    return power;
}

// ---- rows --------------------------------------------------------------------------------------------------------

struct RowJob {
    Walk<kSides> kept;
    Walk<1> reduced;
    int64_t items, item;  // of one result, and their length
    int group;            // threads of one item: a power of two up to the warp, or the block
    bool packed;          // runs go 16 bytes at a time
};

// combine() over the threads of a group; its first thread gets the result.
template <class Op>
__device__ inline typename Op::State join_group(const Op &op, typename Op::State state, int group)
{
    auto combine = [&](const typename Op::State &a, const typename Op::State &b) {
        return op.combine(a, b);
    };
    if (group == (int)blockDim.x) return reduce_block(state, op.init(), combine);
    for (int distance = group / 2; distance > 0; distance /= 2)
        state = combine(state, shuffle_down(state, distance));
    return state;
}

// Elements [begin, end) of one result as one thread of a group sees them.
template <class T, class Op>
struct RowReader {
    static constexpr int N = kPackLength<T>, kUnroll = 4;
    using Element = typename Op::Element;
    const Op &op;
    const Walk<1> &reduced;
    const char *x;
    int lane, group;
    Fold<Op, 4> fold;

    __device__ const T *at(int64_t i) const
    {
        if (reduced.ndim == 1) return (const T *)(x + i * reduced.stride[0][0]);
        return (const T *)(x + (reduced.at(i).data[0] - reduced.data[0]));
    }

    // Of any strides.
    __device__ void take_each(int64_t begin, int64_t end)
    {
        int64_t i = begin + lane;
        for (; i + (kUnroll - 1) * group < end; i += kUnroll * group) {
            Element loaded[kUnroll];
            YOKE_UNROLL
            for (int u = 0; u < kUnroll; u++) loaded[u] = op.element(*at(i + u * group));
            fold.template take<kUnroll>(op, loaded, i, group);
        }
        for (; i < end; i += group) take_one(*at(i), i);
    }

    __device__ void take_one(T value, int64_t i)
    {
        const Element loaded[1] = {op.element(value)};
        fold.template take<1>(op, loaded, i, 1);
    }

    // kPacks packs, `group` apart, the first of them element i.
    template <int kPacks>
    __device__ void take_packs(const T *from, int64_t i)
    {
        Pack<T, N> pack[kPacks];
        YOKE_UNROLL
        for (int u = 0; u < kPacks; u++) pack[u] = load_pack<N>(from + (int64_t)u * group * N);
        if constexpr (kLooksTwice<Op>) {
            Element loaded[kPacks * N];
            YOKE_UNROLL
            for (int k = 0; k < kPacks * N; k++) loaded[k] = op.element(pack[k / N].at[k % N]);
            fold.template take<kPacks * N>(op, loaded, i, 1);
        } else {
            YOKE_UNROLL
            for (int u = 0; u < kPacks; u++) {
                Element loaded[N];
                YOKE_UNROLL
                for (int k = 0; k < N; k++) loaded[k] = op.element(pack[u].at[k]);
                fold.template take<N>(op, loaded, i + (int64_t)u * group * N, 1);
            }
        }
    }

    // n elements without gaps, the first of them element i. Packs lie where addresses are multiples of 16; what is
    // before and after them goes one by one.
    __device__ void take_run(const T *from, int64_t i, int64_t n)
    {
        const int64_t beyond = (int64_t)((uintptr_t)from % 16 / sizeof(T));
        const int64_t head = min(n, beyond ? N - beyond : 0), packs = (n - head) / N;
        for (int64_t k = lane; k < head; k += group) take_one(from[k], i + k);
        int64_t p = lane;
        for (; p + (kUnroll - 1) * group < packs; p += kUnroll * group)
            take_packs<kUnroll>(from + head + p * N, i + head + p * N);
        for (; p < packs; p += group) take_packs<1>(from + head + p * N, i + head + p * N);
        for (int64_t k = head + packs * N + lane; k < n; k += group) take_one(from[k], i + k);
    }

    // Of innermost axes without gaps.
    __device__ void take_runs(int64_t begin, int64_t end)
    {
        const int64_t length = reduced.shape[0];
        for (int64_t i = begin, n; i < end; i += n) {
            n = end - i;
            if (reduced.ndim > 1) n = min(n, length - i % length);
            take_run(at(i), i, n);
        }
    }
};

template <class T, class Op>
__global__ void __launch_bounds__(512) reduce_rows(RowJob job, Op given, typename Op::State *parts)
{
    const int lane = (int)threadIdx.x % job.group, per_block = (int)blockDim.x / job.group;
    const int64_t total = job.kept.numel * job.items;
    for (int64_t first = (int64_t)blockIdx.x * per_block; first < total;
         first += (int64_t)gridDim.x * per_block) {
        const int64_t index = first + (int)threadIdx.x / job.group;
        const bool inside = index < total;
        const int64_t row = job.items == 1 ? index : index / job.items;
        const Place<kSides> place = job.kept.at(inside ? row : 0);
        const Op op = op_at(given, place);
        RowReader<T, Op> reader{op, job.reduced, place.data[kX], lane, job.group, {}};
        reader.fold.begin(op);
        if (inside) {
            const int64_t begin = (index - row * job.items) * job.item;
            const int64_t end = min(job.reduced.numel, begin + job.item);
            if (job.packed)
                reader.take_runs(begin, end);
            else
                reader.take_each(begin, end);
        }
        const auto state = join_group(op, reader.fold.finish(op), job.group);
        if (!inside || lane) continue;
        if (parts)
            parts[index] = state;
        else
            op.put(place.data[kResult], state);
    }
}

// ---- columns -----------------------------------------------------------------------------------------------------

struct ColumnJob {
    Walk<kSides> planes;  // the kept axes but the innermost, along which the columns lie
    int64_t columns, step[kSides];
    Walk<1> reduced;
    int64_t tiles, items, item;  // of a plane's columns; of its rows, and their length
    int width;                   // threads along the columns
    bool packed;                 // a thread's columns at once
};

template <class T>
constexpr int kColumnsOfThread = sizeof(T) == 1 ? 4 : 8 / (int)sizeof(T);

// One thread's columns: next to each other where they are packed, else `width` apart, so that a warp's are.
template <class T, class Op>
struct ColumnReader {
    static constexpr int V = kColumnsOfThread<T>, kUnroll = kLooksTwice<Op> ? 8 : 4;
    using Element = typename Op::Element;
    const ColumnJob &job;
    const char *x;   // of column 0
    int64_t column;  // the first of the thread
    Op op[V];
    Fold<Op, 1> fold[V];

    __device__ int64_t column_of(int v) const { return column + (job.packed ? v : v * job.width); }

    __device__ Place<kSides> place_of(const Place<kSides> &start, int v) const
    {
        const int64_t c = min(column_of(v), job.columns - 1);
        Place<kSides> place;
        for (int i = 0; i < kSides; i++) place.data[i] = start.data[i] + c * job.step[i];
        return place;
    }

    // Elements row, row + step, … of K results each, from the row at `from` on.
    template <int K>
    __device__ void take(const char *from, int64_t row, int step)
    {
        const int64_t apart = job.reduced.stride[0][0] * step;
        Element loaded[V][K];
        YOKE_UNROLL
        for (int u = 0; u < K; u++, from += apart) {
            if (job.packed) {
                const Pack<T, V> pack = load_pack<V>((const T *)from + column);
                YOKE_UNROLL
                for (int v = 0; v < V; v++) loaded[v][u] = op[v].element(pack.at[v]);
            } else {
                YOKE_UNROLL
                for (int v = 0; v < V; v++) {
                    const int64_t c = min(column_of(v), job.columns - 1);
                    loaded[v][u] = op[v].element(*(const T *)(from + c * job.step[kX]));
                }
            }
        }
        YOKE_UNROLL
        for (int v = 0; v < V; v++) fold[v].template take<K>(op[v], loaded[v], row, step);
    }

    // Rows [begin, end), of which the thread takes every `step`th from its own on.
    __device__ void take_rows(int64_t begin, int64_t end, int mine, int step)
    {
        const Walk<1> &reduced = job.reduced;
        const int64_t length = reduced.shape[0];
        for (int64_t i = begin, n; i < end; i += n) {
            n = end - i;
            if (reduced.ndim > 1) n = min(n, length - i % length);
            const char *start = x + (reduced.at(i).data[0] - reduced.data[0]);
            int64_t k = mine;
            for (; k + (kUnroll - 1) * step < n; k += kUnroll * step)
                take<kUnroll>(start + k * reduced.stride[0][0], i + k, step);
            for (; k < n; k += step) take<1>(start + k * reduced.stride[0][0], i + k, step);
        }
    }
};

// combine() over the threads of a column, by halving.
template <class Op>
__device__ inline typename Op::State join_column(const Op &op, typename Op::State state, int width)
{
    YOKE_DYNAMIC_SHARED(typename Op::State, parts);
    if (width == (int)blockDim.x) return state;
    const int me = (int)threadIdx.x;
    __syncthreads();  // of what an earlier call may still be reading
    parts[me] = state;
    for (int half = (int)blockDim.x / 2; half >= width; half /= 2) {
        __syncthreads();
        if (me < half) {
            state = op.combine(state, (typename Op::State)parts[me + half]);
            parts[me] = state;
        }
    }
    return state;
}

template <class T, class Op>
__global__ void __launch_bounds__(512)
    reduce_columns(ColumnJob job, Op given, typename Op::State *parts)
{
    using Reader = ColumnReader<T, Op>;
    constexpr int V = Reader::V;
    const int x = (int)threadIdx.x % job.width, y = (int)threadIdx.x / job.width,
              down = (int)blockDim.x / job.width;
    const int64_t total = job.tiles * job.items * job.planes.numel;
    for (int64_t block = blockIdx.x; block < total; block += gridDim.x) {
        const int64_t tile = block % job.tiles, rest = block / job.tiles, item = rest % job.items,
                      plane = rest / job.items;
        const Place<kSides> start = job.planes.at(plane);
        Reader reader{job, start.data[kX], tile * job.width * V + x * (job.packed ? V : 1), {}, {}};
        YOKE_UNROLL
        for (int v = 0; v < V; v++) {
            reader.op[v] = op_at(given, reader.place_of(start, v));
            reader.fold[v].begin(reader.op[v]);
        }
        const int64_t end = min(job.reduced.numel, (item + 1) * job.item);
        if (reader.column < job.columns) reader.take_rows(item * job.item, end, y, down);
        YOKE_UNROLL
        for (int v = 0; v < V; v++) {
            const Op &op = reader.op[v];
            const auto state = join_column(op, reader.fold[v].finish(op), job.width);
            const int64_t c = reader.column_of(v);
            if (y || c >= job.columns) continue;
            if (parts)
                parts[(plane * job.columns + c) * job.items + item] = state;
            else
                op.put(reader.place_of(start, v).data[kResult], state);
        }
    }
}

// ---- parts of results ----------------------------------------------------------------------------------------------

template <class Op>
__global__ void __launch_bounds__(512)
    combine_parts(Walk<kSides> kept, Op given, const typename Op::State *parts, int64_t items,
                  int group)
{
    const int lane = (int)threadIdx.x % group, per_block = (int)blockDim.x / group;
    for (int64_t first = (int64_t)blockIdx.x * per_block; first < kept.numel;
         first += (int64_t)gridDim.x * per_block) {
        const int64_t row = first + (int)threadIdx.x / group;
        const bool inside = row < kept.numel;
        const Place<kSides> place = kept.at(inside ? row : 0);
        const Op op = op_at(given, place);
        typename Op::State state = op.init();
        if (inside)
            for (int64_t i = lane; i < items; i += group)
                state = op.combine(state, parts[row * items + i]);
        state = join_group(op, state, group);
        if (inside && !lane) op.put(place.data[kResult], state);
    }
}

// The blocks of `rows` groups; a whole block for each where that is the group.
inline Grid group_grid(const yoke_launch *launch, int64_t rows, int group, int threads)
{
    if (group == threads) return {max(1, min(rows, (int64_t)1 << 30)), threads};
    return {blocks_for(launch, rows, threads / group, 32), threads};
}

template <class Op>
inline yoke_status start_combining(const yoke_launch *launch, const ReduceAxes &axes, const Op &op,
                                   const typename Op::State *parts, int64_t items)
{
    const int threads = block_size(kThreads);
    const int group = items > 8 * kWarp ? threads : (int)min(kWarp, power_of_two_from(items));
    return start(launch, combine_parts<Op>, group_grid(launch, axes.kept.numel, group, threads),
                 Walk<kSides>(axes.kept), op, parts, items, group);
}

// ---- plans ---------------------------------------------------------------------------------------------------------

// Whether rows are made of runs that are worth a group's packs.
template <class T>
inline bool has_runs(const Loop<1> &reduced, int group)
{
    if (reduced.stride[0][0] != (int64_t)sizeof(T)) return false;
    return reduced.ndim == 1 || reduced.shape[0] >= (group / 2 + 1) * kPackLength<T>;
}

// A thread for each result where `alone`.
template <class T>
inline RowJob plan_rows(const ReduceAxes &axes, int threads, bool alone)
{
    constexpr int64_t N = kPackLength<T>;
    RowJob job{Walk<kSides>(axes.kept), Walk<1>(axes.reduced), 1, axes.reduced.numel, 1, false};
    if (alone) return job;
    const int64_t length = axes.reduced.numel, rows = axes.kept.numel;
    const int64_t packs = divide_up(length, N);
    if (packs <= 2 * kWarp || (packs <= 8 * kWarp && rows * kWarp >= kReduceBlocks * threads)) {
        job.group = (int)min(kWarp, power_of_two_from(packs));
        job.packed = has_runs<T>(axes.reduced, job.group);
        return job;
    }
    job.group = threads;
    job.packed = has_runs<T>(axes.reduced, job.group);
    const int64_t least = threads * N * 4, most = threads * N * kLongestRun;
    int64_t items = max(1, min(kReduceBlocks / rows, length / least));
    items = max(items, divide_up(length, most));
    if (items == 1) return job;
    job.item = divide_up(divide_up(length, items), threads * N) * threads * N;
    job.items = divide_up(length, job.item);
    return job;
}

template <class T>
inline bool is_packed_column(const ReduceAxes &axes)
{
    constexpr int64_t kBytes = kColumnsOfThread<T> * sizeof(T);
    const Loop<kSides> &kept = axes.kept;
    bool packed = kept.stride[0][kX] == (int64_t)sizeof(T) &&
                  kept.shape[0] % kColumnsOfThread<T> == 0 && is_aligned(kept.data[kX], kBytes);
    for (int axis = 1; axis < kept.ndim; axis++) packed &= kept.stride[axis][kX] % kBytes == 0;
    for (int axis = 0; axis < axes.reduced.ndim; axis++)
        packed &= axes.reduced.stride[axis][0] % kBytes == 0;
    return packed;
}

// Threads along the columns: as many as there are columns for, fewer where blocks would be few.
template <class T>
inline int column_width(const ReduceAxes &axes, int threads)
{
    constexpr int64_t V = kColumnsOfThread<T>;
    const int64_t columns = axes.kept.shape[0], planes = axes.kept.numel / columns;
    int64_t width = min(threads, power_of_two_from(divide_up(columns, V)));
    while (width > kWarp && divide_up(columns, V * width) * planes < kReduceBlocks / 2 &&
           2 * threads / width <= axes.reduced.numel)
        width /= 2;
    return (int)width;
}

template <class T>
inline ColumnJob plan_columns(const ReduceAxes &axes, int threads, int width)
{
    const Loop<kSides> &kept = axes.kept;
    Loop<kSides> planes;
    planes.ndim = 0;
    planes.numel = 1;
    for (int i = 0; i < kSides; i++) planes.data[i] = kept.data[i];
    for (int axis = 1; axis < kept.ndim; axis++)
        add_axis<kSides>(planes, kept.shape[axis], kept.stride[axis]);
    if (planes.ndim == 0) finish_loop<kSides>(planes);
    ColumnJob job{Walk<kSides>(planes),
                  kept.shape[0],
                  {},
                  Walk<1>(axes.reduced),
                  divide_up(kept.shape[0], (int64_t)width * kColumnsOfThread<T>),
                  1,
                  axes.reduced.numel,
                  width,
                  is_packed_column<T>(axes)};
    for (int i = 0; i < kSides; i++) job.step[i] = kept.stride[0][i];
    const int64_t rows = axes.reduced.numel, down = threads / width;
    int64_t items = max(1, min(kReduceBlocks / (job.tiles * planes.numel), rows / (down * 8)));
    items = max(items, divide_up(rows, down * 4 * kLongestRun));
    job.item = divide_up(rows, items);
    job.items = divide_up(rows, job.item);
    return job;
}

// ---- the entry -----------------------------------------------------------------------------------------------------

// Starts `kernel` on a job, and what combines its items where there are several.
template <class Op, class Job>
inline yoke_status start_reducing(const yoke_launch *launch, const ReduceAxes &axes, const Op &op,
                                  const Job &job, const Grid &grid,
                                  void (*kernel)(Job, Op, typename Op::State *))
{
    using State = typename Op::State;
    if (job.items == 1) return start(launch, kernel, grid, job, op, (State *)nullptr);
    Scratch parts(launch);
    const uint64_t bytes = (uint64_t)(axes.kept.numel * job.items) * sizeof(State);
    if (yoke_status status = parts.reserve(bytes)) return status;
    if (yoke_status status = start(launch, kernel, grid, job, op, parts.as<State>())) return status;
    return start_combining(launch, axes, op, parts.as<State>(), job.items);
}

template <class T, class Op>
inline yoke_status reduce(const yoke_launch *launch, const ReduceAxes &axes, const Op &op)
{
    if (axes.kept.numel == 0) return YOKE_OK;
    const int threads = block_size(kThreads);
    const bool by_columns = axes.by_columns();
    const int width = by_columns ? column_width<T>(axes, threads) : 0;
    if (!by_columns || threads / width > axes.reduced.numel) {
        const RowJob job = plan_rows<T>(axes, threads, by_columns);
        const Grid grid = group_grid(launch, axes.kept.numel * job.items, job.group, threads);
        return start_reducing(launch, axes, op, job, grid, reduce_rows<T, Op>);
    }
    const ColumnJob job = plan_columns<T>(axes, threads, width);
    const int64_t blocks = job.tiles * job.items * job.planes.numel;
    const int64_t shared = width < threads ? threads * (int64_t)sizeof(typename Op::State) : 0;
    return start_reducing(launch, axes, op, job, {min(blocks, (int64_t)1 << 30), threads, shared},
                          reduce_columns<T, Op>);
}

// Over the axes that a parameter of the launch names.
template <class T, class Op>
inline yoke_status reduce(const yoke_launch *launch, const Op &op, int axis = 0)
{
    const yoke_operand &x = launch->operands[0], &out = launch->operands[1];
    bool is_reduced[YOKE_MAX_NDIM];
    kernels::mark_axes(launch->params[axis], x.ndim, is_reduced);
    if (out.numel == 0) return YOKE_OK;
    return reduce<T>(launch, ReduceAxes(x, out, is_reduced), op);
}

YOKE_CUDA_END
