// exp, log, tanh, erf, sqrt, rounding and related functions, for float and double. For sin and cos see
// trigonometry.h, for the normal distribution normal.h.
//
// Contract
//  * float: own functions without branches and tables, so a plain loop vectorises. Largest errors (units in the last
//    place) against a long double reference over the whole range, measured and bounded by
//    tests/kernels/math_test.cpp: exp 1, exp_small 1.4, log 0.8, tanh 1.5, erf 1.2, expm1_below_zero 1.5,
//    log1p_of_unit 2.
//  * double: the C library's functions, called element by element. Their error is below one unit.
//  * Infinities, NaN, signed zeros, subnormal arguments and results come out as in the C library. errno and the
//    floating-point flags are not kept.
//  * Last bits may differ between ISAs that contract a * b + c and other ISAs. random_math.h has the functions for
//    random numbers, whose bits must not differ.
#pragma once

#include <cmath>

#include "kernels/common/macros.h"

YOKE_KERNELS_BEGIN

inline constexpr float kInfinity = __builtin_huge_valf();

YOKE_HD float absolute(float x)
{
    return bit_cast<float>(bit_cast<uint32_t>(x) & 0x7fffffffu);
}

YOKE_HD float with_sign_of(float magnitude, float sign)
{
    return bit_cast<float>(bit_cast<uint32_t>(magnitude) |
                           (bit_cast<uint32_t>(sign) & 0x80000000u));
}

// Returns |x|, but at most a positive bound, in one integer instruction. NaN gives the bound.
YOKE_HD float magnitude_at_most(float x, float bound)
{
    int32_t size = (int32_t)(bit_cast<uint32_t>(x) & 0x7fffffffu), most = bit_cast<int32_t>(bound);
    return bit_cast<float>(select(size < most, size, most));
}

// Returns x, but at least `low`. NaN stays NaN, because a comparison with NaN is false.
YOKE_HD float at_least(float x, float low)
{
    return select(x < low, low, x);
}

YOKE_HD float at_most(float x, float high)
{
    return select(x > high, high, x);
}

// Returns 2^n for -126 <= n <= 127.
YOKE_HD float power_of_two(int32_t n)
{
    return bit_cast<float>((uint32_t)(n + 127) << 23);
}

// ---- square root and rounding -------------------------------------------------------------------

// Returns the square root, by an instruction that is exact to half a unit.
YOKE_HD float sqrt(float x)
{
    return __builtin_sqrtf(x);
}

// Returns the nearest whole number; halves go to even. From 2^23 on every float is whole. Below, adding 2^23 rounds
// away the fraction.
YOKE_HD float round_to_even(float x)
{
    float size = absolute(x);
    return select(size < 0x1p23f, with_sign_of((size + 0x1p23f) - 0x1p23f, x), x);
}

YOKE_HD float floor(float x)
{
    float nearest = round_to_even(x);
    return select(nearest > x, nearest - 1.0f, nearest);
}

YOKE_HD float ceil(float x)
{
    float nearest = round_to_even(x);
    return with_sign_of(select(nearest < x, nearest + 1.0f, nearest), x);  // -0.5 gives -0
}

// Returns 1 / x within a unit in the last place. Neither x nor 1 / x is near the ends of float's range: on a device,
// a plain division checks for these ends first.
YOKE_HD float reciprocal_within(float x)
{
#if defined(__CUDA_ARCH__)
    float y = __fdividef(1.0f, x);
    return __builtin_fmaf(y, __builtin_fmaf(-x, y, 1.0f), y);
#else
    return 1.0f / x;
#endif
}
YOKE_HD double reciprocal_within(double x)
{
    return 1 / x;
}

// ---- exp ----------------------------------------------------------------------------------------

// Parts of x = n ln 2 + r, with |r| <= ln 2 / 2. Adding 1.5 * 2^23 leaves the nearest integer in the low bits,
// without a call.
struct ExpReduction {
    int32_t n;
    float r;
};

YOKE_HD ExpReduction exp_reduce(float x)
{
    float shifted = x * 0x1.715476p+0f + 0x1.8p23f;
    float n = shifted - 0x1.8p23f;
    // ln 2 in two parts; the first has 15 bits, so n times it is exact.
    float r = (x - n * 0x1.62e4p-1f) - n * 0x1.7f7d1cp-20f;
    return {(int32_t)(bit_cast<uint32_t>(shifted) - 0x4b400000u), r};
}

// Returns e^r - 1 for |r| <= ln 2 / 2, as r + r^2 q(r), minimax to 2^-31.9.
YOKE_HD float expm1_reduced(float r)
{
    float q = 0x1.a1a3bep-13f;
    q = q * r + 0x1.6d7698p-10f;
    q = q * r + 0x1.11108ep-7f;
    q = q * r + 0x1.5554acp-5f;
    q = q * r + 0x1.555556p-3f;
    q = q * r + 0.5f;
    return q * (r * r) + r;
}

// Returns unit e^(slope r) for |slope r| <= ln 2 / 2, minimax to 2^-28.5. unit and slope are constants and powers of
// two, so the coefficients absorb both without a loss.
YOKE_HD float exp_reduced(float r, float unit, float slope)
{
    float s = slope, s2 = s * s, s3 = s * s2, s4 = s2 * s2, s5 = s2 * s3, s6 = s3 * s3;
    float p = 0x1.709ca6p-10f * s6 * unit;
    p = p * r + 0x1.1290a4p-7f * s5 * unit;
    p = p * r + 0x1.55515cp-5f * s4 * unit;
    p = p * r + 0x1.5553cp-3f * s3 * unit;
    p = p * r + 0x1.000002p-1f * s2 * unit;
    p = p * r + s * unit;
    return p * r + unit;
}

// Returns p * 2^n, in two multiplications. Only the second multiplication can round (to a subnormal) or overflow.
YOKE_HD float scale(float p, int32_t n)
{
    int32_t half = n >> 1;
    return p * power_of_two(half) * power_of_two(n - half);
}

YOKE_HD float exp(float x)
{
    // Beyond these the result is 0 or infinity, and n stays small.
    ExpReduction e = exp_reduce(at_least(at_most(x, 89.0f), -105.0f));
    return scale(1.0f + expm1_reduced(e.r), e.n);
}

// Constants of exp for arguments that are not large. Then 2^n fits into one float if 2^n is kept 2^64 too large, and
// the polynomial 2^64 too small. Their product is rounded once, even if it is subnormal. Adding kSmallShift rounds to
// n, and puts n + 64 + 127 where a shift makes it an exponent.
inline constexpr float kSmallShift = 0x1.8p23f + 127 + 64;
inline constexpr float kSmallUnit = 0x1p-64f;

YOKE_HD float power_of_small(float shifted)
{
    return bit_cast<float>(bit_cast<uint32_t>(shifted) << 23);
}

// Returns e^x for -110 <= x <= 43, with half the work of exp. NaN gives NaN.
YOKE_HD float exp_small(float x)
{
    float shifted = x * 0x1.715476p+0f + kSmallShift;
    float n = shifted - kSmallShift;
    float r = (x - n * 0x1.62e4p-1f) - n * 0x1.7f7d1cp-20f;
    return exp_reduced(r, kSmallUnit, 1.0f) * power_of_small(shifted);
}

// Returns e^x for x <= 43. NaN gives NaN.
YOKE_HD float exp_not_large(float x)
{
    return exp_small(at_least(x, -105.0f));
}

// Returns e^x - 1 for x <= 0, without cancellation near 0.
YOKE_HD float expm1_below_zero(float x)
{
    ExpReduction e = exp_reduce(at_least(x, -20.0f));
    float power = power_of_two(e.n);
    return expm1_reduced(e.r) * power + (power - 1.0f);
}

// ---- log ----------------------------------------------------------------------------------------

// Parts of x = 2^k (1 + f), with 1 + f in [sqrt(1/2), sqrt(2)).
struct LogReduction {
    float k, f;
};

// Reduces a finite x above 0.
YOKE_HD LogReduction log_reduce(float x)
{
    constexpr uint32_t kSqrtHalf = 0x3f3504f3u;
    bool tiny = x < 0x1p-126f;
    uint32_t bits = bit_cast<uint32_t>(select(tiny, x * 0x1p23f, x)) + (0x3f800000u - kSqrtHalf);
    float k = (float)((int32_t)(bits >> 23) - select(tiny, 127 + 23, 127));
    return {k, bit_cast<float>((bits & 0x007fffffu) + kSqrtHalf) - 1.0f};
}

// Returns log(1 + f) - f + f^2/2 = f^3 p(f) for a reduced f.
YOKE_HD float log_cubic(float f)
{
    float p = 0x1.14607ap-4f;
    p = p * f - 0x1.de4126p-4f;
    p = p * f + 0x1.e6eefcp-4f;
    p = p * f - 0x1.fc2118p-4f;
    p = p * f + 0x1.233776p-3f;
    p = p * f - 0x1.555c54p-3f;
    p = p * f + 0x1.99a4b4p-3f;
    p = p * f - 0x1.000006p-2f;
    p = p * f + 0x1.555548p-2f;
    return (p * f) * (f * f);
}

// Returns k ln 2 + log(1 + f).
YOKE_HD float log_sum(float k, float f)
{
    float tail = log_cubic(f) + k * 0x1.7f7d1cp-20f;
    return k * 0x1.62e4p-1f + (f + (tail - 0.5f * (f * f)));
}

// Returns the logarithm of x, which is `finite` for a finite x above 0. Negative x gives NaN, 0 gives -infinity.
// Infinity and NaN are their own logarithm.
YOKE_HD float log_with_ends(float x, float finite)
{
    float positive = select(x < kInfinity, finite, x);
    return select(x <= 0.0f, select(x < 0.0f, __builtin_nanf(""), -kInfinity), positive);
}

YOKE_HD float log(float x)
{
    LogReduction r = log_reduce(x);
    return log_with_ends(x, log_sum(r.k, r.f));
}

// Returns log(1 + u) for 0 <= u <= 1, as 2 atanh(s) = 2 s + s z p(z) with s = u / (2 + u), z = s^2, minimax to
// 2^-29.9.
YOKE_HD float log1p_of_unit(float u)
{
    float s = u / (2.0f + u);
    float z = s * s;
    float p = 0x1.dba26p-3f;
    p = p * z + 0x1.bc8cf8p-3f;
    p = p * z + 0x1.24c926p-2f;
    p = p * z + 0x1.9998d4p-2f;
    p = p * z + 0x1.555556p-1f;
    return (s + s) + s * (z * p);
}

// ---- tanh ---------------------------------------------------------------------------------------

// Returns tanh x: x + x^3 p(x^2) for |x| < 0.55. Beyond, 1 - 2e / (1 + e) with e = exp(-2|x|), where the fraction's
// error counts for little.
YOKE_HD float tanh(float x)
{
    float z = x * x;
    float p = -0x1.9a9e8ep-8f;
    p = p * z + 0x1.592794p-6f;
    p = p * z - 0x1.b92674p-5f;
    p = p * z + 0x1.110d1ep-3f;
    p = p * z - 0x1.55554ap-2f;
    float size = absolute(x);
    ExpReduction reduced = exp_reduce(-2.0f * at_most(size, 10.0f));
    float e = power_of_two(reduced.n) * (1.0f + expm1_reduced(reduced.r));
    float large = 1.0f - 2.0f * e / (1.0f + e);
    return with_sign_of(select(size < 0.55f, size + size * (z * p), large), x);
}

// ---- erf and the normal distribution ------------------------------------------------------------

// Returns exp(-weight t^2) for a weight of 1 or 1/2. The square of t's upper half is exact; the rest is added after
// reduction. Otherwise the error of t^2 would be multiplied by t^2.
YOKE_HD float exp_minus_square(float t, float weight)
{
    float high = bit_cast<float>(bit_cast<uint32_t>(t) & 0xfffff000u);
    ExpReduction e = exp_reduce(-weight * (high * high));
    return scale(1.0f + expm1_reduced(e.r + weight * ((high - t) * (high + t))), e.n);
}

// Returns exp(t^2) erfc(t) for 0 <= t <= 10.3, as p(u) / (t + 3) with u = (t - 3) / (t + 3), minimax to 2^-28.7.
YOKE_HD float erfc_scaled(float t)
{
    float inverse = reciprocal_within(t + 3.0f);
    float u = (t - 3.0f) * inverse;
    float p = -0x1.547e5p-12f;
    p = p * u - 0x1.f9687ep-12f;
    p = p * u + 0x1.93c714p-9f;
    p = p * u - 0x1.41a99cp-10f;
    p = p * u - 0x1.b7bf6p-6f;
    p = p * u + 0x1.e9976cp-4f;
    p = p * u - 0x1.3deacap-2f;
    p = p * u + 0x1.2e3268p-1f;
    p = p * u - 0x1.c44c48p-1f;
    p = p * u + 0x1.12f21ep+0f;
    return p * inverse;
}

YOKE_HD float erf(float x)
{
    float z = x * x;
    float p = 0x1.496a12p-14f;
    p = p * z - 0x1.a3f71ep-11f;
    p = p * z + 0x1.5405bep-8f;
    p = p * z - 0x1.b7f91p-6f;
    p = p * z + 0x1.ce2cf8p-4f;
    p = p * z - 0x1.81273ep-2f;
    p = p * z + 0x1.06eba8p-3f;  // 2 / sqrt(pi) - 1: x itself adds the 1
    float t = at_most(absolute(x), 10.0f);
    float large = 1.0f - erfc_scaled(t) * exp_minus_square(t, 1.0f);
    return select(t < 1.0f, x + x * p, with_sign_of(large, x));
}

YOKE_HD float exp_of_minus_square(float x)
{
    return exp_minus_square(at_most(absolute(x), 11.0f), 1.0f);
}

// ---- double: the C library ----------------------------------------------------------------------

YOKE_HD double exp(double x)
{
    return ::exp(x);
}
YOKE_HD double log(double x)
{
    return ::log(x);
}
YOKE_HD double tanh(double x)
{
    return ::tanh(x);
}
YOKE_HD double erf(double x)
{
    return ::erf(x);
}
YOKE_HD double sqrt(double x)
{
    return ::sqrt(x);
}
YOKE_HD double floor(double x)
{
    return ::floor(x);
}
YOKE_HD double ceil(double x)
{
    return ::ceil(x);
}
YOKE_HD double round_to_even(double x)
{
    return ::rint(x);
}
YOKE_HD double expm1_below_zero(double x)
{
    return ::expm1(x);
}
YOKE_HD double log1p_of_unit(double u)
{
    return ::log1p(u);
}
YOKE_HD double exp_of_minus_square(double x)
{
    return ::exp(-x * x);
}

YOKE_HD double magnitude_at_most(double x, double bound)
{
    double size = select(x < 0, -x, x);
    return select(size < bound, size, bound);
}

YOKE_HD double exp_small(double x)
{
    return ::exp(x);
}
YOKE_HD double exp_not_large(double x)
{
    return ::exp(x);
}

YOKE_KERNELS_END
