// Planes of x [N, C, ...]: the values that share a channel's statistics, and how blocks divide them.
//
// Contract
//  * The values of a plane share a result: all values of a channel (batch_norm), or the values of a channel in one
//    sample (group_norm). Planes are numbered row-major by [N, C] or [C].
//  * Values of a plane are taken in items of a fixed length, which depends on shapes and strides only.
//  * If channels are neighbours in memory (NHWC), a thread has the channels of a pack of 16 bytes in every row of an
//    item that is its own. Up to kPackLanes threads lie side by side, which together read a line of the cache.
#pragma once

#include "kernels/common/per_plane.h"
#include "kernels/cuda/ops/any_half.cuh"
#include "kernels/cuda/ops/reduce_fold.cuh"

YOKE_CUDA_BEGIN

constexpr int64_t kPlaneItem = 8192;  // values of a plane that a block adds up
constexpr int kPackLanes = 8;         // threads along the channels
constexpr int64_t kFewRows = 8,
                  kManyRows = 128;  // of a thread in an item, as far as the rows suffice

template <int N>
struct Planes {
    Walk<N> kept, reduced;
    int64_t count, length, item, items;
    bool by_columns, packed;
    yoke_dtype dtype;
    // By columns: blocks along the channels, and the binary logarithm of the threads along the channels.
    int64_t tiles = 1;
    int width_bits = 0;
    Divisor of_tiles, of_items;

    Planes(const Loop<N> &planes, const Loop<N> &values, yoke_dtype of)
        : kept(planes), reduced(values), count(planes.numel), length(values.numel), dtype(of)
    {
        const int64_t size = dtype_size(of);
        by_columns = are_columns();
        packed = are_packed(by_columns ? planes : values, size);
        for (int i = 0; i < N; i++) packed = packed && lies_evenly(planes, values, i);
        item = kPlaneItem;
        if (by_columns) divide_columns(16 / size);
        items = divide_up(length, item);
        if (by_columns) of_tiles = Divisor(tiles), of_items = Divisor(items);
    }
    YOKE_HD int64_t partials() const { return count * items; }
    YOKE_HD int64_t channels() const { return kept.shape[0]; }
    // Returns whether rows of packs lie evenly, as those of a whole image do.
    bool is_dense() const { return by_columns && packed && reduced.ndim == 1; }
    // Returns the blocks of a grid with a block for each item of each tile of columns.
    int64_t column_blocks() const { return tiles * items * outer(); }

private:
    int64_t outer() const { return channels() ? count / channels() : 0; }
    bool are_columns() const
    {
        const int64_t along_kept = kernels::stride_size(kept.stride[0][0]);
        if (kept.shape[0] < 4 || along_kept == 0) return false;
        return length > 1 && along_kept < kernels::stride_size(reduced.stride[0][0]);
    }
    // Returns whether the innermost axis of every operand is made of packs.
    static bool are_packed(const Loop<N> &inner, int64_t size)
    {
        bool packed = inner.shape[0] * size % 16 == 0;
        for (int i = 0; i < N; i++)
            packed = packed && inner.stride[0][i] == size && is_aligned(inner.data[i], 16);
        return packed;
    }
    // Returns whether all axes but the one with packs keep to multiples of a pack.
    bool lies_evenly(const Loop<N> &planes, const Loop<N> &values, int i) const
    {
        bool even = true;
        for (int axis = by_columns ? 1 : 0; axis < planes.ndim; axis++)
            even = even && planes.stride[axis][i] % 16 == 0;
        for (int axis = by_columns ? 0 : 1; axis < values.ndim; axis++)
            even = even && values.stride[axis][i] % 16 == 0;
        return even;
    }
    void divide_columns(int64_t pack)
    {
        const int64_t packs = divide_up(channels(), pack);
        while ((1 << width_bits) < min(kPackLanes, packs)) width_bits++;
        tiles = divide_up(packs, (int64_t)1 << width_bits);
        const int64_t down = kThreads >> width_bits,
                      wanted = max(1, kReduceBlocks / max((int64_t)1, tiles * outer()));
        items = max(1, min(wanted, length / (down * kFewRows)));
        items = max(items, divide_up(length, down * kManyRows));
        item = max(1, divide_up(length, items));
    }
};

template <int N>
inline Planes<N> planes_of(const yoke_operand *const (&operands)[N], bool per_sample)
{
    Loop<N> kept, reduced;
    kernels::plan_planes<N>(kept, reduced, operands, per_sample);
    return Planes<N>(kept, reduced, operands[0]->dtype);
}

// A thread's channels and rows, of planes by columns. If kDense, planes.is_dense() is known to be true.
template <class T, int N, bool kDense>
struct Columns {
    static constexpr int V = kPackLength<T>;
    using C = compute_type<T>;
    const Planes<N> &planes;
    int width;           // threads of a block in a row
    int across, down;    // place of the thread in its row; threads of a block in a column
    int64_t item;        // number of the block's item
    int64_t begin, end;  // the item's rows
    int64_t row;         // the thread's first row
    int64_t plane;       // number of the thread's first channel
    int channels;        // channels of the thread; 0 behind the last
    Place<N> start;      // of the thread's first channel, in row 0

    __device__ explicit Columns(const Planes<N> &of) : planes(of)
    {
        const unsigned rest = of.of_tiles.divide(blockIdx.x), outer = of.of_items.divide(rest),
                       tile = blockIdx.x - rest * (unsigned)of.tiles;
        item = rest - outer * (unsigned)of.items;
        width = 1 << of.width_bits;
        across = (int)threadIdx.x & (width - 1);
        down = (int)blockDim.x >> of.width_bits;
        begin = item * of.item;
        end = min(of.length, begin + of.item);
        row = begin + ((int)threadIdx.x >> of.width_bits);
        const int64_t first = (((int64_t)tile << of.width_bits) + across) * V;
        channels = (int)max(0, min(V, of.channels() - first));
        plane = outer * of.channels() + first;
        start = of.kept.at(outer, 1);
        YOKE_UNROLL
        for (int k = 0; k < N; k++) start.data[k] += first * of.kept.stride[0][k];
    }
    // Returns where the thread's channels of a row begin.
    __device__ Place<N> place(int64_t at) const
    {
        Place<N> found = start;
        if constexpr (kDense) {
            YOKE_UNROLL
            for (int k = 0; k < N; k++) found.data[k] += at * planes.reduced.stride[0][k];
        } else {
            const Place<N> walked = planes.reduced.at(at);
            YOKE_UNROLL
            for (int k = 0; k < N; k++) found.data[k] += walked.data[k] - planes.reduced.data[k];
        }
        return found;
    }
    // Returns the number of the item's state, of the thread's channel v.
    __device__ int64_t state(int v) const { return item * planes.count + plane + v; }
    __device__ T *element(const Place<N> &place, int k, int v) const
    {
        return reinterpret_cast<T *>(place.data[k] + v * planes.kept.stride[0][k]);
    }
    // Loads the thread's channels of operand k. Channels that are not there become 0.
    __device__ Pack<T, V> load(const Place<N> &place, int k) const
    {
        if constexpr (!kDense)
            if (!planes.packed) return gathered(place, k);
        return load_pack<V>(reinterpret_cast<const T *>(place.data[k]));
    }
    __device__ void put(const Place<N> &place, int k, const C (&values)[V]) const
    {
        if constexpr (!kDense)
            if (!planes.packed) return scatter(place, k, values);
        store_pack<V>(reinterpret_cast<T *>(place.data[k]), packed_as<T, V>(planes.dtype, values));
    }
    // Calls f.operator()<K>(row) for runs of K rows of the thread, `down` apart: K is kAtOnce, and 1 for the rest.
    template <int kAtOnce, class F>
    __device__ void each_rows(const F &f) const
    {
        int64_t at = row;
        if constexpr (kDense)
            for (; at + (kAtOnce - 1) * down < end; at += kAtOnce * down)
                f.template operator()<kAtOnce>(at);
        for (; at < end; at += down) f.template operator()<1>(at);
    }

private:
    __device__ Pack<T, V> gathered(const Place<N> &place, int k) const
    {
        Pack<T, V> pack{};
        YOKE_UNROLL
        for (int v = 0; v < V; v++)
            if (v < channels) pack.at[v] = *element(place, k, v);
        return pack;
    }
    __device__ void scatter(const Place<N> &place, int k, const C (&values)[V]) const
    {
        YOKE_UNROLL
        for (int v = 0; v < V; v++)
            if (v < channels) *element(place, k, v) = stored_as<T>(planes.dtype, values[v]);
    }
};

YOKE_CUDA_END
