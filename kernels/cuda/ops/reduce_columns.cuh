// Reductions of columns: results lie next to each other. See reduce.cuh.
#pragma once

#include "kernels/cuda/ops/reduce_fold.cuh"

YOKE_CUDA_BEGIN

struct ColumnJob {
    Walk<kSides> planes;  // the kept axes but the innermost, along which the columns lie
    int64_t columns, step[kSides];
    Walk<1> reduced;
    int64_t tiles, items, item;  // tiles of a plane's columns; items of its rows, and their length
    int width;                   // threads along the columns
    bool packed;                 // a thread's columns at once
    int dtype, size;             // data type and item size of x
};

template <class In>
constexpr int kColumnsOfThread = std::is_same_v<In, Doubles> ? 2 : 4;

// Columns of a thread: neighbours if packed, else `width` apart, so the columns of a warp are neighbours.
template <class In, class Op>
struct ColumnReader {
    static constexpr int V = kColumnsOfThread<In>,
                         kUnroll = kLooksTwice<Op> ? 8 : kLoadsAtOnce<In, Op>;
    using Element = typename Op::Element;
    const ColumnJob &job;
    const char *x;   // at column 0
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

    // Takes K elements row, row + step, … of each of the thread's columns. The row at `from` is the first.
    template <int K>
    __device__ void take(const char *from, int64_t row, int step)
    {
        const int64_t apart = job.reduced.stride[0][0] * step;
        typename In::Value values[K][V];
        if (job.packed) {
            Stored<In, V> stored[K];
            YOKE_UNROLL
            for (int u = 0; u < K; u++) stored[u].load(from + u * apart, job.size, column, V / 2);
            YOKE_UNROLL
            for (int u = 0; u < K; u++) stored[u].unpack(job.dtype, values[u]);
        } else {
            YOKE_UNROLL
            for (int u = 0; u < K; u++) take_apart(from + u * apart, values[u]);
        }
        YOKE_UNROLL
        for (int v = 0; v < V; v++) {
            Element loaded[K];
            YOKE_UNROLL
            for (int u = 0; u < K; u++) loaded[u] = op[v].element(values[u][v]);
            fold[v].template take<K>(op[v], loaded, row, step);
        }
    }

    // Takes the thread's columns of a row, at any distance.
    __device__ void take_apart(const char *from, typename In::Value (&values)[V]) const
    {
        Stored<In, 1> stored[V];
        YOKE_UNROLL
        for (int v = 0; v < V; v++)
            stored[v].load(from + min(column_of(v), job.columns - 1) * job.step[kX], job.size);
        YOKE_UNROLL
        for (int v = 0; v < V; v++) {
            typename In::Value value[1];
            stored[v].unpack(job.dtype, value);
            values[v] = value[0];
        }
    }

    // Takes rows [begin, end): every `step`th row, from the thread's own row on.
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

// Combines the states of a column's threads, by halving. The column's first thread gets the result.
template <class Op>
__device__ inline typename Op::State join_column(const Op &op, typename Op::State state, int width)
{
    YOKE_DYNAMIC_SHARED(typename Op::State, parts);
    if (width == (int)blockDim.x) return state;
    const int me = (int)threadIdx.x;
    __syncthreads();  // an earlier call may still read
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

template <class In, class Op>
__global__ void reduce_columns(ColumnJob job, Op given, typename Op::State *parts)
{
    using Reader = ColumnReader<In, Op>;
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

// Returns whether n neighbouring columns may be loaded at once, everywhere.
inline bool is_packed_column(const ReduceAxes &axes, int64_t n)
{
    const int64_t size = dtype_size(axes.dtype), bytes = pack_bytes(n, size);
    const Loop<kSides> &kept = axes.kept;
    bool packed =
        kept.stride[0][kX] == size && kept.shape[0] % n == 0 && is_aligned(kept.data[kX], bytes);
    for (int axis = 1; axis < kept.ndim; axis++) packed &= kept.stride[axis][kX] % bytes == 0;
    for (int axis = 0; axis < axes.reduced.ndim; axis++)
        packed &= axes.reduced.stride[axis][0] % bytes == 0;
    return packed;
}

// Returns the threads along the columns: as many as the columns need, but fewer if there would be few blocks.
template <class In>
inline int column_width(const ReduceAxes &axes, int threads)
{
    constexpr int64_t V = kColumnsOfThread<In>;
    const int64_t columns = axes.kept.shape[0], planes = axes.kept.numel / columns;
    int64_t width = min(threads, power_of_two_from(divide_up(columns, V)));
    while (width > kWarp && divide_up(columns, V * width) * planes < kReduceBlocks / 2 &&
           2 * threads / width <= axes.reduced.numel)
        width /= 2;
    return (int)width;
}

template <class In>
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
                  divide_up(kept.shape[0], (int64_t)width * kColumnsOfThread<In>),
                  1,
                  axes.reduced.numel,
                  width,
                  is_packed_column(axes, kColumnsOfThread<In>),
                  as_format<In>(axes.dtype),
                  (int)dtype_size(axes.dtype)};
    for (int i = 0; i < kSides; i++) job.step[i] = kept.stride[0][i];
    const int64_t rows = axes.reduced.numel, down = threads / width;
    int64_t items = max(1, min(kReduceBlocks / (job.tiles * planes.numel), rows / (down * 8)));
    items = max(items, divide_up(rows, down * 4 * kLongestRun));
    job.item = divide_up(rows, items);
    job.items = divide_up(rows, job.item);
    return job;
}

YOKE_CUDA_END
