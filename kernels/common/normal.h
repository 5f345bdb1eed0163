// The standard normal distribution: 1 - Phi(t) and phi(t) for t >= 0, for float and double.
//
// Contract
//  * The tail keeps its relative accuracy as far as it is not 0: float within 9 units in the last
//    place, the density within 2 (tests/kernels/math_test.cpp). Double is the C library's.
//  * Beyond kNormalReach the tail is 0; t is to be held there (magnitude_at_most).
#pragma once

#include "kernels/common/math.h"

YOKE_KERNELS_BEGIN

template <class T>
struct NormalTail {
    T tail;
    T density;
};

template <class T>
inline constexpr T kNormalReach = (T)40;
template <>
inline constexpr float kNormalReach<float> = 14.5f;

// t * t - square, where square is t * t rounded.
YOKE_HD float square_rest(float t, float square)
{
#if defined(__FMA__) || defined(__CUDA_ARCH__)
    return __builtin_fmaf(t, t, -square);
#else
    float high = bit_cast<float>(bit_cast<uint32_t>(t) & 0xfffff000u);
    return (high * high - square) + (t - high) * (t + high);
#endif
}

// exp(-t^2 / 2) p(w) with w = 1 / (t + 3), p minimax to 2^-26.7. Odd and even powers add up side by side: in one chain
// the sum would take longer than anything else here.
YOKE_HD NormalTail<float> normal_tail(float t)
{
    float square = t * t;
    float shifted = square * -0x1.715476p-1f + kSmallShift;
    float n = shifted - kSmallShift;
    // -2 times what exp is reduced to: doubled constants cost nothing, halving the square would.
    float r = ((square + n * 0x1.62e4p+0f) + n * 0x1.7f7d1cp-19f) + square_rest(t, square);
    float bell = exp_reduced(r, 1.0f, -0.5f) * power_of_small(shifted);  // 2^64 too large
    float w = 1.0f / (t + 3.0f), w2 = w * w;
    float odd = -0x1.0bdfcap+9f * kSmallUnit, even = 0x1.f26688p+9f * kSmallUnit;
    odd = odd * w2 - 0x1.5d357cp+9f * kSmallUnit;
    even = even * w2 + 0x1.9400b8p+7f * kSmallUnit;
    odd = odd * w2 - 0x1.784ce2p+4f * kSmallUnit;
    even = even * w2 + 0x1.6c796ep+3f * kSmallUnit;
    odd = odd * w2 + 0x1.6ecaaap+1f * kSmallUnit;
    even = even * w2 + 0x1.36742cp+0f * kSmallUnit;
    odd = odd * w2 + 0x1.9810b6p-2f * kSmallUnit;
    even = even * w2 + 0x1.64447ep-18f * kSmallUnit;
    return {(odd * w + even) * bell, (0x1.988454p-2f * kSmallUnit) * bell};
}

YOKE_HD NormalTail<double> normal_tail(double t)
{
    return {0.5 * ::erfc(t * 0x1.6a09e667f3bcdp-1), 0x1.9884533d43651p-2 * ::exp(-0.5 * t * t)};
}

YOKE_KERNELS_END
