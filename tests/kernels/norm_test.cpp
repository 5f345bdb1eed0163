// Sums, moments and gradients of normalisation against double formulas.
#include "kernels/common/norm.h"

#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

using namespace yoke::kernels;

namespace {

std::vector<float> around(float middle, int64_t n)
{
    std::mt19937 random(5);
    std::normal_distribution<float> normal(middle, 1.0f);
    std::vector<float> x((size_t)n);
    for (float &v : x) v = normal(random);
    return x;
}

void moments(const std::vector<float> &x, double *mean, double *squares)
{
    *mean = *squares = 0;
    for (float v : x) *mean += v / (double)x.size();
    for (float v : x) *squares += (v - *mean) * (v - *mean);
}

}  // namespace

TEST(Norm, SumsTakeEveryElementOnceForEverySize)
{
    for (int64_t n : {0, 1, 15, 16, 17, 63, 64, 65, 129, 4095, 4096, 4097, 70001})
        EXPECT_EQ(sum_of<double>(n, [](int64_t i) { return (double)i; }), (double)n * (n - 1) / 2);
}

TEST(Norm, MomentsAgreeWithDoubleAlsoFarFromZero)
{
    for (int64_t n : {1, 2, 100, 1000, 50000}) {
        for (float middle : {0.0f, 3.0f, 1e4f}) {
            std::vector<float> x = around(middle, n);
            double mean, squares;
            moments(x, &mean, &squares);
            auto found = RowMoments<float>::of(x.data(), n);
            EXPECT_NEAR(found.mean, mean, 1e-6 * (1 + std::fabs(middle)));
            EXPECT_NEAR(found.squares, squares, 1e-4 * squares + 1e-5);
        }
    }
}

TEST(Norm, PartsCombineToTheMomentsOfTheWhole)
{
    std::vector<float> x = around(100, 3000);
    auto whole = RowMoments<float>::of(x.data(), 3000), parts = RowMoments<float>::init();
    for (int64_t begin = 0; begin < 3000; begin += 750)
        parts = RowMoments<float>::combine(parts, RowMoments<float>::of(x.data() + begin, 750));
    EXPECT_EQ(parts.count, 3000);
    EXPECT_NEAR(parts.mean, whole.mean, 1e-4);
    EXPECT_NEAR(parts.variance(), whole.variance(), 1e-4);
    auto same = RowMoments<float>::combine(whole, RowMoments<float>::init());
    EXPECT_EQ(same.mean, whole.mean);
    EXPECT_EQ(same.squares, whole.squares);
    EXPECT_TRUE(std::isnan(RowMoments<float>::init().variance()));
}

TEST(Norm, BackwardIsTheSlopeOfForward)
{
    const std::vector<double> x = {0.3, -1.2, 2.0, 0.7, -0.1}, g = {1, -0.5, 0.25, 2, -3};
    const auto n = (int64_t)x.size();
    const double eps = 0.01;
    auto forward = [&](const std::vector<double> &row) {
        auto m = RowMoments<double>::of(row.data(), n);
        double rstd = inverse_root(m.variance(), eps), sum = 0;
        for (size_t i = 0; i < row.size(); ++i) sum += g[i] * Normal<double>(m.mean, rstd)(row[i]);
        return sum;
    };
    auto m = RowMoments<double>::of(x.data(), n);
    double rstd = inverse_root(m.variance(), eps), mean_g = 0, mean_g_normal = 0;
    for (size_t i = 0; i < x.size(); ++i) {
        mean_g += g[i] / (double)n;
        mean_g_normal += g[i] * Normal<double>(m.mean, rstd)(x[i]) / (double)n;
    }
    for (size_t i = 0; i < x.size(); ++i) {
        std::vector<double> above = x, below = x;
        above[i] += 1e-6;
        below[i] -= 1e-6;
        double slope = (forward(above) - forward(below)) / 2e-6;
        EXPECT_NEAR(
            norm_backward(g[i], Normal<double>(m.mean, rstd)(x[i]), rstd, mean_g, mean_g_normal),
            slope, 1e-7);
    }
}
