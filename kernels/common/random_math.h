// log, and sin and cos of a fraction of a turn, for random transforms: the same bits on every compiler, ISA and
// device.
//
// Contract
//  * The functions use only IEEE additions, multiplications, divisions and comparisons, in the source's order. A file
//    calling them is compiled with -ffp-contract=off (nvcc: -fmad=false): a fused multiply-add rounds once, this code
//    twice. tests/static/check_kernel_bits.py compares the hashes of several compilers and ISA levels.
//  * Arguments are in the range of random transforms: log takes normal numbers above 0, sincos_turns takes [0, 1).
//  * Largest errors, bounded in tests/kernels/math_test.cpp (units in the last place): log 1 in both precisions; sine
//    and cosine 2. At whole quarter turns, where the zeros are, both are exact.
#pragma once

#include "kernels/common/math.h"

YOKE_KERNELS_BEGIN

YOKE_HD float random_log(float x)
{
    return log(x);
}

// Returns log x. x = 2^k m, m in [sqrt(1/2), sqrt(2)), f = m - 1, s = f / (2 + f): log(1 + f) = f - f^2/2 + s (f^2/2
// + z p(z)), z = s^2.
YOKE_HD double random_log(double x)
{
    constexpr uint64_t kSqrtHalf = 0x3fe6a09e667f3bcdu;
    uint64_t bits = bit_cast<uint64_t>(x) + (0x3ff0000000000000u - kSqrtHalf);
    // The exponent as a double without a 64-bit integer conversion, missing in AVX2.
    double k = bit_cast<double>((bits >> 52) | 0x4330000000000000u) - (0x1p52 + 1023.0);
    double f = bit_cast<double>((bits & 0x000fffffffffffffu) + kSqrtHalf) - 1.0;
    double s = f / (2.0 + f);
    double z = s * s;
    double p = 0x1.2f06346215846p-3;
    p = p * z + 0x1.39a1a6f78cd2ap-3;
    p = p * z + 0x1.74663fa24885fp-3;
    p = p * z + 0x1.c71c5206067bap-3;
    p = p * z + 0x1.24924941f4fe6p-2;
    p = p * z + 0x1.999999997fd77p-2;
    p = p * z + 0x1.5555555555592p-1;
    double half_square = 0.5 * f * f;
    // ln 2 in two parts; k has 11 bits and the first part 42, so their product is exact.
    double tail = s * (half_square + z * p) + k * 0x1.ef35793c7673p-45;
    return k * 0x1.62e42fefa38p-1 + (f - (half_square - tail));
}

template <class T>
struct SinCos {
    T sin;
    T cos;
};

// Returns sin and cos of an angle from s and c of the reduced angle. Quadrant q swaps both and sets their signs.
YOKE_HD SinCos<float> place_in_quadrant(float s, float c, uint32_t q)
{
    bool swap = (q & 1u) != 0u;
    uint32_t y = bit_cast<uint32_t>(select(swap, c, s)) ^ ((q & 2u) << 30);
    uint32_t x = bit_cast<uint32_t>(select(swap, s, c)) ^ (((q + 1u) & 2u) << 30);
    return {bit_cast<float>(y), bit_cast<float>(x)};
}

YOKE_HD SinCos<double> place_in_quadrant(double s, double c, uint64_t q)
{
    // Bits instead of conditions, of which gcc makes a branch.
    uint64_t y = bit_cast<uint64_t>(s), x = bit_cast<uint64_t>(c);
    const uint64_t swapped = (x ^ y) & (0 - (q & 1u));
    y ^= swapped ^ ((q & 2u) << 62);
    x ^= swapped ^ (((q + 1u) & 2u) << 62);
    return {bit_cast<double>(y), bit_cast<double>(x)};
}

// Returns sin and cos of 2 pi u. The reduction is exact: u less the nearest quarter, |r| <= 1/8.
YOKE_HD SinCos<float> sincos_turns(float u)
{
    float shifted = 4.0f * u + 0x1.8p23f;
    float r = u - (shifted - 0x1.8p23f) * 0.25f;
    float z = r * r;
    float s = 0x1.4bc256p+5f;
    s = s * z - 0x1.32ca86p+6f;
    s = s * z + 0x1.466bbap+6f;
    s = s * z - 0x1.4abbcep+5f;
    // 2 pi in two parts: its first rounding alone would cost half a unit.
    s = r * 0x1.921fb6p+2f + r * (s * z - 0x1.777a5cp-23f);
    float c = -0x1.a0f37ap+4f;
    c = c * z + 0x1.e1e7f6p+5f;
    c = c * z - 0x1.55d3bap+6f;
    c = c * z + 0x1.03c1fp+6f;
    c = c * z - 0x1.3bd3ccp+4f;
    return place_in_quadrant(s, c * z + 1.0f, bit_cast<uint32_t>(shifted));
}

YOKE_HD SinCos<double> sincos_turns(double u)
{
    double shifted = 4.0 * u + 0x1.8p52;
    double r = (u - (shifted - 0x1.8p52) * 0.25);
    double y = r * 0x1.921fb54442d18p+2 + r * 0x1.1a62633145c07p-52;
    double z = y * y;
    double s = 0x1.5d932fc4c1907p-33;
    s = s * z - 0x1.ae5e66effb74cp-26;
    s = s * z + 0x1.71de3578bcf92p-19;
    s = s * z - 0x1.a01a019c12f02p-13;
    s = s * z + 0x1.111111110f886p-7;
    s = s * z - 0x1.5555555555549p-3;
    double c = -0x1.8faeb4b16adf7p-37;
    c = c * z + 0x1.1ee9ec189718bp-29;
    c = c * z - 0x1.27e4f80a38938p-22;
    c = c * z + 0x1.a01a019cb2270p-16;
    c = c * z - 0x1.6c16c16c15182p-10;
    c = c * z + 0x1.555555555554cp-5;
    double cosine = 1.0 - (0.5 * z - z * z * c);
    return place_in_quadrant(y + y * (s * z), cosine, bit_cast<uint64_t>(shifted));
}

YOKE_KERNELS_END
