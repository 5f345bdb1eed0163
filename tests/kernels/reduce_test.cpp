// Reductions: accuracy, NaN, ties, empty spans, strides, and sizes around every border of lanes and
// chunks.
#include "kernels/common/reduce.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

using namespace yoke::kernels;

namespace {

const float kNan = std::nanf("");
constexpr int64_t kSizes[] = {0,  1,    2,    15,   16,   17,   63,   64,
                              65, 1023, 1024, 1025, 2048, 3000, 5121, 70000};

template <class T>
std::vector<T> numbers(int64_t n, int64_t modulus)
{
    std::mt19937_64 random(5);
    std::vector<T> x((size_t)n);
    for (T &v : x) v = convert<T>((int64_t)(random() % (uint64_t)modulus) - modulus / 2);
    return x;
}

template <class T>
int64_t first_largest(const std::vector<T> &x, int64_t stride, int64_t n)
{
    int64_t best = 0;
    for (int64_t i = 1; i < n; ++i)
        if (load(x[(size_t)(i * stride)]) > load(x[(size_t)(best * stride)])) best = i;
    return best;
}

template <class T>
void expect_reductions_of_every_size()
{
    for (int64_t stride : {1, 3}) {
        for (int64_t n : kSizes) {
            std::vector<T> x = numbers<T>(n * stride + 1, 100);
            double sum = 0;
            for (int64_t i = 0; i < n; ++i) sum += (double)load(x[(size_t)(i * stride)]);
            // Small whole numbers: every order of additions is exact.
            EXPECT_EQ((double)Sum<T>().project(reduce_span(Sum<T>(), x.data(), stride, n), n), sum)
                << n;
            if (n == 0) continue;
            int64_t at = first_largest(x, stride, n);
            EXPECT_NEAR((double)Mean<T>().project(reduce_span(Mean<T>(), x.data(), stride, n), n),
                        sum / (double)n, 1e-6 * std::fabs(sum));
            EXPECT_EQ(reduce_span(Amax<T>(), x.data(), stride, n), load(x[(size_t)(at * stride)]));
            EXPECT_EQ(Argmax<T>().project(reduce_span(Argmax<T>(), x.data(), stride, n), n), at);
            EXPECT_EQ(argmax_span(x.data(), stride, n), at) << n << " by " << stride;
        }
    }
}

}  // namespace

TEST(Reduce, EveryDtypeAndSizeAgreesWithAPlainLoop)
{
    expect_reductions_of_every_size<float>();
    expect_reductions_of_every_size<double>();
    expect_reductions_of_every_size<f16>();
    expect_reductions_of_every_size<bf16>();
    expect_reductions_of_every_size<int64_t>();
    expect_reductions_of_every_size<int32_t>();
    expect_reductions_of_every_size<int8_t>();
    expect_reductions_of_every_size<uint8_t>();
}

TEST(Reduce, BoolsAreCountedAndIntegerSumsWrapInSixtyFourBits)
{
    bool8 flags[] = {{1}, {0}, {255}, {2}};
    EXPECT_EQ(reduce_span(Sum<bool8>(), flags, 1, 4), 3);
    EXPECT_EQ(argmax_span(flags + 1, 1, 3), 1);
    int8_t small[300];
    for (int8_t &v : small) v = 127;
    EXPECT_EQ(reduce_span(Sum<int8_t>(), small, 1, 300), 38100);
    int64_t large[] = {INT64_MAX, 1};
    EXPECT_EQ(reduce_span(Sum<int64_t>(), large, 1, 2), INT64_MIN);
    EXPECT_EQ(Mean<uint8_t>().project(7, 2), 3.5);
}

TEST(Reduce, TenMillionTenthsSumToAMillionWithinAMillionth)
{
    std::vector<float> x(10000000, 0.1f);
    double exact = 1e7 * (double)0.1f;
    EXPECT_NEAR(reduce_span(Sum<float>(), x.data(), 1, (int64_t)x.size()), exact, exact * 1e-6);
    float plain = 0;
    for (float v : x) plain += v;
    EXPECT_GT(std::fabs((double)plain - exact), exact * 1e-3);  // result of a plain loop
}

TEST(Reduce, NanWinsWhereverItStands)
{
    for (int64_t n : {1, 5, 17, 1100, 4000}) {
        for (int64_t at : {(int64_t)0, n / 2, n - 1}) {
            std::vector<float> x((size_t)n, 1.0f);
            x[0] = std::numeric_limits<float>::infinity();
            x[(size_t)at] = kNan;
            x[(size_t)(n - 1)] = kNan;
            EXPECT_TRUE(std::isnan(reduce_span(Amax<float>(), x.data(), 1, n)));
            EXPECT_EQ(reduce_span(Argmax<float>(), x.data(), 1, n).index, at);
            EXPECT_EQ(argmax_span(x.data(), 1, n), at);
        }
    }
}

TEST(Reduce, FirstOfEqualValuesWinsEvenAmongInfinities)
{
    std::vector<float> low(3000, -std::numeric_limits<float>::infinity());
    EXPECT_EQ(argmax_span(low.data(), 1, 3000), 0);
    EXPECT_EQ(reduce_span(Argmax<float>(), low.data(), 1, 3000, 7).index, 7);
    std::vector<int64_t> least(40, INT64_MIN);
    EXPECT_EQ(argmax_span(least.data(), 1, 40), 0);
    EXPECT_EQ(reduce_span(Argmax<int64_t>(), least.data(), 1, 40).index, 0);
}

TEST(Reduce, PartsCombineToTheWhole)
{
    std::vector<float> x = numbers<float>(5000, 1000);
    Argmax<float> argmax;
    auto left = reduce_span(argmax, x.data(), 1, 2100),
         right = reduce_span(argmax, x.data() + 2100, 1, 2900, 2100);
    EXPECT_EQ(argmax.combine(left, right).index, argmax_span(x.data(), 1, 5000));
    EXPECT_EQ(argmax.combine(right, left).index, argmax_span(x.data(), 1, 5000));
}

TEST(Reduce, NothingHasASumOfZeroAndNoMean)
{
    const float *none = nullptr;
    EXPECT_EQ(reduce_span(Sum<float>(), none, 1, 0), 0.0f);
    EXPECT_TRUE(std::isnan(Mean<float>().project(reduce_span(Mean<float>(), none, 1, 0), 0)));
    EXPECT_EQ(reduce_span(Amax<float>(), none, 1, 0), -std::numeric_limits<float>::infinity());
}

TEST(Reduce, SumsThatOverflowOnTheWayAreRightInTheEnd)
{
    std::vector<float> x(3000, 3e38f);
    for (size_t i = 0; i < x.size(); i += 2) x[i] = -3e38f;
    x[0] = 1e38f;
    EXPECT_NEAR(Sum<float>().project(reduce_span(Sum<float>(), x.data(), 1, 2), 2) / 4e38, 1, 1e-6);
    EXPECT_NEAR(Sum<float>().project(reduce_span(Sum<float>(), x.data(), 1, 3000), 3000) / 4e38, 1,
                1e-6);
    std::vector<double> y(3000, 1.5e308);
    EXPECT_NEAR(
        Mean<double>().project(reduce_span(Mean<double>(), y.data(), 1, 3000), 3000) / 1.5e308, 1,
        1e-12);
    y[5] = -HUGE_VAL;
    EXPECT_EQ(Mean<double>().project(reduce_span(Mean<double>(), y.data(), 1, 3000), 3000),
              -HUGE_VAL);
}
