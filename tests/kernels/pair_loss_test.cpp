// Losses of two numbers: values against the C library's, slopes against differences, limits.
#include "kernels/common/pair_loss.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

using namespace yoke::kernels;

namespace {

template <class Loss>
void expect_slopes(const Loss &loss, double x, double t)
{
    const double step = 1e-6, factor = kSlopeFactor<Loss>;
    EXPECT_NEAR(factor * loss.of_x(x, t),
                (loss.value(x + step, t) - loss.value(x - step, t)) / (2 * step), 1e-7)
        << x << " " << t;
    EXPECT_NEAR(factor * loss.of_target(x, t),
                (loss.value(x, t + step) - loss.value(x, t - step)) / (2 * step), 1e-7)
        << x << " " << t;
}

}  // namespace

TEST(PairLoss, TheSlopesAreThoseOfTheValues)
{
    for (double x : {0.2, 0.45, 0.9}) {
        for (double t : {0.1, 0.55, 0.8}) {
            expect_slopes(SquaredError(), x, t);
            expect_slopes(AbsoluteError(), x, t);
            expect_slopes(SmoothL1{0.3}, x, t);
            expect_slopes(SmoothL1{0.0}, x, t);
            expect_slopes(LogitCrossEntropy(), x, t);
            expect_slopes(LogitCrossEntropy(), -7 * x, t);
            expect_slopes(WeightedSoftplus(), x, t);
            expect_slopes(WeightedLoss(), x, t);
            expect_slopes(BinaryCrossEntropy(), x, t);
            expect_slopes(KlDivergence(), -x, t);
            expect_slopes(KlDivergenceOfLogs(), -x, -t);
        }
    }
}

TEST(PairLoss, TheLogarithmOfOnePlusKeepsItsRelativeAccuracy)
{
    for (float y : {1e-30f, 1e-9f, 1e-7f, 3e-4f, 0.1f, 1.0f, -1e-8f, -0.3f, -0.999f}) {
        double exact = std::log1p((double)y);
        EXPECT_NEAR(log_one_plus(y), exact, 3e-7 * std::fabs(exact)) << y;
    }
    EXPECT_EQ(log_one_plus(0.0f), 0.0f);
    EXPECT_EQ(log_one_plus(-1.0f), -std::numeric_limits<float>::infinity());
}

TEST(PairLoss, LogitsOfAnySizeHaveFiniteLosses)
{
    LogitCrossEntropy loss;
    for (float x : {-3e38f, -100.0f, -1.0f, 0.0f, 1.0f, 15.0f, 3e38f}) {
        double exact = std::fmax(x, 0.0) + std::log1p(std::exp(-std::fabs((double)x)));
        EXPECT_NEAR(loss.value(x, 0.0f), exact, 3e-7 * exact + 4e-45);
        EXPECT_NEAR(loss.value(-x, 1.0f), exact, 3e-7 * exact + 4e-45);
    }
}

TEST(PairLoss, LimitsHaveTheirValuesAndNanPasses)
{
    const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
    EXPECT_EQ(BinaryCrossEntropy().value(0.0f, 1.0f), 100.0f);
    EXPECT_EQ(BinaryCrossEntropy().value(1.0f, 1.0f), 0.0f);
    EXPECT_EQ(KlDivergence().value(-inf, 0.0f), 0.0f);
    EXPECT_EQ(KlDivergenceOfLogs().value(-1.0f, -inf), 0.0f);
    EXPECT_TRUE(std::isnan(KlDivergence().value(-1.0f, -0.5f)));
    EXPECT_EQ(AbsoluteError().of_x(1.0f, 1.0f), 0.0f);
    EXPECT_TRUE(std::isnan(AbsoluteError().of_x(nan, 1.0f)));
    EXPECT_TRUE(std::isnan(SmoothL1{1.0}.value(nan, 1.0f)));
    EXPECT_TRUE(std::isnan(SquaredError().value(1.0f, nan)));
    EXPECT_TRUE(std::isnan(LogitCrossEntropy().value(nan, 1.0f)));
}
