// sin and cos, for float and double.
//
// Contract: that of math.h. Largest errors in units in the last place: sin 0.6, cos 0.6.
#pragma once

#include "kernels/common/math.h"

YOKE_KERNELS_BEGIN

// x = q pi/2 + r, |r| <= pi/4, in double: for |x| < 2^25 by two parts of pi/2, of which q times the
// first is exact; for the rest by multiplying x with the 128 bits of 2/pi that matter to it.
struct QuarterTurns {
    uint32_t q;
    double r;
};

YOKE_HD QuarterTurns reduce_large(float x)
{
    constexpr uint64_t kWords[4] = {0xa2f9836e4e441529u, 0xfc2757d1f534ddc0u, 0xdb6295993c439041u,
                                    0xfe5163abdebbc561u};  // 2/pi, after the point
    uint32_t bits = bit_cast<uint32_t>(x);
    uint64_t mantissa = (bits & 0x007fffffu) | 0x00800000u;
    // Bits of weight 4 and more in mantissa * 2^e * 2/pi are whole turns: start at bit e - 2 after
    // the point.
    uint32_t start = ((bits >> 23) & 0xffu) - 152u;
    bool far = start >= 64u;
    uint64_t a = select(far, kWords[1], kWords[0]), b = select(far, kWords[2], kWords[1]);
    uint64_t c = select(far, kWords[3], kWords[2]);
    uint64_t shift = start & 63u;
    uint64_t high = (a << shift) | ((b >> 1) >> (63u - shift));
    uint64_t low = (b << shift) | ((c >> 1) >> (63u - shift));
    uint64_t turns = mantissa * high + ((mantissa * (low >> 32)) >> 32);  // 2^62 is a quarter turn
    uint64_t q = (turns + ((uint64_t)1 << 61)) >> 62;
    uint64_t rest = turns - (q << 62) + ((uint64_t)1 << 62);  // kept positive by one quarter turn
    double upper = bit_cast<double>((rest >> 32) | 0x4330000000000000u) - (0x1p52 + 0x1p30);
    double lower = bit_cast<double>((rest & 0xffffffffu) | 0x4330000000000000u) - 0x1p52;
    return {(uint32_t)q, (upper * 0x1p-30 + lower * 0x1p-62) * 0x1.921fb54442d18p+0};
}

YOKE_HD QuarterTurns reduce_quarter_turns(float x)
{
    double a = (double)absolute(x);
    double shifted = a * 0x1.45f306dc9c883p-1 + 0x1.8p52;
    double n = shifted - 0x1.8p52;
    double r = (a - n * 0x1.921fb54000000p+0) - n * 0x1.10b4611a62633p-30;
    QuarterTurns large = reduce_large(x);
    bool near = a < 0x1p25;
    uint32_t q = (uint32_t)bit_cast<uint64_t>(shifted);
    double beyond = select(a < (double)kInfinity, large.r, a - a);  // infinity and NaN give NaN
    return {select(near, q, large.q), select(near, r, beyond)};
}

// Returns sin(r + turn pi/2), computed in double and rounded once at the end.
YOKE_HD float sin_of_quarter_turns(double r, uint32_t turn)
{
    double z = r * r;
    double s = ((-0x1.994e7f47d5b33p-13 * z + 0x1.11075fd20113ap-7) * z - 0x1.55554598bb513p-3) * z;
    double c =
        ((0x1.9a024fc944ae5p-16 * z - 0x1.6c0c8becdbfa7p-10) * z + 0x1.55554ab538841p-5) * z - 0.5;
    float y = (float)select((turn & 1u) != 0u, c * z + 1.0, s * r + r);
    return bit_cast<float>(bit_cast<uint32_t>(y) ^ ((turn & 2u) << 30));
}

YOKE_HD float sin(float x)
{
    QuarterTurns t = reduce_quarter_turns(x);
    uint32_t sign = bit_cast<uint32_t>(x) & 0x80000000u;
    return bit_cast<float>(bit_cast<uint32_t>(sin_of_quarter_turns(t.r, t.q)) ^ sign);
}

YOKE_HD float cos(float x)
{
    QuarterTurns t = reduce_quarter_turns(x);
    return sin_of_quarter_turns(t.r, t.q + 1u);
}

YOKE_HD double sin(double x)
{
    return ::sin(x);
}
YOKE_HD double cos(double x)
{
    return ::cos(x);
}

YOKE_KERNELS_END
