// Reductions, softmax and cross entropy of the CPU backend against sums in double.
#include <algorithm>
#include <cmath>

#include "tests/kernels/cpu_harness.h"

using namespace cpu_test;

namespace {

constexpr int64_t kShape[] = {6, 5, 7};

// Returns the 6 x 5 x 7 values in layouts that reduce by rows, by columns and by neither.
std::vector<Array> layouts(yoke_dtype dtype, const std::vector<double> &values)
{
    std::vector<Array> list;
    list.emplace_back(dtype, std::vector<int64_t>{6, 5, 7});
    list.push_back(Array(dtype, {7, 6, 5}).permuted({1, 2, 0}));
    list.push_back(Array(dtype, {5, 7, 6}).permuted({2, 0, 1}));
    list.push_back(Array(dtype, {12, 5, 14}).sliced(0, 11, -2, 6).sliced(2, 0, 2, 7));
    for (Array &array : list) array.set(values);
    return list;
}

// Returns where element i of the array goes when the axes in `reduced` are taken out.
int64_t place(int64_t i, const std::vector<int64_t> &reduced)
{
    int64_t at[3] = {i / 35, i / 7 % 5, i % 7}, result = 0;
    for (int axis = 0; axis < 3; axis++)
        if (std::find(reduced.begin(), reduced.end(), axis) == reduced.end())
            result = result * kShape[axis] + at[axis];
    return result;
}

std::vector<int64_t> shape_without(const std::vector<int64_t> &reduced, bool keepdim)
{
    std::vector<int64_t> shape;
    for (int axis = 0; axis < 3; axis++) {
        bool gone = std::find(reduced.begin(), reduced.end(), axis) != reduced.end();
        if (!gone)
            shape.push_back(kShape[axis]);
        else if (keepdim)
            shape.push_back(1);
    }
    return shape;
}

int64_t product(const std::vector<int64_t> &shape)
{
    int64_t n = 1;
    for (int64_t length : shape) n *= length;
    return n;
}

const std::vector<std::vector<int64_t>> kAxisSets = {{0},    {1},    {2},      {0, 1},
                                                     {0, 2}, {1, 2}, {0, 1, 2}};

yoke_dtype sum_dtype(yoke_dtype dtype)
{
    return dtype >= YOKE_I64 ? YOKE_I64 : dtype;
}

}  // namespace

TEST(CpuReduce, SumMeanAndAmaxAgreeOverEverySetOfAxes)
{
    for (const Level &level : levels())
        for (yoke_dtype dtype : all_dtypes())
            for (const auto &axes : kAxisSets)
                for (bool keepdim : {false, true}) {
                    std::vector<double> values =
                        ramp(210, dtype >= YOKE_U8 ? 0 : -3, dtype >= YOKE_I64 ? 1 : 0.5);
                    if (dtype == YOKE_BOOL)
                        for (double &value : values) value = value > 6;
                    std::vector<int64_t> shape = shape_without(axes, keepdim);
                    std::vector<double> sum(product(shape)), top(sum.size(), -1e9), mean;
                    for (int64_t i = 0; i < 210; i++) {
                        sum[place(i, axes)] += values[i];
                        top[place(i, axes)] = std::max(top[place(i, axes)], values[i]);
                    }
                    for (double value : sum) mean.push_back(value * (double)sum.size() / 210);
                    for (const Array &x : layouts(dtype, values)) {
                        std::string what = level.name + " dtype " + std::to_string(dtype);
                        Array out(sum_dtype(dtype), shape), most(dtype, shape);
                        std::vector<yoke_arg> params = {integers(axes), integer(keepdim),
                                                        integer(0)};
                        ASSERT_EQ(launch(level, YOKE_OP_SUM, {x, out}, 1, params), YOKE_OK);
                        expect_near(out.values(), sum, tolerance(dtype), what + " sum");
                        ASSERT_EQ(launch(level, YOKE_OP_AMAX, {x, most}, 1, params), YOKE_OK);
                        expect_near(most.values(), top, 0, what + " amax");
                        if (dtype >= YOKE_I64) continue;
                        Array average(dtype, shape);
                        ASSERT_EQ(launch(level, YOKE_OP_MEAN, {x, average}, 1, params), YOKE_OK);
                        expect_near(average.values(), mean, tolerance(dtype), what + " mean");
                    }
                }
}

TEST(CpuReduce, HalvesSumIntoFloatWithoutRoundingOnTheWay)
{
    for (const Level &level : levels()) {
        Array x(YOKE_F16, {5000}, std::vector<double>(5000, 1)), out(YOKE_F32, {});
        ASSERT_EQ(launch(level, YOKE_OP_SUM, {x, out}, 1, {integers({0}), integer(0), integer(0)}),
                  YOKE_OK);
        EXPECT_EQ(out.at(0), 5000) << level.name;
    }
}

TEST(CpuReduce, SumsOfNothingAreZero)
{
    for (const Level &level : levels())
        for (const Array &x : {Array(YOKE_F32, {3, 0}), Array(YOKE_F32, {0, 3}).permuted({1, 0})}) {
            Array out(YOKE_F32, {3});
            std::vector<int64_t> axes = {1};
            ASSERT_EQ(
                launch(level, YOKE_OP_SUM, {x, out}, 1, {integers(axes), integer(0), integer(0)}),
                YOKE_OK);
            expect_near(out.values(), {0, 0, 0}, 0, level.name);
        }
}

TEST(CpuReduce, LongSumsAreAccurateAndIndependentOfTheThreadCount)
{
    const int64_t n = 1 << 20;
    std::vector<double> values(n);
    for (int64_t i = 0; i < n; i++) values[i] = (float)(0.1 + 1e-3 * (double)(i % 17));
    double want = 0;
    for (double value : values) want += value;
    for (const Level &level : levels())
        for (int layout = 0; layout < 3; layout++) {
            Array x(YOKE_F32,
                    layout == 1 ? std::vector<int64_t>{n / 4, 4} : std::vector<int64_t>{n}, values);
            if (layout == 2)
                x = Array(YOKE_F32, {2, n}).sliced(1, n - 1, -1, n).sliced(0, 0, 1, 1),
                x.set(values);
            std::vector<int64_t> axes = layout == 1 ? std::vector<int64_t>{0}
                                        : layout    ? std::vector<int64_t>{0, 1}
                                                    : std::vector<int64_t>{0};
            std::vector<std::vector<double>> got;
            for (int threads : {1, 2}) {
                set_threads(threads);
                Array out(YOKE_F32, layout == 1 ? std::vector<int64_t>{4} : std::vector<int64_t>{});
                ASSERT_EQ(launch(level, YOKE_OP_SUM, {x, out}, 1,
                                 {integers(axes), integer(0), integer(0)}),
                          YOKE_OK);
                got.push_back(out.values());
            }
            set_threads(2);
            EXPECT_EQ(got[0], got[1]) << level.name << layout;
            double total = 0;
            for (double value : got[0]) total += value;
            EXPECT_NEAR(total / want, 1, 3e-7) << level.name << layout;
        }
}

TEST(CpuReduce, ArgmaxTakesTheFirstOfTheLargestAndNanWins)
{
    double nan = std::nan("");
    for (const Level &level : levels()) {
        Array x(YOKE_F32, {3, 4}, {1, 5, 5, 0, nan, 2, nan, 9, -1, -1, -1, -1}),
            rows(YOKE_I64, {3}), columns(YOKE_I64, {4});
        ASSERT_EQ(launch(level, YOKE_OP_ARGMAX, {x, rows}, 1, {integer(1), integer(0)}), YOKE_OK);
        expect_near(rows.values(), {1, 0, 0}, 0, level.name);
        ASSERT_EQ(
            launch(level, YOKE_OP_ARGMAX, {x.permuted({1, 0}), rows}, 1, {integer(0), integer(0)}),
            YOKE_OK);
        expect_near(rows.values(), {1, 0, 0}, 0, level.name);
        ASSERT_EQ(launch(level, YOKE_OP_ARGMAX, {x, columns}, 1, {integer(0), integer(0)}),
                  YOKE_OK);
        expect_near(columns.values(), {1, 0, 1, 1}, 0, level.name);
        Array all(YOKE_I64, {});
        ASSERT_EQ(
            launch(level, YOKE_OP_ARGMAX, {x.permuted({1, 0}), all}, 1, {yoke_arg{}, integer(0)}),
            YOKE_OK);
        EXPECT_EQ(all.at(0), 1) << level.name;
    }
}

TEST(CpuReduce, TheGradientOfAmaxIsSharedByEqualMaxima)
{
    for (const Level &level : levels()) {
        Array x(YOKE_F32, {2, 3}, {4, 4, 1, 0, 2, 1}), top(YOKE_F32, {2, 1}, {4, 2}),
            g(YOKE_F32, {2, 1}, {3, 5});
        Array out(YOKE_F32, {2, 3});
        ASSERT_EQ(launch(level, YOKE_OP__AMAX_BACKWARD, {g, x, top, out}, 3), YOKE_OK);
        expect_near(out.values(), {1.5, 1.5, 0, 0, 5, 0}, 0, level.name);
    }
}

TEST(CpuSoftmax, EveryAxisLayoutAndDtypeSumsToOneAndAgrees)
{
    for (const Level &level : levels())
        for (yoke_dtype dtype : float_dtypes())
            for (int64_t axis = 0; axis < 3; axis++) {
                std::vector<double> values = ramp(210), sums(210 / kShape[axis]), want(210),
                                    logs(210), grads(210);
                for (int64_t i = 0; i < 210; i++) sums[place(i, {axis})] += std::exp(values[i]);
                for (int64_t i = 0; i < 210; i++)
                    want[i] = std::exp(values[i]) / sums[place(i, {axis})];
                for (int64_t i = 0; i < 210; i++) logs[i] = std::log(want[i]);
                for (const Array &x : layouts(dtype, values)) {
                    std::string what =
                        level.name + " " + std::to_string(dtype) + " axis " + std::to_string(axis);
                    Array out(dtype, {6, 5, 7}), log(dtype, {6, 5, 7});
                    ASSERT_EQ(
                        launch(level, YOKE_OP_SOFTMAX, {x, out}, 1, {integer(axis), integer(0)}),
                        YOKE_OK);
                    expect_near(out.values(), want, tolerance(dtype), what);
                    ASSERT_EQ(launch(level, YOKE_OP_LOG_SOFTMAX, {x, log}, 1,
                                     {integer(axis), integer(0)}),
                              YOKE_OK);
                    expect_near(log.values(), logs, tolerance(dtype), what);
                    // The gradient of each: of softmax (g - sum(g y)) y, of its logarithm g - exp(y) sum(g).
                    std::vector<double> g = ramp(210, 1, 0.25, 9), y = out.values(),
                                        ly = log.values();
                    std::vector<double> dot(sums.size()), total(sums.size()), dx(210), dl(210);
                    for (int64_t i = 0; i < 210; i++)
                        dot[place(i, {axis})] += g[i] * y[i], total[place(i, {axis})] += g[i];
                    for (int64_t i = 0; i < 210; i++) {
                        dx[i] = (g[i] - dot[place(i, {axis})]) * y[i];
                        dl[i] = g[i] - std::exp(ly[i]) * total[place(i, {axis})];
                    }
                    for (const Array &grad : layouts(dtype, g)) {
                        Array d(dtype, {6, 5, 7});
                        ASSERT_EQ(launch(level, YOKE_OP__SOFTMAX_BACKWARD, {grad, out, d}, 2,
                                         {integer(axis)}),
                                  YOKE_OK);
                        expect_near(d.values(), dx, tolerance(dtype), what + " backward");
                        ASSERT_EQ(launch(level, YOKE_OP__LOG_SOFTMAX_BACKWARD, {grad, log, d}, 2,
                                         {integer(axis)}),
                                  YOKE_OK);
                        expect_near(d.values(), dl, 3 * tolerance(dtype), what + " log backward");
                    }
                }
            }
}

TEST(CpuLoss, CrossEntropyAndItsGradientAgreeWithTheFormula)
{
    const int64_t rows = 9, classes = 7;
    std::vector<double> values = ramp(rows * classes);
    std::vector<double> targets = {0, 6, 3, -100, 2, 2, 5, -100, 1};
    for (const Level &level : levels())
        for (yoke_dtype dtype : float_dtypes())
            for (const char *reduction : {"mean", "sum", "none"})
                for (double smoothing : {0.0, 0.2})
                    for (bool turned : {false, true}) {
                        yoke_dtype wide = dtype == YOKE_F64 ? YOKE_F64 : YOKE_F32;
                        Array x = turned ? Array(dtype, {classes, rows}).permuted({1, 0})
                                         : Array(dtype, {rows, classes});
                        x.set(values);
                        bool none = std::string(reduction) == "none";
                        double used = 7, scale = std::string(reduction) == "mean" ? 1 / used : 1;
                        std::vector<double> losses(rows), dx(rows * classes);
                        for (int64_t i = 0; i < rows; i++) {
                            if (targets[i] < 0) continue;
                            double sum = 0;
                            for (int64_t j = 0; j < classes; j++)
                                sum += std::exp(values[i * classes + j]);
                            for (int64_t j = 0; j < classes; j++) {
                                double q =
                                    smoothing / classes + (j == targets[i] ? 1 - smoothing : 0);
                                double log_p = values[i * classes + j] - std::log(sum);
                                losses[i] -= q * log_p;
                                dx[i * classes + j] = 2 * scale * (std::exp(log_p) - q);
                            }
                        }
                        double total = 0;
                        for (double loss : losses) total += loss * scale;
                        Array target(YOKE_I64, {rows}, targets),
                            loss(dtype, none ? std::vector<int64_t>{rows} : std::vector<int64_t>{});
                        Array norms(wide, {rows, 2}), count(wide, {}), out(dtype, {rows, classes});
                        std::vector<yoke_arg> params = {text(reduction), integer(-100),
                                                        number(smoothing)};
                        ASSERT_EQ(launch(level, YOKE_OP__CROSS_ENTROPY,
                                         {x, target, loss, norms, count}, 2, params),
                                  YOKE_OK);
                        std::string what = level.name + reduction + std::to_string(dtype);
                        expect_near(loss.values(), none ? losses : std::vector<double>{total},
                                    2 * tolerance(dtype), what);
                        EXPECT_EQ(count.at(0), used);
                        Array grad(dtype, loss.shape, std::vector<double>(loss.numel(), 2));
                        ASSERT_EQ(launch(level, YOKE_OP__CROSS_ENTROPY_BACKWARD,
                                         {grad, x, target, norms, count, out}, 5, params),
                                  YOKE_OK);
                        expect_near(out.values(), dx, 2 * tolerance(dtype), what + " backward");
                    }
}

TEST(CpuLoss, ATargetThatIsNoClassIsRefusedByPlaceAndValue)
{
    for (const Level &level : levels()) {
        Array x(YOKE_F32, {3, 4}, ramp(12)), target(YOKE_I32, {3}, {0, 4, 1}), loss(YOKE_F32, {}),
            norms(YOKE_F32, {3, 2}), count(YOKE_F32, {});
        std::vector<yoke_arg> params = {text("mean"), integer(-100), number(0)};
        EXPECT_EQ(launch(level, YOKE_OP__CROSS_ENTROPY, {x, target, loss, norms, count}, 2, params),
                  YOKE_E_INDEX);
        std::string error = take_error();
        EXPECT_NE(error.find("target[1] is 4"), std::string::npos) << error;
        EXPECT_NE(error.find("0 to 3"), std::string::npos) << error;
    }
}
