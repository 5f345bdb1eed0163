// The optimizers' steps and the arithmetic of loss scaling against their definitions.
#include "kernels/common/optim.h"

#include <cmath>

#include <gtest/gtest.h>

using namespace yoke::kernels;

TEST(Optim, PlainStepFollowsTheGradient)
{
    Sgd<float> sgd{0.5f, 0, 0, false};
    EXPECT_EQ(sgd(1.0f, 2.0f), 0.0f);
    sgd.weight_decay = 0.25f;
    EXPECT_EQ(sgd(4.0f, 2.0f), 2.5f);
}

TEST(Optim, ABufferOfZerosTakesTheFirstGradientAsItIs)
{
    Sgd<float> sgd{1, 0.9f, 0, false};
    for (float g : {3.0f, 0x1.fffffep-127f, -1.1f, INFINITY}) {
        float buffer = 0;
        sgd(1.0f, g, buffer);
        EXPECT_EQ(buffer, g);
    }
}

// By hand, powers of two throughout: g = 1, momentum 1/2, rate 1/4; the buffer goes 1, 3/2, 7/4.
TEST(Optim, MomentumGathersAndNesterovLooksAhead)
{
    for (bool nesterov : {false, true}) {
        Sgd<double> sgd{0.25, 0.5, 0, nesterov};
        double p = 8, buffer = 0, expected = 8;
        for (double b : {1.0, 1.5, 1.75}) {
            p = sgd(p, 1.0, buffer);
            expected -= 0.25 * (nesterov ? 1.0 + 0.5 * b : b);
            EXPECT_EQ(buffer, b);
            EXPECT_EQ(p, expected);
        }
    }
}

TEST(Optim, DecayEntersTheBuffer)
{
    Sgd<float> sgd{1, 0.5f, 0.25f, false};
    float buffer = 2;
    EXPECT_EQ(sgd(4.0f, 1.0f, buffer), 1.0f);  // g = 1 + 4/4, buffer = 1 + 2
    EXPECT_EQ(buffer, 3.0f);
}

TEST(Optim, WithoutDecayAnInfiniteParameterLeavesTheGradientWhole)
{
    Sgd<float> sgd{1, 0.5f, 0, false};
    float buffer = 0;
    sgd(INFINITY, 1.0f, buffer);
    EXPECT_EQ(buffer, 1.0f);
    Adam<float> adam = adam_step<float>({0.1, 0.5, 0.5, 1e-8, 0, false}, 1);
    float first = 0, second = 0;
    adam(INFINITY, 1.0f, first, second);
    EXPECT_EQ(first, 0.5f);
}

// The definition, word for word, in long double.
static void expect_adam(bool decoupled)
{
    const AdamOptions o{0.01, 0.9, 0.999, 1e-8, 0.1, decoupled};
    float p = 1.5f, first = 0, second = 0;
    long double want = 1.5L, m = 0, v = 0;
    for (int t = 1; t <= 20; t++) {
        float g = std::sin(0.7f * (float)t) * 3;
        p = adam_step<float>(o, t)(p, g, first, second);
        long double d = decoupled ? (long double)g : (long double)g + 0.1L * want;
        m += (1 - 0.9L) * (d - m);
        v = 0.999L * v + (1 - 0.999L) * d * d;
        long double mhat = m / (1 - std::pow(0.9L, t)), vhat = v / (1 - std::pow(0.999L, t));
        if (decoupled) want *= 1 - 0.01L * 0.1L;
        want -= 0.01L * mhat / (std::sqrt(vhat) + 1e-8L);
        EXPECT_NEAR(p, (double)want, 2e-6) << t;
    }
}

TEST(Optim, AdamFollowsItsDefinition)
{
    expect_adam(false);
    expect_adam(true);
}

TEST(Optim, TheFirstStepOfAdamIsAsLongAsTheLearningRate)
{
    Adam<double> adam = adam_step<double>({0.25, 0.9, 0.999, 0, 0, false}, 1);
    for (double g : {1e-3, -5.0, 1e6}) {
        double first = 0, second = 0;
        EXPECT_NEAR(adam(1.0, g, first, second), g > 0 ? 0.75 : 1.25, 1e-12);
    }
}

TEST(Scaling, InfinitiesAndNanAreNotFinite)
{
    for (double x : {0.0, -1.0, 1e-45, 3.4e38}) EXPECT_FALSE(not_finite((float)x)) << x;
    for (double x : {0.0, 5e-324, -1.7e308}) EXPECT_FALSE(not_finite(x)) << x;
    for (double x : {(double)INFINITY, -(double)INFINITY, std::nan("")}) {
        EXPECT_TRUE(not_finite((float)x));
        EXPECT_TRUE(not_finite(x));
    }
}

TEST(Scaling, TheInverseIsRoundedOnce)
{
    EXPECT_EQ(unscale_factor(65536.0f), 0x1p-16f);
    EXPECT_EQ(unscale_factor(3.0f), (float)(1.0 / 3.0));
    EXPECT_EQ(unscale_factor(0x1p-127f), 0x1p127f);
}

TEST(Scaling, TheScaleShrinksWithOverflowAndGrowsAfterTheInterval)
{
    const ScaleRule rule{2, 0.5, 3, 0x1p-126f};
    float scale = 8;
    int32_t tracker = 0;
    auto next = [&](bool overflowed) { rule(scale, tracker, overflowed); };
    next(false), next(false);
    EXPECT_EQ(scale, 8);
    EXPECT_EQ(tracker, 2);
    next(false);
    EXPECT_EQ(scale, 16);
    EXPECT_EQ(tracker, 0);
    next(false), next(true);
    EXPECT_EQ(scale, 8);
    EXPECT_EQ(tracker, 0);
}

TEST(Scaling, GrowthStopsBeforeInfinityAndShrinkingAtTheSmallestScale)
{
    const ScaleRule rule{2, 0.5, 1, 0x1p-126f};
    float scale = 0x1p127f;
    int32_t tracker = 0;
    rule(scale, tracker, false);
    EXPECT_EQ(scale, 0x1p127f);
    scale = 0x1p-125f;
    for (int step = 0; step < 2; step++) {
        rule(scale, tracker, true);
        EXPECT_EQ(scale, 0x1p-126f);
    }
}

TEST(Clipping, TheFactorIsAtMostOneAndKeepsNan)
{
    EXPECT_EQ(clip_factor(0.5, 1), 1);
    EXPECT_NEAR(clip_factor(4, 1), 0.25, 1e-6);
    EXPECT_EQ(clip_factor(INFINITY, 1), 0);
    EXPECT_TRUE(std::isnan(clip_factor(std::nan(""), 1)));
}
