// The standard normal distribution: 1 - Phi(t) and phi(t) for t >= 0, for float and double.
//
// Contract
//  * The tail keeps its relative accuracy as far as it is not 0: float within 7.5 units in the last
//    place up to t = 6, within 12 beyond; the density within 2.1 (tests/kernels/math_test.cpp).
//    Double is the C library's.
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

// Returns t * t - square, where square is t * t rounded.
YOKE_HD float square_rest(float t, float square)
{
#if defined(__FMA__) || defined(__CUDA_ARCH__)
    return __builtin_fmaf(t, t, -square);
#else
    float high = bit_cast<float>(bit_cast<uint32_t>(t) & 0xfffff000u);
    return (high * high - square) + (t - high) * (t + high);
#endif
}

// Returns the tail and the density at t. The tail is exp(-t^2 / 2) p(u) with u = 1 - 6 / (t + 3), p minimax to
// 2^-26.7. Except for the first two terms, p adds odd and even powers side by side: a single chain would take longer
// than exp.
YOKE_HD NormalTail<float> normal_tail(float t)
{
    float square = t * t;
    float shifted = square * -0x1.715476p-1f + kSmallShift;
    float n = shifted - kSmallShift;
    // The constants are doubled, so this is -2 times the argument of exp. Doubling the constants costs no time,
    // halving the square would.
    float r = ((square + n * 0x1.62e4p+0f) + n * 0x1.7f7d1cp-19f) + square_rest(t, square);
    float bell = exp_reduced(r, 1.0f, -0.5f) * power_of_small(shifted);  // 2^64 too large
    float u = 1.0f - 6.0f * reciprocal_within(t + 3.0f), u2 = u * u;
    float even = 0x1.bdf476p-15f * kSmallUnit, odd = 0x1.e267p-14f * kSmallUnit;
    even = even * u2 - 0x1.637b16p-12f * kSmallUnit;
    odd = odd * u2 - 0x1.01c35ap-10f * kSmallUnit;
    even = even * u2 + 0x1.7caf12p-9f * kSmallUnit;
    odd = odd * u2 + 0x1.91dcecp-8f * kSmallUnit;
    even = even * u2 - 0x1.7a943cp-5f * kSmallUnit;
    odd = odd * u2 + 0x1.f8bad2p-4f * kSmallUnit;
    float p = even * u + odd;
    p = p * u - 0x1.a6b66ap-3f * kSmallUnit;
    p = p * u + 0x1.f1b89cp-4f * kSmallUnit;
    return {p * bell, (0x1.988454p-2f * kSmallUnit) * bell};
}

YOKE_HD NormalTail<double> normal_tail(double t)
{
    return {0.5 * ::erfc(t * 0x1.6a09e667f3bcdp-1), 0x1.9884533d43651p-2 * ::exp(-0.5 * t * t)};
}

YOKE_KERNELS_END
