// sort, argsort and topk along any axis, stable.
//
// Short rows are sorted in shared memory, many to a block; pairs of key and number differ, so that the network is
// stable too. Long rows are sorted together, a slab at a time, by keys that begin with the row; or, where few are
// wanted of them, by select.cu.
#include "kernels/common/axis_rows.h"
#include "kernels/cuda/ops/cub_sort.h"
#include "kernels/cuda/ops/sort_rows.cuh"

YOKE_CUDA_BEGIN

constexpr int64_t kSlabLength = (int64_t)1
                                << 26;  // elements that are sorted together, if rows are shorter

// ---- short rows -----------------------------------------------------------------------------------------------------

// Sorts short rows in tiles. A tile is `count` elements: rows of `width`, filled up with pairs that sort last.
__global__ void sort_tiles(SortRows s, int count, int width)
{
    YOKE_DYNAMIC_SHARED(uint64_t, word);
    const bool wide = s.size == 8;
    const Network<decltype(word)> network{word, wide ? count : 0};
    const int rows = count / width;
    for (int64_t first = (int64_t)blockIdx.x * rows; first < s.rows.numel;
         first += (int64_t)gridDim.x * rows) {
        for (int e = (int)threadIdx.x; e < count; e += (int)blockDim.x) {
            const int64_t row = first + e / width, i = e & (width - 1);
            const bool there = row < s.rows.numel && i < s.length;
            const uint64_t key =
                there ? s.key_at(s.rows.at(row).data[0] + i * s.step[0]) : ~(uint64_t)0;
            word[e] = wide || !there ? key : key << 32 | (uint64_t)i;
            if (wide) word[count + e] = (uint64_t)i;
        }
        network.sort(count, width);
        for (int e = (int)threadIdx.x; e < count; e += (int)blockDim.x) {
            const int64_t row = first + e / width, rank = e & (width - 1);
            if (row >= s.rows.numel || rank >= s.taken) continue;
            const uint64_t held = word[wide ? count + e : e];
            s.put(s.rows.at(row), rank, (int64_t)(uint32_t)held);
        }
        __syncthreads();
    }
}

static yoke_status sort_short(const yoke_launch *launch, const SortRows &s)
{
    int width = 2;
    while (width < s.length) width *= 2;
    int count = width;
    while (count < kTileLength && count < s.rows.numel * width) count *= 2;
    const int64_t tiles = divide_up(s.rows.numel, count / width);
    const int threads = (int)min(block_size(kThreads), max(kWarp, count / 2));
    const int64_t shared = count * (int64_t)sizeof(uint64_t) * (s.size == 8 ? 2 : 1);
    return start(launch, sort_tiles, {blocks_for(launch, tiles, 1), threads, shared}, s, count,
                 width);
}

// ---- long rows ------------------------------------------------------------------------------------------------------

// Rows that are sorted together, with elements numbered across all rows.
struct Slab {
    int64_t first, count;  // rows
    Split by_length;
};

// Lists keys with numbers. `shift` is the number of key bits: the row stands above them; with 64, there is no row.
template <class K>
__global__ void list_keys(SortRows s, Slab slab, Pairs<K> pairs, int shift)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < pairs.count;
         i += (int64_t)gridDim.x * blockDim.x) {
        const int64_t row = slab.by_length.quotient(i);
        const Place<3> place = s.rows.at(slab.first + row);
        const uint64_t key = s.key_at(place.data[0] + (i - row * s.length) * s.step[0]);
        pairs.key[i] = (K)(shift < 64 ? key | (uint64_t)row << shift : key);
        pairs.number[i] = (uint32_t)i;
    }
}

// Lists the rows of the sorted elements, as keys.
__global__ void list_rows(Slab slab, const uint32_t *number, Pairs<uint32_t> pairs)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < pairs.count;
         i += (int64_t)gridDim.x * blockDim.x) {
        pairs.key[i] = (uint32_t)slab.by_length.quotient(number[i]);
        pairs.number[i] = number[i];
    }
}

__global__ void put_slab(SortRows s, Slab slab, Split by_taken, const uint32_t *number)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < slab.count * s.taken;
         i += (int64_t)gridDim.x * blockDim.x) {
        const int64_t row = by_taken.quotient(i), rank = i - row * s.taken;
        s.put(s.rows.at(slab.first + row), rank, number[row * s.length + rank] - row * s.length);
    }
}

template <class K>
static yoke_status sort_keys(const yoke_launch *launch, const SortRows &s, const Slab &slab,
                             const Scratch &memory, Pairs<K> &pairs)
{
    const int64_t n = slab.count * s.length;
    const int bits = 8 * s.size, threads = block_size(kThreads);
    const bool with_row = slab.count > 1 && s.size < 8;
    pairs = Pairs<K>::in(memory.as<char>(), n);
    if (const yoke_status status =
            start(launch, list_keys<K>, {blocks_for(launch, n, threads), threads}, s, slab, pairs,
                  with_row ? bits : 64))
        return status;
    return sort_pairs(launch, pairs, bits + (with_row ? bits_of((uint64_t)slab.count - 1) : 0));
}

// Sorts the elements once more, by row only, because keys of 64 bits leave no bits for the row.
static yoke_status sort_by_row(const yoke_launch *launch, const Slab &slab, const Scratch &memory,
                               const uint32_t *&number, int64_t n)
{
    auto pairs = Pairs<uint32_t>::in(memory.as<char>() + Pairs<uint64_t>::bytes(n), n);
    const int threads = block_size(kThreads);
    yoke_status status =
        start(launch, list_rows, {blocks_for(launch, n, threads), threads}, slab, number, pairs);
    if (!status) status = sort_pairs(launch, pairs, bits_of((uint64_t)slab.count - 1));
    number = pairs.number;
    return status;
}

static yoke_status sort_slab(const yoke_launch *launch, const SortRows &s, const Slab &slab,
                             const Scratch &memory)
{
    const int64_t n = slab.count * s.length;
    const int bits = 8 * s.size + (slab.count > 1 ? bits_of((uint64_t)slab.count - 1) : 0);
    const uint32_t *number = nullptr;
    yoke_status status = YOKE_OK;
    if (bits <= 32) {
        Pairs<uint32_t> pairs;
        status = sort_keys(launch, s, slab, memory, pairs);
        number = pairs.number;
    } else {
        Pairs<uint64_t> pairs;
        status = sort_keys(launch, s, slab, memory, pairs);
        number = pairs.number;
        if (!status && s.size == 8 && slab.count > 1)
            status = sort_by_row(launch, slab, memory, number, n);
    }
    if (status) return status;
    const int64_t put = slab.count * s.taken;
    const int threads = block_size(kThreads);
    return start(launch, put_slab, {blocks_for(launch, put, threads), threads}, s, slab,
                 Split(s.taken, put), number);
}

static yoke_status sort_long(const yoke_launch *launch, const SortRows &s)
{
    if (s.length > kMostPairs)
        return fail(YOKE_E_VALUE, 0,
                    "%s: rows have %lld elements; the cuda kernel sorts rows of at most %lld",
                    op_name(launch->op), (long long)s.length, (long long)kMostPairs);
    const int64_t rows = s.rows.numel, share = min(rows, max(1, kSlabLength / s.length));
    const int64_t n = share * s.length;
    Scratch memory(launch);
    const bool twice = s.size == 8 && share > 1;
    if (const yoke_status status =
            memory.reserve(Pairs<uint64_t>::bytes(n) + (twice ? Pairs<uint32_t>::bytes(n) : 0)))
        return status;
    for (int64_t first = 0; first < rows; first += share) {
        const int64_t count = min(share, rows - first);
        const Slab slab{first, count, Split(s.length, count * s.length)};
        if (const yoke_status status = sort_slab(launch, s, slab, memory)) return status;
    }
    return YOKE_OK;
}

// Returns whether a block for each row is faster than a common sort: with many rows, or if no row is very long.
static bool selects(const SortRows &s)
{
    return s.size < 8 && s.taken <= kTileLength / 2 && s.length <= kMostPairs &&
           (s.rows.numel >= 32 || s.length <= 32768);
}

// ---- the ops --------------------------------------------------------------------------------------------------------

// Sorts the rows of x along an axis, or takes their first elements. `values` is null if the op has no such result.
static yoke_status sort(const yoke_launch *launch, const yoke_operand &x,
                        const yoke_operand *values, const yoke_operand &indices, int axis,
                        bool descending)
{
    if (indices.numel == 0) return YOKE_OK;
    const yoke_operand &second = values ? *values : indices;
    const kernels::AxisRows<3> rows({&x, &second, &indices}, axis);
    const SortRows s{Walk<3>(rows.outer),
                     {axis_step(x, axis), axis_step(second, axis), axis_step(indices, axis)},
                     rows.length,
                     axis_length(indices, axis),
                     x.dtype,
                     (int)dtype_size(x.dtype),
                     descending,
                     values != nullptr};
    if (s.length <= kTileLength) return sort_short(launch, s);
    return selects(s) ? select_first(launch, s) : sort_long(launch, s);
}

// Sorts x. Parameters: axis, descending.
YOKE_KERNEL(sort)
{
    const yoke_operand *o = launch->operands;
    const yoke_arg *p = launch->params;
    return sort(launch, o[0], &o[1], o[2], (int)p[0].v.i, p[1].v.i != 0);
}

YOKE_KERNEL(argsort)
{
    const yoke_operand *o = launch->operands;
    const yoke_arg *p = launch->params;
    return sort(launch, o[0], nullptr, o[1], (int)p[0].v.i, p[1].v.i != 0);
}

// Takes the first k elements. Parameters: k, axis, largest, sorted. Unsorted results are sorted too, because any
// order is allowed then.
YOKE_KERNEL(topk)
{
    const yoke_operand *o = launch->operands;
    const yoke_arg *p = launch->params;
    return sort(launch, o[0], &o[1], o[2], (int)p[1].v.i, p[2].v.i != 0);
}

YOKE_CUDA_END
