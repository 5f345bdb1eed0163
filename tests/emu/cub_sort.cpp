// kernels/cuda/ops/cub_sort.h without CUB, because CUB compiles only as CUDA: a kernel of a single thread.
#include "kernels/cuda/ops/cub_sort.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "kernels/cuda/host/failures.h"
#include "tests/emu/emu.h"

namespace yoke::cuda {

namespace {

// The result is left in what was spare, as CUB may, and the rest is spoilt.
template <class K>
void sort_by(const Pairs<K> &pairs, K mask)
{
    std::vector<int64_t> order((size_t)pairs.count);
    std::iota(order.begin(), order.end(), int64_t{0});
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
        return (pairs.key[a] & mask) < (pairs.key[b] & mask);
    });
    for (int64_t i = 0; i < pairs.count; i++) {
        pairs.spare_key[i] = pairs.key[order[(size_t)i]];
        pairs.spare_number[i] = pairs.number[order[(size_t)i]];
    }
    std::fill_n(pairs.key, pairs.count, (K) ~(K)0);
    std::fill_n(pairs.number, pairs.count, 0xffffffffu);
}

template <class K>
yoke_status sort(const yoke_launch *launch, Pairs<K> &pairs, int bits)
{
    const K mask = bits >= (int)sizeof(K) * 8 ? (K) ~(K)0 : (K)(((K)1 << bits) - 1);
    const cudaError_t error = emu::launch("sort_pairs", nullptr, launch, dim3(1), dim3(1), 0,
                                          [pairs, mask] { sort_by<K>(pairs, mask); });
    if (error != cudaSuccess)
        return call_failed(launch, error, "cub::DeviceRadixSort::SortPairs of %lld pairs",
                           (long long)pairs.count);
    std::swap(pairs.key, pairs.spare_key);
    std::swap(pairs.number, pairs.spare_number);
    return YOKE_OK;
}

}  // namespace

yoke_status sort_pairs(const yoke_launch *launch, Pairs<uint32_t> &pairs, int bits)
{
    return sort(launch, pairs, bits);
}

yoke_status sort_pairs(const yoke_launch *launch, Pairs<uint64_t> &pairs, int bits)
{
    return sort(launch, pairs, bits);
}

}  // namespace yoke::cuda
