// Activations, functions and bounds: values against double formulas, slopes against differences, and
// what happens at kinks, infinities and NaN.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "kernels/common/elementwise.h"

using namespace yoke::kernels;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
const float kNan = std::nanf("");

template <class F>
double slope(F f, double x)
{
    return (f(x + 1e-6) - f(x - 1e-6)) / 2e-6;
}

// Returns the largest relative error of a float functor against its double self over a range.
template <class F>
double relative_error(F f, float from, float to)
{
    double worst = 0;
    for (int i = 0; i <= 200000; ++i) {
        float x = from + (to - from) * (float)i / 200000;
        double expected = f((double)x);
        if (std::fabs(expected) < 1e-37) continue;
        worst = std::max(worst, std::fabs((double)f(x) - expected) / std::fabs(expected));
    }
    return worst;
}

}  // namespace

TEST(Activation, FloatHoldsItsDigitsOverTheWholeRange)
{
    EXPECT_LT(relative_error(Sigmoid(), -87, 100), 3e-7);
    EXPECT_LT(relative_error(Silu(), -80, 100), 3.5e-7);
    EXPECT_LT(relative_error(Softplus{1, 20}, -80, 100), 4e-7);
    EXPECT_LT(relative_error(Softplus{2, 1e9}, -30, 1000), 4e-7);
    EXPECT_LT(relative_error(Elu{1.5}, -100, 10), 3e-7);
    EXPECT_LT(relative_error(LeakyRelu{0.125}, -100, 100), 1e-7);
    EXPECT_LT(relative_error(Rsqrt(), 0.01f, 1e6f), 2e-7);
}

TEST(Activation, NothingOverflowsFarOut)
{
    for (float x : {1e4f, 3e38f, kInf}) {
        EXPECT_EQ(Sigmoid()(x), 1.0f);
        EXPECT_EQ(Sigmoid()(-x), 0.0f);
        EXPECT_EQ(Silu()(x), x);
        EXPECT_EQ(Silu()(-x), 0.0f);
        EXPECT_EQ((Softplus{1, 20}(x)), x);
        EXPECT_EQ((Softplus{1, 20}(-x)), 0.0f);
        EXPECT_EQ((Softplus{1, kInf}(x)), x);
        EXPECT_EQ(Elu{2}(-x), -2.0f);
        EXPECT_EQ(SiluBackward()(3.0f, x), 3.0f);
        EXPECT_EQ(SiluBackward()(3.0f, -x), 0.0f);
        EXPECT_EQ(SiluBackward()(3.0, -(double)x), 0.0);
        EXPECT_EQ((SoftplusBackward{1, 20}(3.0f, x)), 3.0f);
        EXPECT_EQ((SoftplusBackward{1, kInf}(3.0f, x)), 3.0f);
        EXPECT_EQ((SoftplusBackward{1, 20}(3.0f, -x)), 0.0f);
        EXPECT_EQ((EluBackward{2}(3.0f, -x)), 0.0f);
        EXPECT_EQ(ErfBackward()(3.0f, x), 0.0f);
    }
}

TEST(Activation, NanPassesThroughAll)
{
    for (float y : {Sigmoid()(kNan),
                    Silu()(kNan),
                    Softplus{1, 20}(kNan),
                    LeakyRelu{0.1}(kNan),
                    Elu{1}(kNan),
                    Abs()(kNan),
                    Sign()(kNan),
                    Floor()(kNan),
                    Ceil()(kNan),
                    Round()(kNan),
                    Sqrt()(kNan),
                    Rsqrt()(kNan),
                    Reciprocal()(kNan),
                    Clamp<float>{-1, 1}(kNan),
                    Maximum()(kNan, 1.0f),
                    Maximum()(1.0f, kNan),
                    Minimum()(kNan, 1.0f),
                    Minimum()(1.0f, kNan),
                    SiluBackward()(1.0f, kNan),
                    SoftplusBackward{1, 20}(1.0f, kNan),
                    ErfBackward()(1.0f, kNan)})
        EXPECT_TRUE(std::isnan(y));
}

TEST(Activation, SlopesAtKinksArePyTorchs)
{
    EXPECT_EQ((LeakyReluBackward{0.25}(4.0f, 0.0f)), 1.0f);
    EXPECT_EQ((EluBackward{0.5}(4.0f, 0.0f)), 2.0f);
    EXPECT_EQ(AbsBackward()(4.0f, 0.0f), 0.0f);
    EXPECT_EQ((ClampBackward<float>{-1, 1}(4.0f, 1.0f)), 4.0f);
    EXPECT_EQ((ClampBackward<float>{-1, 1}(4.0f, 1.5f)), 0.0f);
    EXPECT_EQ((ClampBackward<float>{-1, 1}(4.0f, kNan)), 0.0f);
    EXPECT_EQ(MaximumBackward()(4.0f, 1.0f, 1.0f), 2.0f);
    EXPECT_EQ(MaximumBackward()(4.0f, 1.0f, 2.0f), 0.0f);
    EXPECT_EQ(MinimumBackward()(4.0f, 1.0f, 2.0f), 4.0f);
    EXPECT_EQ(MaximumBackward()(4.0f, kNan, 2.0f), 4.0f);
    EXPECT_EQ(SqrtBackward()(1.0f, 0.0f), kInf);
    EXPECT_EQ(PowBackward()(3.0f, 0.0f, 0.0f), 0.0f);
    EXPECT_EQ(PowBackward()(3.0f, 0.0f, 1.0f), 3.0f);
    EXPECT_EQ(PowBackward()(3.0f, 0.0f, 2.0f), 0.0f);
    EXPECT_EQ(PowBackward()(3.0f, 0.0f, 0.5f), kInf);
    EXPECT_EQ(PowBackward()(1.0f, -2.0f, 3.0f), 12.0f);
    EXPECT_EQ(PowExponentBackward()(3.0f, 0.0f, 2.0f, 0.0f), 0.0f);
    EXPECT_EQ(PowExponentBackward()(3.0f, 0.0f, 0.0f, 1.0f), 0.0f);
    EXPECT_TRUE(std::isnan(PowExponentBackward()(3.0f, -2.0f, 2.0f, 4.0f)));
}

TEST(Activation, BackwardFunctorsAreTheSlopesOfTheForwardOnes)
{
    std::mt19937 random(3);
    std::uniform_real_distribution<double> uniform(-4, 4);
    for (int i = 0; i < 2000; ++i) {
        double x = uniform(random), g = uniform(random), positive = 0.1 + std::fabs(x);
        if (std::fabs(x) < 1e-5) continue;
        EXPECT_NEAR(SigmoidBackward()(g, Sigmoid()(x)), g * slope(Sigmoid(), x), 1e-6);
        EXPECT_NEAR(SiluBackward()(g, x), g * slope(Silu(), x), 1e-6);
        EXPECT_NEAR((SoftplusBackward{2, 30}(g, x)), g * slope(Softplus{2, 30}, x), 1e-6);
        EXPECT_NEAR((LeakyReluBackward{0.3}(g, x)), g * slope(LeakyRelu{0.3}, x), 1e-6);
        EXPECT_NEAR((EluBackward{0.3}(g, x)), g * slope(Elu{0.3}, x), 1e-6);
        EXPECT_NEAR(AbsBackward()(g, x), g * slope(Abs(), x), 1e-6);
        EXPECT_NEAR(SinBackward()(g, x), g * slope(Sin(), x), 1e-6);
        EXPECT_NEAR(CosBackward()(g, x), g * slope(Cos(), x), 1e-6);
        EXPECT_NEAR(ErfBackward()(g, x), g * slope(Erf(), x), 1e-6);
        EXPECT_NEAR(SqrtBackward()(g, Sqrt()(positive)), g * slope(Sqrt(), positive), 1e-6);
        EXPECT_NEAR(RsqrtBackward()(g, Rsqrt()(positive)), g * slope(Rsqrt(), positive), 1e-5);
        EXPECT_NEAR(ReciprocalBackward()(g, Reciprocal()(positive)),
                    g * slope(Reciprocal(), positive), 1e-4);
        EXPECT_NEAR(SiluBackward()((float)g, (float)x), SiluBackward()(g, x), 1e-5);
        EXPECT_NEAR(ErfBackward()((float)g, (float)x), ErfBackward()(g, x), 1e-5);
    }
}

TEST(Elementwise, IntegersHaveAbsoluteValuesSignsAndBounds)
{
    EXPECT_EQ(Abs()((int8_t)-5), 5);
    EXPECT_EQ(Abs()((int8_t)-128), -128) << "wraps";
    EXPECT_EQ(Abs()((uint8_t)200), 200);
    EXPECT_EQ(Sign()((int64_t)-9), -1);
    EXPECT_EQ(Sign()((uint8_t)9), 1);
    EXPECT_EQ((Clamp<uint8_t>{3, 9}((uint8_t)200)), 9);
    EXPECT_EQ((Clamp<int32_t>{5, 2}(3)), 2) << "the upper bound wins";
    EXPECT_EQ(Maximum()((int64_t)INT64_MIN, (int64_t)1), 1);
    EXPECT_EQ(Pow()((int8_t)-2, (int8_t)7), -128);
    EXPECT_TRUE(Maximum()(true, false) && !Minimum()(true, false));
}

TEST(Compare, NanIsUnequalToAllAndTrue)
{
    EXPECT_FALSE(Equal()(kNan, kNan) || Less()(kNan, 1.0f) || GreaterEqual()(kNan, kNan));
    EXPECT_TRUE(NotEqual()(kNan, kNan));
    EXPECT_TRUE(LogicalAnd()(kNan, 1.0f) && !LogicalNot()(kNan) && LogicalNot()(-0.0f));
    EXPECT_TRUE(LogicalXor()(2, 0) && !LogicalXor()(2, 3) && LogicalOr()(0, 4));
    EXPECT_TRUE(IsNan()(kNan) && !IsNan()(kInf) && !IsNan()(7));
    EXPECT_TRUE(IsFinite()(1.0f) && IsFinite()(7) && !IsFinite()(-kInf) && !IsFinite()(kNan));
}
