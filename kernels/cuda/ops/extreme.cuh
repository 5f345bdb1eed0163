// Values by size and by truth, for reductions: one kernel serves the largest and the smallest, and words of any dtype
// serve what only asks whether bits are 0.
#pragma once

#include "kernels/common/reduce.h"
#include "kernels/cuda/ops/formats.cuh"

YOKE_CUDA_BEGIN

// Values in an order whose largest value is the result: unchanged, or reversed. Reversal flips a float's sign, and
// complements an integer. NaN stays NaN.
template <class C>
struct Ordered {
    using Bits = std::conditional_t<sizeof(C) == 4, uint32_t, uint64_t>;
    Bits flip = 0;

    Ordered() = default;
    explicit Ordered(bool smallest)
        : flip(!smallest     ? (Bits)0
               : is_float<C> ? (Bits)1 << (sizeof(Bits) * 8 - 1)
                             : ~(Bits)0)
    {
    }
    // Reverses a value if needed. The same function reverses back.
    YOKE_HD C turned(C x) const { return kernels::bit_cast<C>(kernels::bit_cast<Bits>(x) ^ flip); }
};

// Returns a mask of bits. A word with these bits all 0 is an element that is 0; the sign of a float is left out, so
// -0.0 is 0.
inline uint64_t nonzero_mask(yoke_dtype dtype)
{
    const bool has_sign =
        dtype == YOKE_F16 || dtype == YOKE_BF16 || dtype == YOKE_F32 || dtype == YOKE_F64;
    return ~(uint64_t)0 >> (64 - 8 * dtype_size(dtype) + has_sign);
}

// Number of elements that are not 0 (`truth`), or of elements that are 0. Without `counts`, the result is a bool: any
// element is not 0 (`truth`), or no element is 0.
struct CountNonzero {
    using Element = int32_t;
    using State = int64_t;
    uint64_t mask;  // nonzero_mask
    bool truth, counts;

    __device__ Element element(uint64_t x) const { return ((x & mask) != 0) == truth; }
    __device__ State init() const { return 0; }
    __device__ State reduce(State s, Element x, int64_t) const { return s + x; }
    __device__ State combine(State a, State b) const { return a + b; }
    __device__ void put(char *out, State s) const
    {
        if (counts)
            *(int64_t *)out = s;
        else
            *(bool *)out = (s != 0) == truth;
    }
};

YOKE_CUDA_END
