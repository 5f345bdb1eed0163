// First elements of long rows in order, for topk. A block counts the digits of a row's keys, finds the limit that
// keeps the wanted number of elements, and sorts these.
#include "kernels/cuda/ops/sort_rows.cuh"

YOKE_CUDA_BEGIN

constexpr int kBins = 256, kReadsAtOnce = 8;

// Calls f(word) for every element of a row, by the threads of the block. In a word, the key stands above the
// element's number.
template <class F>
__device__ inline void visit_row(const SortRows &s, const char *row, const F &f)
{
    const int64_t threads = blockDim.x, apart = threads * s.step[0];
    for (int64_t i = threadIdx.x; i < s.length; i += kReadsAtOnce * threads) {
        uint64_t bits[kReadsAtOnce];
        const int64_t there = divide_up(s.length - i, threads);
        s.read(row + i * s.step[0], apart, there, bits);
        YOKE_UNROLL
        for (int k = 0; k < kReadsAtOnce; k++)
            if (k < there) f(s.key_of(bits[k]) << 32 | (uint64_t)(i + k * threads));
    }
}

// Finds the `wanted`-th element in the order of the bins. Writes its bin, its number in the bin, and the bin's count
// to `found`. Called by a single warp.
template <class Counts, class Found>
__device__ inline void find_bin(Counts &counts, Found &found, uint32_t wanted)
{
    constexpr int kOwn = kBins / kWarp;
    const int in_warp = place_in_warp();
    uint32_t own[kOwn], upto = 0;
    YOKE_UNROLL
    for (int k = 0; k < kOwn; k++) upto += own[k] = counts[in_warp * kOwn + k];
    const uint32_t mine = upto;
    for (int distance = 1; distance < kWarp; distance *= 2) {
        const uint32_t other = __shfl_up_sync(kWholeWarp, upto, (unsigned)distance);
        if (in_warp >= distance) upto += other;
    }
    uint32_t before = upto - mine;
    YOKE_UNROLL
    for (int k = 0; k < kOwn; k++) {
        if (before < wanted && wanted <= before + own[k]) {
            found[0] = (uint32_t)(in_warp * kOwn + k);
            found[1] = wanted - before;
            found[2] = own[k];
        }
        before += own[k];
    }
}

// Returns the largest of the first `s.taken` words of a row in order, or a value between it and the next word. Goes
// digit by digit, from the key's first to the number's last, until all elements of a bin are wanted.
template <class Counts, class Found>
__device__ inline uint64_t find_limit(const SortRows &s, const char *row, Counts &counts,
                                      Found &found, int number_bits)
{
    const int top = 32 + 8 * s.size;
    uint64_t prefix = 0;
    uint32_t wanted = (uint32_t)s.taken;
    for (int shift = top - 8;; shift = shift == 32 ? number_bits - 8 : shift - 8) {
        for (int bin = (int)threadIdx.x; bin < kBins; bin += (int)blockDim.x) counts[bin] = 0;
        __syncthreads();
        visit_row(s, row, [&](uint64_t word) {
            if (shift + 8 == top || (word ^ prefix) >> (shift + 8) == 0)
                shared_add(counts, (int64_t)(word >> shift & (kBins - 1)), 1u);
        });
        __syncthreads();
        if (threadIdx.x < kWarp) find_bin(counts, found, wanted);
        __syncthreads();
        prefix |= (uint64_t)found[0] << shift;
        wanted = found[1];
        if (found[2] == wanted || shift == 0) return prefix | (((uint64_t)1 << shift) - 1);
    }
}

// Selects and sorts the first elements of rows, each by a block. `width` is a power of two, not below s.taken.
__global__ void select_rows(SortRows s, int width, int number_bits)
{
    YOKE_DYNAMIC_SHARED(uint64_t, word);
    YOKE_SHARED(uint32_t, counts, kBins);
    YOKE_SHARED(uint32_t, found, 3);
    for (int64_t number = blockIdx.x; number < s.rows.numel; number += gridDim.x) {
        const Place<3> row = s.rows.at(number);
        const uint64_t limit = find_limit(s, row.data[0], counts, found, number_bits);
        if (threadIdx.x == 0) counts[0] = 0;
        __syncthreads();
        visit_row(s, row.data[0], [&](uint64_t candidate) {
            if (candidate <= limit) word[shared_add(counts, 0, 1u)] = candidate;
        });
        for (int e = (int)(s.taken + threadIdx.x); e < width; e += (int)blockDim.x)
            word[e] = ~(uint64_t)0;
        Network<decltype(word)>{word, 0}.sort(width, width);
        for (int rank = (int)threadIdx.x; rank < s.taken; rank += (int)blockDim.x)
            s.put(row, rank, (int64_t)(uint32_t)word[rank]);
        __syncthreads();
    }
}

yoke_status select_first(const yoke_launch *launch, const SortRows &s)
{
    int width = 2, number_bits = 8;
    while (width < s.taken) width *= 2;
    while ((s.length - 1) >> number_bits) number_bits += 8;
    return start(
        launch, select_rows,
        {blocks_for(launch, s.rows.numel, 1), block_size(512), width * (int64_t)sizeof(uint64_t)},
        s, width, number_bits);
}

YOKE_CUDA_END
