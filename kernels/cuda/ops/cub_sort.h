// Stable sort of pairs by CUB's radix sort. The sort has a separate file, because it compiles only as CUDA.
#pragma once

#include "kernels/cuda/host/support.h"

namespace yoke::cuda {

// Keys (uint32_t or uint64_t) with the numbers of their elements, in two copies: a sort moves pairs between both
// copies.
template <class K>
struct Pairs {
    K *key, *spare_key;
    uint32_t *number, *spare_number;
    int64_t count;  // at most kMostPairs

    // Returns the bytes of memory for `count` pairs.
    static uint64_t bytes(int64_t count) { return 2 * (part<K>(count) + part<uint32_t>(count)); }
    // Returns pairs in memory of bytes(count) bytes.
    static Pairs in(char *memory, int64_t count)
    {
        const auto keys = part<K>(count), numbers = part<uint32_t>(count);
        auto *number = reinterpret_cast<uint32_t *>(memory + 2 * keys);
        return {reinterpret_cast<K *>(memory), reinterpret_cast<K *>(memory + keys), number,
                reinterpret_cast<uint32_t *>(memory + 2 * keys + numbers), count};
    }

private:
    template <class T>
    static uint64_t part(int64_t count)
    {
        return ((uint64_t)count * sizeof(T) + 255) / 256 * 256;
    }
};

// Most pairs whose numbers fit 32 bits, with a number to spare.
constexpr int64_t kMostPairs = 0xfffffffe;

// Sorts the pairs in ascending order of the lowest `bits` bits of their keys. Equal keys keep their order. `key` and
// `number` then point to the result, perhaps in the spare memory. Runs in the order of the launch's stream.
yoke_status sort_pairs(const yoke_launch *launch, Pairs<uint32_t> &pairs, int bits);
yoke_status sort_pairs(const yoke_launch *launch, Pairs<uint64_t> &pairs, int bits);

// Returns how many bits hold every number up to `largest`; at least 1.
inline int bits_of(uint64_t largest)
{
    return largest ? 64 - __builtin_clzll(largest) : 1;
}

}  // namespace yoke::cuda
