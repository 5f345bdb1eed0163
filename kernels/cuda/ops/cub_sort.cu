#include "kernels/cuda/ops/cub_sort.h"

#include <cub/device/device_radix_sort.cuh>

#include "kernels/cuda/host/failures.h"

namespace yoke::cuda {

template <class K>
static yoke_status sort(const yoke_launch *launch, Pairs<K> &pairs, int bits)
{
    const auto stream = static_cast<cudaStream_t>(launch->stream);
    cub::DoubleBuffer<K> keys(pairs.key, pairs.spare_key);
    cub::DoubleBuffer<uint32_t> numbers(pairs.number, pairs.spare_number);
    const auto count = static_cast<uint32_t>(pairs.count);
    size_t bytes = 0;
    cudaError_t error =
        cub::DeviceRadixSort::SortPairs(nullptr, bytes, keys, numbers, count, 0, bits, stream);
    Scratch temporary(launch);
    if (error == cudaSuccess) {
        if (const yoke_status status = temporary.reserve(bytes)) return status;
        error = cub::DeviceRadixSort::SortPairs(temporary.as<void>(), bytes, keys, numbers, count,
                                                0, bits, stream);
    }
    if (error != cudaSuccess)
        return call_failed(launch, error, "cub::DeviceRadixSort::SortPairs of %lld pairs",
                           (long long)pairs.count);
    pairs = {keys.Current(), keys.Alternate(), numbers.Current(), numbers.Alternate(), pairs.count};
    return YOKE_OK;
}

yoke_status sort_pairs(const yoke_launch *launch, Pairs<uint32_t> &pairs, int bits)
{
    return sort(launch, pairs, bits);
}

yoke_status sort_pairs(const yoke_launch *launch, Pairs<uint64_t> &pairs, int bits)
{
    return sort(launch, pairs, bits);
}

}  // namespace yoke::cuda
