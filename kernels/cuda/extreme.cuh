// Elements by size and by truth, for reductions: one kernel serves the largest and the smallest, and every dtype of a
// size serves what only asks whether bits are 0.
#pragma once

#include "kernels/common/reduce.h"
#include "kernels/cuda/kernel.cuh"

YOKE_CUDA_BEGIN

// Words of at least 4 bytes, which is what warps exchange.
template <class T>
using word_type = std::conditional_t<(sizeof(compute_type<T>) < 4), int32_t, compute_type<T>>;

// Elements in the order whose largest is wanted: as they are, or turned upside down. A float's sign is flipped, an
// integer becomes its complement; NaN stays NaN.
template <class T>
struct Ordered {
    using Word = word_type<T>;
    using Bits = std::conditional_t<sizeof(Word) == 4, uint32_t, uint64_t>;
    Bits flip = 0;

    Ordered() = default;
    explicit Ordered(bool smallest)
        : flip(!smallest     ? (Bits)0
               : is_float<T> ? (Bits)1 << (sizeof(Bits) * 8 - 1)
                             : ~(Bits)0)
    {
    }
    // The same both ways.
    YOKE_HD Word turned(Word x) const
    {
        return kernels::bit_cast<Word>(kernels::bit_cast<Bits>(x) ^ flip);
    }
    YOKE_HD Word element(T x) const { return turned((Word)load<T>(x)); }
};

// The bits that are not all 0 where an element of a dtype is not 0: -0.0 is 0.
template <class Bits>
inline Bits nonzero_mask(yoke_dtype dtype)
{
    const bool has_sign =
        dtype == YOKE_F16 || dtype == YOKE_BF16 || dtype == YOKE_F32 || dtype == YOKE_F64;
    return has_sign ? (Bits)((Bits) ~(Bits)0 >> 1) : (Bits) ~(Bits)0;
}

// The largest (or smallest) element; NaN wins.
template <class T>
struct Extreme : kernels::Amax<word_type<T>> {
    using Element = word_type<T>;
    Ordered<T> order;
    __device__ Element element(T x) const { return order.element(x); }
    __device__ void put(char *out, Element state) const
    {
        *(T *)out = convert<T>((compute_type<T>)order.turned(state));
    }
};

YOKE_CUDA_END
