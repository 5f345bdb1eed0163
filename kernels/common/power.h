// pow for float and double, and powers of integers.
//
// Contract
//  * float: 2^(y log2 x) with the logarithm and its product in double, the rest in float: 1.5 units
//    in the last place at most, as tests/kernels/math_test.cpp measures. Zeros, infinities, NaN and
//    negative x come out as in the C library: anything to the power of 0 and 1 to any power are 1.
//  * double: the C library's.
//  * Integers wrap modulo 2^bits.
#pragma once

#include "kernels/common/math.h"

YOKE_KERNELS_BEGIN

// log2 of a finite float above 0, to 2^-37 of itself. x = 2^k m, m in [sqrt(1/2), sqrt(2)), and
// log2 m = s p(s^2) with s = (m - 1) / (m + 1), minimax. As a double every float is normal.
YOKE_HD double log2_wide(float x)
{
    constexpr uint64_t kSqrtHalf = 0x3fe6a09e667f3bcdu;
    uint64_t bits = bit_cast<uint64_t>((double)x) + (0x3ff0000000000000u - kSqrtHalf);
    // The exponent as a double without a 64-bit integer conversion, which AVX2 lacks.
    double k = bit_cast<double>((bits >> 52) | 0x4330000000000000u) - (0x1p52 + 1023.0);
    double m = bit_cast<double>((bits & 0x000fffffffffffffu) + kSqrtHalf);
    double s = (m - 1.0) / (m + 1.0);
    double z = s * s;
    double p = 0x1.5ce39f38ef99dp-2;
    p = p * z + 0x1.a58dceb6435b6p-2;
    p = p * z + 0x1.27777f46543ccp-1;
    p = p * z + 0x1.ec709d13c00a8p-1;
    p = p * z + 0x1.71547652bed12p+1;
    return k + s * p;
}

// 2^t for any t; NaN passes.
YOKE_HD float exp2_wide(double t)
{
    double low = select(t < -160.0, -160.0, t);  // the result is 0 there, or infinity
    double bounded = select(low > 160.0, 160.0, low);
    double shifted = bounded + 0x1.8p52;
    float r = (float)((bounded - (shifted - 0x1.8p52)) * 0x1.62e42fefa39efp-1);
    return scale(1.0f + expm1_reduced(r), (int32_t)(uint32_t)bit_cast<uint64_t>(shifted));
}

// Whether y is a whole number, and an odd one. From 2^24 on every float is even; so are infinity
// and NaN, for what pow makes of it.
struct Parity {
    bool whole, odd;
};

YOKE_HD Parity parity_of(float y)
{
    float size = absolute(y);
    float bounded = select(size < 0x1p24f, size, 0x1p24f);
    int32_t n = (int32_t)bounded;
    bool whole = (float)n == bounded;
    return {whole, whole && (n & 1) != 0};
}

YOKE_HD float pow(float x, float y)
{
    float size = absolute(x);
    double finite = select(size == 0.0f, -(double)kInfinity, log2_wide(size));
    double exponent = select(size < kInfinity, finite, (double)size);
    // 0 times infinity: 1 to any power but NaN.
    float magnitude = select(size == 1.0f && y == y, 1.0f, exp2_wide((double)y * exponent));
    Parity parity = parity_of(y);
    uint32_t sign = bit_cast<uint32_t>(x) & select(parity.odd, 0x80000000u, 0u);
    float power = bit_cast<float>(bit_cast<uint32_t>(magnitude) ^ sign);
    bool complex = x < 0.0f && x > -kInfinity && !parity.whole;
    float real = select(complex, __builtin_nanf(""), power);
    return select(y == 0.0f || x == 1.0f, 1.0f, real);
}

YOKE_HD double pow(double x, double y)
{
    return ::pow(x, y);
}

template <class U>
YOKE_HD U integer_power(U base, U exponent)
{
    static_assert(std::is_unsigned_v<U>, "signed overflow is undefined");
    U result = 1;
    for (; exponent; exponent = (U)(exponent >> 1)) {
        result = select((exponent & 1) != 0, (U)(result * base), result);
        base = (U)(base * base);
    }
    return result;
}

YOKE_KERNELS_END
