// Script scalars for a kernel: a single rounding, to nearest and even.
#include "core/ops/scalar.h"

#include <gtest/gtest.h>

#include "core/ops/args.h"

#include <cmath>
#include <limits>

namespace yoke {

namespace {

// Returns the value of a half, by definition.
double half_value(uint64_t bits)
{
    const int exponent = static_cast<int>(bits >> 10 & 0x1f),
              fraction = static_cast<int>(bits & 0x3ff);
    const double magnitude =
        exponent ? std::ldexp(1024 + fraction, exponent - 25) : std::ldexp(fraction, -24);
    return bits >> 15 & 1 ? -magnitude : magnitude;
}

uint64_t half_of(double value)
{
    return scalar_bits(arg_float(value), YOKE_F16);
}

}  // namespace

TEST(Scalar, EveryFiniteHalfIsKept)
{
    for (uint64_t bits = 0; bits < 0x10000; ++bits) {
        const bool finite = (bits & 0x7c00) != 0x7c00;
        EXPECT_EQ(finite ? half_of(half_value(bits)) : bits, bits);
    }
}

TEST(Scalar, TheMiddleOfTwoHalvesGoesToTheEvenOneAndALittleMoreDoesNot)
{
    for (uint64_t bits = 0; bits < 0x7bff; ++bits) {
        const double middle = (half_value(bits) + half_value(bits + 1)) / 2;
        EXPECT_EQ(half_of(middle), bits + (bits & 1)) << bits;
        EXPECT_EQ(half_of(std::nextafter(middle, 0.0)), bits) << bits;
        EXPECT_EQ(half_of(std::nextafter(middle, 1e9)), bits + 1) << bits;
    }
}

TEST(Scalar, WhatNoHalfHoldsBecomesInfinityOrNaN)
{
    const double infinity = std::numeric_limits<double>::infinity();
    EXPECT_EQ(half_of(65519.999), 0x7bffu);
    EXPECT_EQ(half_of(65520), 0x7c00u);
    EXPECT_EQ(half_of(-1e300), 0xfc00u);
    EXPECT_EQ(half_of(infinity), 0x7c00u);
    EXPECT_EQ(half_of(std::nan("")) & 0x7fff, 0x7e00u);
    EXPECT_EQ(scalar_bits(arg_float(infinity), YOKE_BF16), 0x7f80u);
    EXPECT_EQ(scalar_bits(arg_float(-1e300), YOKE_BF16), 0xff80u);
}

}  // namespace yoke
