// Halves to and from float by the device's own instructions. Integer arithmetic takes ten instructions for this. The
// values equal the values of numeric.h, except that a NaN loses its payload.
#pragma once

#include "kernels/cuda/ops/kernel.cuh"

YOKE_CUDA_BEGIN

#if defined(YOKE_EMULATED)
template <class T>
inline compute_type<T> widen(T x)
{
    return load<T>(x);
}

template <class T>
inline void narrow_pair(const compute_type<T> *from, T *to)
{
    to[0] = store<T>(from[0]);
    to[1] = store<T>(from[1]);
}
#else
template <class T>
__device__ inline compute_type<T> widen(T x)
{
    if constexpr (std::is_same_v<T, f16>) {
        float y;
        asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
        return y;
    } else {
        return load<T>(x);
    }
}

// True if the card has an instruction that narrows pairs. Turing (7.5) does not.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr bool kNarrowsPairs = false;
#else
constexpr bool kNarrowsPairs = true;
#endif

// Stores two values as T.
template <class T>
__device__ inline void narrow_pair(const compute_type<T> *from, T *to)
{
    if constexpr (is_half<T> && kNarrowsPairs) {
        unsigned pair;
        if constexpr (std::is_same_v<T, bf16>)
            asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(from[1]), "f"(from[0]));
        else
            asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(from[1]), "f"(from[0]));
        memcpy(to, &pair, sizeof pair);
    } else {
        to[0] = store<T>(from[0]);
        to[1] = store<T>(from[1]);
    }
}
#endif

// Converts the two halves of a word to float.
template <class T>
__device__ inline void widen_pair(unsigned word, float *to)
{
    if constexpr (std::is_same_v<T, bf16>) {
        to[0] = kernels::bit_cast<float>(word << 16);
        to[1] = kernels::bit_cast<float>(word & 0xffff0000u);
    } else {
        to[0] = widen<T>(T{(uint16_t)word});
        to[1] = widen<T>(T{(uint16_t)(word >> 16)});
    }
}

// Converts the N stored values of a pack to the computing type.
template <class T, int N>
__device__ inline void unpack(const Pack<T, N> &pack, compute_type<T> *to)
{
    YOKE_UNROLL
    for (int k = 0; k < N; k++) to[k] = widen<T>(pack.at[k]);
}

// Returns a pack of N computed values as they are stored.
template <class T, int N>
__device__ inline Pack<T, N> pack_of(const compute_type<T> *from)
{
    static_assert(N % 2 == 0, "made of pairs");
    Pack<T, N> pack;
    YOKE_UNROLL
    for (int k = 0; k < N; k += 2) narrow_pair<T>(from + k, pack.at + k);
    return pack;
}

YOKE_CUDA_END
