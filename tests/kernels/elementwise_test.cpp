// Elementwise functors: values and derivatives against double formulas, wrapping, NaN and
// infinities.
#include "kernels/common/elementwise.h"

#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

using namespace yoke::kernels;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
const float kNan = std::nanf("");

double gelu(double x)
{
    return 0.5 * x * std::erfc(-x * M_SQRT1_2);
}

double gelu_tanh(double x)
{
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

// Returns the central difference of a double function.
template <class F>
double slope(F f, double x)
{
    return (f(x + 1e-6) - f(x - 1e-6)) / 2e-6;
}

}  // namespace

TEST(Elementwise, IntegersWrap)
{
    EXPECT_EQ(Add()(INT64_MAX, (int64_t)1), INT64_MIN);
    EXPECT_EQ(Sub()((int32_t)INT32_MIN, (int32_t)1), INT32_MAX);
    EXPECT_EQ(Mul()((int32_t)65536, (int32_t)65536), 0);
    EXPECT_EQ(Mul()((int8_t)100, (int8_t)3), (int8_t)44);
    EXPECT_EQ(Sub()((uint8_t)3, (uint8_t)5), 254);
    EXPECT_EQ(Neg()(INT64_MIN), INT64_MIN);
    EXPECT_EQ(Neg()((uint8_t)1), 255);
    EXPECT_EQ(Mul()((int64_t)-7, (int64_t)6), -42);
}

TEST(Elementwise, BoolAddsAsOrAndMultipliesAsAnd)
{
    for (bool a : {false, true}) {
        for (bool b : {false, true}) {
            // Any byte but 0 is true.
            uint8_t x = load(bool8{(uint8_t)(a ? 254 : 0)}), y = load(bool8{(uint8_t)(b ? 2 : 0)});
            EXPECT_EQ(store<bool8>(Add()(x, y)).byte, a || b);
            EXPECT_EQ(store<bool8>(Mul()(x, y)).byte, a && b);
            EXPECT_EQ(store<bool8>(Sub()(x, y)).byte, a != b);
        }
    }
}

TEST(Elementwise, FloatArithmeticIsThatOfTheLanguage)
{
    EXPECT_EQ(Add()(1.5f, 2.25f), 3.75f);
    EXPECT_EQ(Sub()(1.5, 2.25), -0.75);
    EXPECT_EQ(Mul()(1.5f, -2.0f), -3.0f);
    EXPECT_EQ(Div()(1.0f, 0.0f), kInf);
    EXPECT_EQ(Div()(1.0, 4.0), 0.25);
    EXPECT_TRUE(std::signbit(Neg()(0.0f)));
    // A round trip of load and store rounds once, to f16.
    EXPECT_EQ(store<f16>(Add()(load(f16{0x3c00}), load(f16{0x1000}))).bits, 0x3c00);
}

TEST(Elementwise, ReluKeepsNanAndItsGradientIsZeroAtZero)
{
    EXPECT_EQ(Relu()(-2.0f), 0.0f);
    EXPECT_EQ(Relu()(3.0), 3.0);
    EXPECT_EQ(Relu()((int8_t)-4), 0);
    EXPECT_EQ(Relu()((uint8_t)200), 200);
    EXPECT_TRUE(std::isnan(Relu()(kNan)));
    EXPECT_EQ(ReluBackward()(5.0f, 0.0f), 0.0f);
    EXPECT_EQ(ReluBackward()(5.0f, 2.0f), 5.0f);
    EXPECT_EQ(ReluBackward()(5.0f, kNan), 5.0f);
}

TEST(Elementwise, GeluKeepsItsDigitsFarIntoTheNegative)
{
    for (float x = -12; x < 12; x += 0.00917f) {
        double expected = gelu((double)x);
        EXPECT_NEAR(Gelu()(x), expected, 1e-6 * std::fabs(expected) + 1e-37) << x;
        EXPECT_NEAR(GeluTanh()(x), gelu_tanh((double)x), 4e-7 * (1 + std::fabs(x))) << x;
        EXPECT_NEAR(Gelu()((double)x), expected, 1e-14 * (1 + std::fabs(x)));
        EXPECT_NEAR(GeluTanh()((double)x), gelu_tanh((double)x), 1e-14 * (1 + std::fabs(x)));
    }
}

TEST(Elementwise, GeluAtInfinityIsItsLimit)
{
    EXPECT_EQ(Gelu()(kInf), kInf);
    EXPECT_EQ(Gelu()(-kInf), 0.0f);
    EXPECT_EQ(GeluTanh()(kInf), kInf);
    EXPECT_EQ(GeluTanh()(-kInf), 0.0f);
    EXPECT_EQ(GeluTanh()(3e38f), 3e38f);
    for (float x : {kInf, 1e30f}) {
        EXPECT_EQ(GeluBackward()(2.0f, x), 2.0f);
        EXPECT_EQ(GeluTanhBackward()(2.0f, x), 2.0f);
        EXPECT_EQ(GeluBackward()(2.0f, -x), 0.0f);
        EXPECT_EQ(GeluTanhBackward()(2.0f, -x), 0.0f);
        EXPECT_EQ(GeluBackward()(2.0, -(double)x), 0.0);
        EXPECT_EQ(GeluTanhBackward()(2.0, -(double)x), 0.0);
    }
    EXPECT_TRUE(std::isnan(Gelu()(kNan)) && std::isnan(GeluTanh()(kNan)));
    EXPECT_TRUE(std::isnan(GeluBackward()(1.0f, kNan)) &&
                std::isnan(GeluTanhBackward()(1.0f, kNan)));
}

TEST(Elementwise, BackwardFunctorsAreTheSlopesOfTheForwardOnes)
{
    std::mt19937 random(3);
    std::uniform_real_distribution<double> uniform(-4, 4);
    for (int i = 0; i < 2000; ++i) {
        double x = uniform(random), g = uniform(random), positive = 0.1 + std::fabs(x);
        EXPECT_NEAR(ExpBackward()(g, Exp()(x)), g * slope([](double v) { return Exp()(v); }, x),
                    1e-6);
        EXPECT_NEAR(LogBackward()(g, positive),
                    g * slope([](double v) { return Log()(v); }, positive), 1e-6);
        EXPECT_NEAR(TanhBackward()(g, Tanh()(x)), g * slope([](double v) { return Tanh()(v); }, x),
                    1e-6);
        EXPECT_NEAR(GeluBackward()(g, x), g * slope(gelu, x), 1e-6);
        EXPECT_NEAR(GeluTanhBackward()(g, x), g * slope(gelu_tanh, x), 1e-6);
        EXPECT_NEAR(GeluBackward()((float)g, (float)x), GeluBackward()(g, x), 1e-5);
        EXPECT_NEAR(GeluTanhBackward()((float)g, (float)x), GeluTanhBackward()(g, x), 1e-5);
    }
}
