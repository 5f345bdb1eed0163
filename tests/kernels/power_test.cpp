// pow, rounding, expm1 and log1p against the C library in double, their special values against the C
// library in float, and powers of integers.
#include "kernels/common/power.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace kernels = yoke::kernels;
using kernels::bit_cast;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
const float kNan = std::nanf("");

// Errors in units in the last place of the true value; below the normal numbers it stays the same.
double error_in_units(float got, double expected)
{
    if (std::fabs(expected) > 0x1.ffffffp127)
        return std::isinf(got) && (got > 0) == (expected > 0) ? 0 : 1e9;
    if (std::isnan(got) || std::isinf(got)) return 1e9;
    int exponent = std::max(expected == 0 ? -1000 : std::ilogb(expected), -126);
    return std::fabs((double)got - expected) / std::ldexp(1.0, exponent - 23);
}

bool same(float a, float b)
{
    return (a != a && b != b) || bit_cast<uint32_t>(a) == bit_cast<uint32_t>(b);
}

const std::vector<float> kSpecial = {
    0.0f,  -0.0f, 1.0f,    -1.0f,   kInf,    -kInf,  kNan,    0.5f,           -0.5f,      2.0f,
    -2.0f, 3.0f,  -3.0f,   1e-45f,  -1e-45f, 2.5f,   -2.5f,   3.4e38f,        -3.4e38f,   1.0f / 3,
    8.0f,  -8.0f, 0x1p23f, 0x1p24f, 0x1p25f, 127.0f, -126.0f, 0x1.fffffep23f, 8388607.5f, -1e10f};

// The worst of many pairs whose power neither over- nor underflows by far.
template <class Draw>
double worst_power(Draw draw)
{
    std::mt19937_64 random(11);
    double worst = 0;
    for (int i = 0; i < 2000000; ++i) {
        auto [x, y] = draw(random);
        double expected = std::pow((double)x, (double)y);
        if (!(std::fabs(expected) > 1e-46)) continue;
        worst = std::max(worst, error_in_units(kernels::pow(x, y), expected));
    }
    return worst;
}

float uniform(std::mt19937_64 &random, float low, float high)
{
    return std::uniform_real_distribution<float>(low, high)(random);
}

}  // namespace

TEST(Power, StaysWithinItsStatedError)
{
    struct Pair {
        float x, y;
    };
    double all = worst_power([](std::mt19937_64 &r) {  // any base; a power that fills the range
        float x = std::exp2(uniform(r, -149, 128));
        return Pair{x, uniform(r, -150, 150) / (std::fabs(std::log2(x)) + 0.01f)};
    });
    double near_one = worst_power([](std::mt19937_64 &r) {
        float x = 1 + uniform(r, -1e-3f, 1e-3f);
        return Pair{x, uniform(r, -8e4f, 8e4f)};
    });
    double common = worst_power([](std::mt19937_64 &r) {
        return Pair{uniform(r, 0, 100), uniform(r, -10, 10)};
    });
    double whole = worst_power([](std::mt19937_64 &r) {
        return Pair{uniform(r, -50, 50), std::round(uniform(r, -9, 9))};
    });
    printf("    pow %.3f, near one %.3f, common %.3f, whole exponents %.3f units\n", all, near_one,
           common, whole);
    for (double error : {all, near_one, common, whole}) {
        EXPECT_LE(error, 1.5);
        EXPECT_GT(error, 0.4) << "the measurement cannot be right";
    }
}

TEST(Power, SpecialValuesAreThoseOfTheCLibrary)
{
    for (float x : kSpecial)
        for (float y : kSpecial) {
            float expected = std::pow(x, y), got = kernels::pow(x, y);
            bool exact = !std::isfinite(expected) || expected == 0 || std::fabs(expected) == 1;
            if (exact && std::fabs(std::pow((double)x, (double)y)) != 1.0)
                EXPECT_TRUE(same(got, expected)) << x << "^" << y << " is " << got;
            else
                EXPECT_LE(error_in_units(got, std::pow((double)x, (double)y)), 1.5)
                    << x << " " << y;
        }
    EXPECT_EQ(kernels::pow(0.0f, 0.0f), 1.0f);
    EXPECT_EQ(kernels::pow(-2.0f, 3.0f), -8.0f);
    EXPECT_TRUE(std::isnan(kernels::pow(-8.0f, 1.0f / 3)));
    const float nan = std::nanf("1"), other = -std::nanf("2");
    EXPECT_EQ(kernels::bit_cast<uint32_t>(kernels::pow(nan, other)),
              kernels::bit_cast<uint32_t>(nan));
    EXPECT_EQ(kernels::bit_cast<uint32_t>(kernels::pow(other, nan)),
              kernels::bit_cast<uint32_t>(other));
}

TEST(Power, OfIntegersWraps)
{
    EXPECT_EQ(kernels::integer_power<uint64_t>(3, 40), 12157665459056928801u);
    EXPECT_EQ(kernels::integer_power<uint64_t>(3, 41), 12157665459056928801u * 3);
    EXPECT_EQ((int8_t)kernels::integer_power<uint8_t>((uint8_t)-3, 3), -27);
    EXPECT_EQ(kernels::integer_power<uint8_t>(2, 8), 0);
    EXPECT_EQ(kernels::integer_power<uint32_t>(0, 0), 1u);
    EXPECT_EQ((int64_t)kernels::integer_power<uint64_t>((uint64_t)-1, INT64_MAX), -1);
}

TEST(Rounding, IsThatOfTheCLibraryForEveryKindOfFloat)
{
    std::vector<float> values = kSpecial;
    for (uint64_t bits = 0; bits < (1ull << 32); bits += 104729)
        values.push_back(bit_cast<float>((uint32_t)bits));
    for (float x = -5; x <= 5; x += 0.25f) values.push_back(x);
    for (float x : values) {
        ASSERT_TRUE(same(kernels::floor(x), std::floor(x))) << x;
        ASSERT_TRUE(same(kernels::ceil(x), std::ceil(x))) << x;
        ASSERT_TRUE(same(kernels::round_to_even(x), std::nearbyint(x))) << x;
        ASSERT_TRUE(same(kernels::sqrt(x), std::sqrt(x))) << x;
    }
}

TEST(Math, Expm1AndLog1pKeepTheirDigitsNearZero)
{
    double expm1 = 0, log1p = 0;
    for (uint32_t bits = 0; bits <= bit_cast<uint32_t>(1.0f); bits += 331) {
        float u = bit_cast<float>(bits);
        log1p = std::max(log1p, error_in_units(kernels::log1p_of_unit(u), std::log1p((double)u)));
    }
    for (uint32_t bits = 0; bits <= bit_cast<uint32_t>(200.0f); bits += 331) {
        float x = -bit_cast<float>(bits);
        expm1 =
            std::max(expm1, error_in_units(kernels::expm1_below_zero(x), std::expm1((double)x)));
    }
    printf("    expm1 %.3f, log1p %.3f units\n", expm1, log1p);
    EXPECT_LE(expm1, 1.5);
    EXPECT_LE(log1p, 2);
    EXPECT_GT(std::min(expm1, log1p), 0.4);
    EXPECT_EQ(kernels::expm1_below_zero(-kInf), -1.0f);
    EXPECT_TRUE(std::isnan(kernels::expm1_below_zero(kNan)));
    EXPECT_TRUE(std::isnan(kernels::log1p_of_unit(kNan)));
    EXPECT_EQ(kernels::exp_of_minus_square(kInf), 0.0f);
    EXPECT_EQ(kernels::exp_of_minus_square(0.0f), 1.0f);
}
