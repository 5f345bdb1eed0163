// Variance, logsumexp, norms, extremes and truth against plain loops in double; keys against the order of sorting.
#include "kernels/common/moments.h"
#include "kernels/common/sort_key.h"
#include "kernels/common/vector_norm.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

using namespace yoke::kernels;

namespace {

constexpr double kInf = HUGE_VAL;
constexpr int64_t kSizes[] = {1, 2, 15, 16, 17, 1023, 1024, 1025, 5121, 70000};

template <class T>
std::vector<T> normal(int64_t n, double mean, double deviation)
{
    std::mt19937_64 random(7);
    std::normal_distribution<double> draw(mean, deviation);
    std::vector<T> x((size_t)n);
    for (T &v : x) v = convert<T>(draw(random));
    return x;
}

template <class T>
double exact_variance(const std::vector<T> &x, double correction)
{
    double mean = 0, squares = 0, n = (double)x.size();
    for (T v : x) mean += (double)load(v) / n;
    for (T v : x) squares += ((double)load(v) - mean) * ((double)load(v) - mean);
    return squares / (n - correction);
}

template <class T>
void expect_variances()
{
    Moments<T> op;
    for (int64_t n : kSizes) {
        if (n == 1) continue;
        std::vector<T> x = normal<T>(n, 300, 2);
        auto state = reduce_span(op, x.data(), 1, n);
        double want = exact_variance(x, 1);
        EXPECT_EQ(state.count, (double)n);
        EXPECT_NEAR(op.variance(state, 1), want, 1e-6 * want) << n;
    }
}

template <class Op, class T>
double reduced(const Op &op, const std::vector<T> &x)
{
    return (double)op.project(reduce_span(op, x.data(), 1, (int64_t)x.size()), (int64_t)x.size());
}

}  // namespace

TEST(Moments, VarianceAboutALargeMeanKeepsItsDigits)
{
    expect_variances<float>();
    expect_variances<double>();
    expect_variances<f16>();
    expect_variances<bf16>();
}

TEST(Moments, NothingLeftOfTheCountIsNotANumberOrInfinite)
{
    Moments<float> op;
    float x[2] = {1, 2};
    EXPECT_TRUE(std::isnan(op.variance(op.init(), 0)));
    EXPECT_TRUE(std::isnan(op.variance(reduce_span(op, x, 1, 1), 1)));
    EXPECT_EQ(op.variance(reduce_span(op, x, 1, 2), 2), kInf);
    EXPECT_EQ(op.variance(reduce_span(op, x, 1, 2), 5), kInf);
}

TEST(LogSumExp, AgreesWithAPlainSumAndSurvivesInfinities)
{
    for (int64_t n : kSizes) {
        std::vector<float> x = normal<float>(n, -500, 3);
        double sum = 0;
        for (float v : x) sum += std::exp((double)v + 500);
        EXPECT_NEAR(reduced(LogSumExp<float>(), x), std::log(sum) - 500, 1e-4) << n;
    }
    std::vector<float> x(5000, -HUGE_VALF);
    EXPECT_EQ(reduced(LogSumExp<float>(), x), -kInf);
    x[4000] = -2000;
    EXPECT_EQ(reduced(LogSumExp<float>(), x), -2000);
    x[10] = HUGE_VALF;
    EXPECT_EQ(reduced(LogSumExp<float>(), x), kInf);
    x[20] = std::nanf("");
    EXPECT_TRUE(std::isnan(reduced(LogSumExp<float>(), x)));
    EXPECT_EQ(LogSumExp<float>().project(LogSumExp<float>().init(), 0), -HUGE_VALF);
}

TEST(VectorNorm, EveryOrderAgreesWithItsDefinition)
{
    std::vector<double> x = normal<double>(2000, 0.3, 1);
    x[7] = 0;
    auto sum = [&](double p) {
        double total = 0;
        for (double v : x) total += std::pow(std::fabs(v), p);
        return std::pow(total, 1 / p);
    };
    double most = 0;
    for (double v : x) most = std::max(most, std::fabs(v));
    EXPECT_EQ(reduced(SumNorm<double, OrderZero>{}, x), 1999);
    EXPECT_NEAR(reduced(SumNorm<double, OrderOne>{}, x), sum(1), 1e-9);
    EXPECT_NEAR(reduced(SumNorm<double, OrderTwo>{}, x), sum(2), 1e-9);
    EXPECT_NEAR(reduced(SumNorm<double, OrderAny>{{3.5}}, x), sum(3.5), 1e-9);
    EXPECT_EQ(reduced(SumNorm<double, OrderAny>{{-1.5}}, x), 0);
    EXPECT_EQ(reduced(ExtremeNorm<double, Amax>{}, x), most);
    EXPECT_EQ(reduced(ExtremeNorm<double, Amin>{}, x), 0);
    x[9] = std::nan("");
    EXPECT_TRUE(std::isnan(reduced(SumNorm<double, OrderAny>{{3.5}}, x)));
    EXPECT_TRUE(std::isnan(reduced(ExtremeNorm<double, Amax>{}, x)));
}

TEST(VectorNorm, GradientIsZeroAtZeroForEveryOrder)
{
    for (double p : {0.0, 0.5, 1.0, 2.0, 3.5, -1.0}) {
        EXPECT_EQ(NormBackward{p}(1.0f, 0.0f, 0.0f), 0.0f) << p;
        EXPECT_EQ(NormBackward{p}(1.0f, 0.0f, 2.0f), 0.0f) << p;
    }
    EXPECT_FLOAT_EQ(NormBackward{2}(2.0f, -3.0f, 6.0f), -1.0f);
    EXPECT_FLOAT_EQ(NormBackward{3}(1.0f, 3.0f, 6.0f), 0.25f);
    EXPECT_FLOAT_EQ(NormBackward{1}(2.0f, -3.0f, 6.0f), -2.0f);
}

TEST(Truth, EmptySpansGiveTheIdentities)
{
    std::vector<float> none;
    EXPECT_EQ(reduced(All<float>(), none), 1);
    EXPECT_EQ(reduced(Any<float>(), none), 0);
    EXPECT_EQ(reduced(Prod<float>(), none), 1);
    EXPECT_EQ(Amin<float>().init(), HUGE_VALF);
    EXPECT_EQ(Amin<int8_t>().init(), 127);
    EXPECT_EQ(Amin<uint8_t>().init(), 255);
    EXPECT_EQ(Amin<int64_t>().init(), INT64_MAX);
}

TEST(Truth, AnythingButZeroIsTrue)
{
    EXPECT_EQ(reduced(All<float>(), std::vector<float>{1, std::nanf(""), -1e-40f}), 1);
    EXPECT_EQ(reduced(All<float>(), std::vector<float>{1, -0.0f}), 0);
    EXPECT_EQ(reduced(Any<double>(), std::vector<double>{0, -0.0, 1e-300}), 1);
    EXPECT_EQ(reduced(Any<f16>(), std::vector<f16>(3000, f16{0x8000})), 0);
}

TEST(SortKey, OrdersEveryHalfAsItsValue)
{
    std::vector<uint16_t> all(65536);
    for (size_t i = 0; i < all.size(); ++i) all[i] = (uint16_t)i;
    std::stable_sort(all.begin(), all.end(), [](uint16_t a, uint16_t b) {
        float x = load(f16{a}), y = load(f16{b});
        return x < y || (x == x && y != y);
    });
    for (size_t i = 1; i < all.size(); ++i) {
        float x = load(f16{all[i - 1]}), y = load(f16{all[i]});
        bool equal = x == y || (x != x && y != y);
        EXPECT_EQ(sort_key(f16{all[i - 1]}) < sort_key(f16{all[i]}), !equal) << x << " " << y;
    }
}

TEST(SortKey, OrdersSignsAndInfinitiesOfEveryType)
{
    EXPECT_LT(sort_key(-HUGE_VALF), sort_key(-1.0f));
    EXPECT_EQ(sort_key(-0.0f), sort_key(0.0f));
    EXPECT_LT(sort_key(HUGE_VAL), sort_key(-std::nan("")));
    EXPECT_EQ(sort_key(bf16{0xff81}), sort_key(bf16{0x7fc0}));
    EXPECT_LT(sort_key(INT64_MIN), sort_key((int64_t)-1));
    EXPECT_LT(sort_key((int8_t)-1), sort_key((int8_t)0));
    EXPECT_LT(sort_key(false), sort_key(true));
    EXPECT_LT(sort_key((uint8_t)127), sort_key((uint8_t)128));
}
