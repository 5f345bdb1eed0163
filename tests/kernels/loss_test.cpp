// Softmax states against double formulas; both ways to make them; rows with infinities and NaN.
#include "kernels/common/loss.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

using namespace yoke::kernels;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

std::vector<float> logits(int64_t n, float spread)
{
    std::mt19937 random(11);
    std::uniform_real_distribution<float> uniform(-spread, spread);
    std::vector<float> x((size_t)n);
    for (float &v : x) v = uniform(random);
    return x;
}

double log_sum_exp(const std::vector<float> &x)
{
    double max = -INFINITY, sum = 0;
    for (float v : x) max = std::fmax(max, v);
    for (float v : x) sum += std::exp((double)v - max);
    return max + std::log(sum);
}

}  // namespace

TEST(Loss, SoftmaxAgreesWithDoubleForRowsOfEverySize)
{
    for (int64_t n : {1, 2, 10, 16, 17, 33, 63, 64, 65, 100, 1000, 5000}) {
        for (float spread : {1.0f, 30.0f, 1000.0f}) {
            std::vector<float> x = logits(n, spread);
            double reference = log_sum_exp(x), sum = 0;
            SoftmaxState<float> two_pass = softmax_state(x.data(), 1, n);
            SoftmaxState<float> online = SoftmaxState<float>::init();
            for (float v : x) online.push(v);
            for (SoftmaxState<float> s : {two_pass, online}) {
                sum = 0;
                for (float v : x) {
                    double p = std::exp((double)v - reference);
                    // Rounding x - max is an error of exp's argument, hence relative in its value.
                    double relative = 2e-6 + 0x1p-23 * ((double)s.max - v);
                    EXPECT_NEAR(s.softmax(v), p, relative * p + 1e-37);
                    EXPECT_NEAR(s.log_softmax(v), (double)v - reference, 2e-7 * spread + 2e-6);
                    EXPECT_EQ(s.cross_entropy(v), -s.log_softmax(v));
                    sum += s.softmax(v);
                }
                EXPECT_NEAR(sum, 1, 1e-5);
            }
        }
    }
}

TEST(Loss, StatesCombineInAnyGrouping)
{
    std::vector<double> x = {3, -200, 700, 699.5, -INFINITY, 12};
    SoftmaxState<double> left = SoftmaxState<double>::init(), right = left, whole = left;
    for (size_t i = 0; i < x.size(); ++i) {
        (i < 2 ? left : right).push(x[i]);
        whole.push(x[i]);
    }
    for (auto s :
         {SoftmaxState<double>::combine(left, right), SoftmaxState<double>::combine(right, left)}) {
        EXPECT_EQ(s.max, 700);
        EXPECT_NEAR(s.sum, whole.sum, 1e-12);
        EXPECT_EQ(s.softmax(-INFINITY), 0);
    }
}

TEST(Loss, RowsWithoutAFiniteMaximumGiveNanThroughout)
{
    const std::vector<std::vector<float>> rows = {
        {-kInf, -kInf}, {1, kInf}, {std::nanf(""), 1}, {1, std::nanf("")}};
    for (const std::vector<float> &row : rows) {
        SoftmaxState<float> online = SoftmaxState<float>::init();
        for (float v : row) online.push(v);
        for (SoftmaxState<float> s : {online, softmax_state(row.data(), 1, (int64_t)row.size())}) {
            for (float v : row) {
                EXPECT_TRUE(std::isnan(s.softmax(v)));
                EXPECT_TRUE(std::isnan(s.log_softmax(v)));
            }
        }
    }
    std::vector<float> masked = {-kInf, 2, -kInf, 2};
    SoftmaxState<float> s = softmax_state(masked.data(), 1, 4);
    EXPECT_EQ(s.softmax(masked[0]), 0.0f);
    EXPECT_EQ(s.softmax(masked[1]), 0.5f);
    EXPECT_EQ(s.log_softmax(masked[0]), -kInf);
}

TEST(Loss, HalvesAndStridesAreReadLikeFloats)
{
    std::vector<f16> x(64);
    for (size_t i = 0; i < x.size(); ++i) x[i] = f32_to_f16((float)i / 8);
    std::vector<float> every_other;
    for (size_t i = 0; i < x.size(); i += 2) every_other.push_back(load(x[i]));
    SoftmaxState<float> s = softmax_state(x.data(), 2, 32),
                        expected = softmax_state(every_other.data(), 1, 32);
    EXPECT_EQ(s.max, expected.max);
    EXPECT_EQ(s.sum, expected.sum);
}

TEST(Loss, BackwardIsTheSlopeOfForward)
{
    const std::vector<double> x = {0.3, -1.2, 2.0, 0.7}, g = {1, -0.5, 0.25, 2};
    auto state = [](const std::vector<double> &row) {
        return softmax_state(row.data(), 1, (int64_t)row.size());
    };
    SoftmaxState<double> s = state(x);
    double dot = 0, sum = 0;
    for (size_t i = 0; i < x.size(); ++i) dot += g[i] * s.softmax(x[i]), sum += g[i];
    for (size_t k = 0; k < x.size(); ++k) {
        double softmax = 0, log_softmax = 0, cross_entropy = 0;
        for (double step : {1e-6, -1e-6}) {
            std::vector<double> moved = x;
            moved[k] += step;
            SoftmaxState<double> m = state(moved);
            for (size_t i = 0; i < x.size(); ++i) {
                softmax += g[i] * m.softmax(moved[i]) / (2 * step);
                log_softmax += g[i] * m.log_softmax(moved[i]) / (2 * step);
            }
            cross_entropy += m.cross_entropy(moved[2]) / (2 * step);
        }
        EXPECT_NEAR(softmax_backward(g[k], s.softmax(x[k]), dot), softmax, 1e-8);
        EXPECT_NEAR(log_softmax_backward(g[k], s.log_softmax(x[k]), sum), log_softmax, 1e-8);
        EXPECT_NEAR(cross_entropy_backward(1.0, s.softmax(x[k]), k == 2), cross_entropy, 1e-8);
    }
}

TEST(Loss, PassesOverARowServeEveryLengthAndMayWriteWhereTheyRead)
{
    for (int64_t n : {0, 1, 15, 16, 31, 64, 79, 130, 4095, 4096, 4097, 9000}) {
        std::vector<float> x = logits(n, 4), kept((size_t)n), in_place = x;
        float top = -kInf;
        double sum = 0, sum_exp = 0;
        for (float v : x) top = std::fmax(top, v), sum += v;
        for (float v : x) sum_exp += std::exp((double)v - top);
        EXPECT_EQ(row_max(x.data(), n), top) << n;
        EXPECT_NEAR(row_sum<float>(n, [&](int64_t i) { return x[(size_t)i]; }), sum, 1e-4) << n;
        float got = row_sum_exp<true>(x.data(), n, top, kept.data());
        EXPECT_NEAR(got, sum_exp, 1e-6 * sum_exp) << n;
        EXPECT_EQ(row_sum_exp<false>(x.data(), n, top, (float *)nullptr), got) << n;
        EXPECT_EQ(row_sum_exp<true>(in_place.data(), n, top, in_place.data()), got) << n;
        EXPECT_EQ(kept, in_place) << n;
        for (int64_t i = 0; i < n; ++i)
            EXPECT_NEAR(kept[(size_t)i], std::exp((double)x[(size_t)i] - top), 2e-7) << n;
    }
}
