// The SGD step against its definition, over several steps.
#include "kernels/common/optim.h"

#include <cmath>

#include <gtest/gtest.h>

using namespace yoke::kernels;

TEST(Optim, PlainStepFollowsTheGradient)
{
    Sgd<float> sgd{0.5f, 0, 0, false, true};
    EXPECT_EQ(sgd(1.0f, 2.0f), 0.0f);
    sgd.weight_decay = 0.25f;
    EXPECT_EQ(sgd(4.0f, 2.0f), 2.5f);
}

TEST(Optim, FirstStepDoesNotReadTheBuffer)
{
    Sgd<float> sgd{1, 0.5f, 0, false, true};
    float buffer = std::nanf("");
    EXPECT_EQ(sgd(1.0f, 3.0f, buffer), -2.0f);
    EXPECT_EQ(buffer, 3.0f);
}

// By hand, powers of two throughout: g = 1, momentum 1/2, rate 1/4; the buffer goes 1, 3/2, 7/4.
TEST(Optim, MomentumGathersAndNesterovLooksAhead)
{
    for (bool nesterov : {false, true}) {
        Sgd<double> sgd{0.25, 0.5, 0, nesterov, true};
        double p = 8, buffer = 0, expected = 8;
        for (double b : {1.0, 1.5, 1.75}) {
            p = sgd(p, 1.0, buffer);
            expected -= 0.25 * (nesterov ? 1.0 + 0.5 * b : b);
            EXPECT_EQ(buffer, b);
            EXPECT_EQ(p, expected);
            sgd.first_step = false;
        }
    }
}

TEST(Optim, DecayEntersTheBuffer)
{
    Sgd<float> sgd{1, 0.5f, 0.25f, false, false};
    float buffer = 2;
    EXPECT_EQ(sgd(4.0f, 1.0f, buffer), 1.0f);  // g = 1 + 4/4, buffer = 1 + 2
    EXPECT_EQ(buffer, 3.0f);
}

TEST(Optim, WithoutDecayAnInfiniteParameterLeavesTheGradientWhole)
{
    Sgd<float> sgd{1, 0.5f, 0, false, true};
    float buffer = 0;
    sgd(INFINITY, 1.0f, buffer);
    EXPECT_EQ(buffer, 1.0f);
}
