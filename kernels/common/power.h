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

// Returns log2 of a finite float above 0, to 2^-37 of itself. x = 2^k m, m in [sqrt(1/2), sqrt(2)), and log2 m = s
// p(s^2) with s = (m - 1) / (m + 1), minimax. As a double every float is normal.
YOKE_HD double log2_wide(float x)
{
    constexpr uint64_t kSqrtHalf = 0x3fe6a09e667f3bcdu;
    uint64_t bits = bit_cast<uint64_t>((double)x) + (0x3ff0000000000000u - kSqrtHalf);
    // The exponent as a double without a 64-bit integer conversion, missing in AVX2.
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

// Returns 2^t for any t. NaN gives NaN.
YOKE_HD float exp2_wide(double t)
{
    double low = select(t < -160.0, -160.0, t);  // the result is 0 there, or infinity
    double bounded = select(low > 160.0, 160.0, low);
    double shifted = bounded + 0x1.8p52;
    float r = (float)((bounded - (shifted - 0x1.8p52)) * 0x1.62e42fefa39efp-1);
    return scale(1.0f + expm1_reduced(r), (int32_t)(uint32_t)bit_cast<uint64_t>(shifted));
}

// Parity of y: whether y is a whole number, and the sign bit if y is odd. Below 2^23, adding this number leaves the
// nearest whole number in the low bits. From 2^23 on every float is whole, from 2^24 on even.
struct Parity {
    bool whole;
    uint32_t odd;
};

YOKE_HD Parity parity_of(float y)
{
    float size = absolute(y);
    float shifted = size + 0x1p23f;
    float nearest = select(size < 0x1p23f, shifted - 0x1p23f, size);
    float holder = select(size < 0x1p23f, shifted, select(size < 0x1p24f, size, 0.0f));
    uint32_t whole = (uint32_t)(nearest == size);
    return {nearest == size, (bit_cast<uint32_t>(holder) & whole) << 31};
}

// Returns x^y. The cases are selections in sequence, without &&: an && would leave a branch in the loop.
YOKE_HD float pow(float x, float y)
{
    float size = absolute(x);
    double finite = select(size == 0.0f, -(double)kInfinity, log2_wide(size));
    double exponent = select(size < kInfinity, finite, (double)size);
    float magnitude = exp2_wide((double)y * exponent);
    Parity parity = parity_of(y);
    float power =
        bit_cast<float>(bit_cast<uint32_t>(magnitude) ^ (bit_cast<uint32_t>(x) & parity.odd));
    // Roots of negative numbers are complex, of -infinity infinite.
    float negative = select(x > -kInfinity, __builtin_nanf(""), power);
    float root = select(x < 0.0f, negative, power);
    float real = select(parity.whole, power, root);
    // (-1)^infinity is 1, although its logarithm is 0 times infinity. x^0 and 1^y are 1, too.
    float unit = select(absolute(y) == kInfinity, 1.0f, real);
    float result = select(x == -1.0f, unit, real);
    float known = select(y == 0.0f, 1.0f, select(x == 1.0f, 1.0f, result));
    // If both arguments are NaN, returns x. An instruction keeps the NaN of its first operand, and compilers may swap
    // operands.
    return select(((int)(x != x) & (int)(y != y)) != 0, x, known);
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
