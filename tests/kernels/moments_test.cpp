// Variance, logsumexp, norms, extremes and truth against plain loops in double; keys against the order of sorting.
#include "kernels/common/moments.h"
#include "kernels/common/prod.h"
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

namespace {

// Returns the deviation of 1, 2, 4, … times `scale`, divided by `scale`. The deviation about the mean scales with the
// numbers.
template <class T>
double deviation_at(double scale, int64_t n)
{
    Moments<T> op;
    std::vector<T> x((size_t)n);
    for (int64_t i = 0; i < n; i++) x[(size_t)i] = (T)(scale * (double)(1 << i % 3));
    return op.deviation(reduce_span(op, x.data(), 1, n), 1) / scale;
}

template <class T>
void expect_deviations_that_scale(std::initializer_list<double> scales)
{
    for (int64_t n : {3, 1026, 5121})
        for (double scale : scales)
            EXPECT_NEAR(deviation_at<T>(scale, n), deviation_at<T>(1, n), 1e-6) << scale;
}

template <class T>
double deviation_of_equals(T value, int64_t n)
{
    Moments<T> op;
    const std::vector<T> x((size_t)n, value);
    return op.deviation(reduce_span(op, x.data(), 1, n), 1);
}

}  // namespace

TEST(Moments, DeviationsScaleWithTheirValuesToTheEndsOfTheRange)
{
    expect_deviations_that_scale<float>({1e-37, 1e-25, 1e-16, 1e19, 1e30, 8e37});
    expect_deviations_that_scale<double>({1e-307, 1e-200, 1e-150, 1e150, 1e200, 4e307});
}

TEST(Moments, EqualValuesHaveNoDeviation)
{
    for (int64_t n : {2, 3, 319, 1025, 5121}) {
        for (float value : {1e-38f, 1.1e-16f, 1.7f, 3.3e30f, 3e38f})
            EXPECT_EQ(deviation_of_equals(value, n), 0) << value;
        for (double value : {1e-308, 1.1e-16, 1.7, 3.3e200, 1.7e308})
            EXPECT_EQ(deviation_of_equals(value, n), 0) << value;
    }
}

TEST(Moments, StatesOfUnlikeScalesCombine)
{
    const Moments<double> op;
    const auto of = [&](double a, double b) {
        return op.careful(2, [=](int64_t i) { return i ? b : a; });
    };
    const double large = 1e200, small = 1e-200;
    EXPECT_NEAR(op.deviation(op.combine(of(large, large), of(0, 0)), 1) / large, 0.5773502691896,
                1e-12);
    EXPECT_NEAR(op.deviation(op.combine(of(small, small), of(0, 0)), 1) / small, 0.5773502691896,
                1e-12);
    EXPECT_NEAR(op.deviation(op.combine(of(small, 0), of(large, large)), 1) / large,
                0.5773502691896, 1e-12);
    EXPECT_NEAR(op.deviation(op.combine(op.init(), of(small, 0)), 1) / small, 0.7071067811865,
                1e-12);
}

TEST(VectorNorm, PowersThatLeaveTheRangeAreTakenOfRatios)
{
    for (double scale : {1e-37, 1e-30, 1.0, 1e30, 1e36}) {
        std::vector<float> x(3000, (float)scale);
        for (double p : {2.0, 3.5, 10.0, -1.5}) {
            const double want = std::pow(3000.0, 1 / p) * (double)(float)scale;
            EXPECT_NEAR(reduced(SumNorm<float, OrderAny>{{p}}, x), want, want * 2e-5) << p;
        }
        EXPECT_NEAR(reduced(SumNorm<float, OrderTwo>{}, x) / scale, std::sqrt(3000.0), 1e-4);
    }
    std::vector<double> x(3000, 1e-300);
    x[1500] = 1e300;
    EXPECT_NEAR(reduced(SumNorm<double, OrderTwo>{}, x) / 1e300, 1, 1e-12);
    x[7] = HUGE_VAL;
    EXPECT_EQ(reduced(SumNorm<double, OrderTwo>{}, x), HUGE_VAL);
}
