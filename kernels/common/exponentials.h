// Logarithms and exponentials beside math.h: log1p, log2, log10, exp2, expm1, sinh and cosh, for float and double.
//
// Contract: that of math.h. Largest errors in units in the last place: log1p 1.4, log2 1.2, log10 1.6, exp2 1.5, expm1
// 1.6, sinh 1.9, cosh 1.6.
#pragma once

#include "kernels/common/math.h"

YOKE_KERNELS_BEGIN

// ---- logarithms ---------------------------------------------------------------------------------

// Returns log(1 + x). What 1 + x loses by rounding is added to the reduced fraction.
YOKE_HD float log1p(float x)
{
    float u = 1.0f + x;
    LogReduction r = log_reduce(u);
    float lost = x - (u - 1.0f);
    float scaled = lost * power_of_two(-(int32_t)at_most(at_least(r.k, -126.0f), 126.0f));
    float finite = select(absolute(x) < 0x1p-126f, x, log_sum(r.k, r.f + scaled));
    return select(x == 0.0f, x, log_with_ends(u, finite));
}

// Logarithms of a base of e and of 2, each in two parts: the first has 12 bits, so its product with 12 bits is exact.
struct LogBase {
    float of_e, of_e_rest, of_2, of_2_rest;
};

YOKE_HD float log_of_base(float x, LogBase base)
{
    LogReduction r = log_reduce(x);
    float high = bit_cast<float>(bit_cast<uint32_t>(r.f) & 0xfffff000u);
    float rest = (r.f - high) + (log_cubic(r.f) - 0.5f * (r.f * r.f));
    float tail = (rest * base.of_e + (high + rest) * base.of_e_rest) + r.k * base.of_2_rest;
    return log_with_ends(x, (r.k * base.of_2 + high * base.of_e) + tail);
}

YOKE_HD float log2(float x)
{
    return log_of_base(x, {0x1.716p+0f, -0x1.7135a8p-13f, 1.0f, 0.0f});
}

YOKE_HD float log10(float x)
{
    return log_of_base(x, {0x1.bccp-2f, -0x1.09d5b2p-15f, 0x1.344p-2f, 0x1.3509f8p-18f});
}

// ---- exponentials -------------------------------------------------------------------------------

YOKE_HD float exp2(float x)
{
    float bounded = at_least(at_most(x, 130.0f), -152.0f);
    float shifted = bounded + 0x1.8p23f;
    float r = (bounded - (shifted - 0x1.8p23f)) * 0x1.62e43p-1f;
    int32_t n = (int32_t)(bit_cast<uint32_t>(shifted) - 0x4b400000u);
    return scale(exp_reduced(r, 1.0f, 1.0f), n);
}

// Returns (e^x - 1) / 4 for x from -20 to 89.5; the quarter does not overflow.
YOKE_HD float quarter_expm1(float x)
{
    ExpReduction e = exp_reduce(x);
    float power = power_of_two(e.n - 2);
    return expm1_reduced(e.r) * power + (power - 0.25f);
}

YOKE_HD float expm1(float x)
{
    float y = 4.0f * quarter_expm1(at_least(at_most(x, 89.5f), -20.0f));
    return select(absolute(x) < 0x1p-25f, x, y);
}

// Returns sinh x: x + x^3 p(x^2) for |x| < 1, minimax to 2^-31. Beyond, with q = (e^|x| - 1) / 4: 2 (q + q / (4 q +
// 1)).
YOKE_HD float sinh(float x)
{
    float z = x * x;
    float p = 0x1.756c1ep-19f;
    p = p * z + 0x1.a022bcp-13f;
    p = p * z + 0x1.1110ep-7f;
    p = p * z + 0x1.555556p-3f;
    float size = absolute(x);
    float q = quarter_expm1(at_most(size, 89.5f));
    float large = 2.0f * (q + q / (4.0f * q + 1.0f));
    return with_sign_of(select(size < 1.0f, size + size * (z * p), large), x);
}

// Returns cosh x, with w = e^|x| / 4: 2 (w + 1 / (16 w)).
YOKE_HD float cosh(float x)
{
    ExpReduction e = exp_reduce(at_most(absolute(x), 89.5f));
    float w = (1.0f + expm1_reduced(e.r)) * power_of_two(e.n - 2);
    return 2.0f * (w + 0.0625f / w);
}

// ---- double: the C library ----------------------------------------------------------------------

YOKE_HD double log1p(double x)
{
    return ::log1p(x);
}
YOKE_HD double log2(double x)
{
    return ::log2(x);
}
YOKE_HD double log10(double x)
{
    return ::log10(x);
}
YOKE_HD double exp2(double x)
{
    return ::exp2(x);
}
YOKE_HD double expm1(double x)
{
    return ::expm1(x);
}
YOKE_HD double sinh(double x)
{
    return ::sinh(x);
}
YOKE_HD double cosh(double x)
{
    return ::cosh(x);
}

YOKE_KERNELS_END
