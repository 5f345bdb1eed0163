// Elementwise kernels, casts and copies of the CPU backend over every layout and dtype.
#include <cmath>

#include "tests/kernels/cpu_harness.h"

using namespace cpu_test;

namespace {

// Returns 3 x 4 x 5 values in several layouts, which take different code paths.
std::vector<Array> layouts(yoke_dtype dtype, const std::vector<double> &values)
{
    std::vector<Array> list;
    list.emplace_back(dtype, std::vector<int64_t>{3, 4, 5});
    list.push_back(Array(dtype, {5, 3, 4}).permuted({1, 2, 0}));
    list.push_back(Array(dtype, {4, 3, 5}).permuted({1, 0, 2}));
    list.push_back(Array(dtype, {3, 8, 5}).sliced(1, 1, 2, 4));
    list.push_back(Array(dtype, {3, 4, 5}).reversed(2).reversed(0));
    for (Array &array : list) array.set(values);
    return list;
}

double wrapped(yoke_dtype dtype, double x)
{
    if (dtype == YOKE_I8) return (double)(int8_t)(int64_t)x;
    if (dtype == YOKE_U8) return (double)(uint8_t)(int64_t)x;
    if (dtype == YOKE_BOOL) return x != 0;
    return x;
}

}  // namespace

TEST(CpuElementwise, AddAndMulAgreeWithDoublesForEveryDtypeAndLayout)
{
    for (const Level &level : levels())
        for (yoke_dtype dtype : all_dtypes()) {
            bool integral = dtype >= YOKE_I64;
            std::vector<double> left = ramp(60, integral ? 1 : -3, integral ? 1 : 0.5);
            std::vector<double> right = ramp(60, 2, 1, 7);
            if (dtype == YOKE_BOOL)
                for (int i = 0; i < 60; i++) left[i] = i % 2, right[i] = i % 3 == 0;
            std::vector<double> sums(60), products(60);
            for (int i = 0; i < 60; i++) {
                sums[i] = wrapped(dtype, left[i] + right[i]);
                products[i] = wrapped(dtype, left[i] * right[i]);
            }
            for (const Array &x : layouts(dtype, left))
                for (const Array &y : layouts(dtype, right)) {
                    Array out(dtype, {3, 4, 5});
                    ASSERT_EQ(launch(level, YOKE_OP_ADD, {x, y, out}, 2), YOKE_OK);
                    expect_near(out.values(), sums, 0,
                                level.name + " add " + std::to_string(dtype));
                    Array turned = Array(dtype, {5, 4, 3}).permuted({2, 1, 0});
                    ASSERT_EQ(launch(level, YOKE_OP_MUL, {x, y, turned}, 2), YOKE_OK);
                    expect_near(turned.values(), products, 0,
                                level.name + " mul " + std::to_string(dtype));
                }
        }
}

TEST(CpuElementwise, BroadcastOperandsAreRepeated)
{
    for (const Level &level : levels()) {
        Array x(YOKE_F32, {4, 1, 3}, ramp(12)), y(YOKE_F32, {5, 1}, ramp(5, 10, 1)),
            out(YOKE_F32, {4, 5, 3});
        ASSERT_EQ(launch(level, YOKE_OP_SUB, {x, y, out}, 2), YOKE_OK);
        std::vector<double> got = out.values(), a = x.values(), b = y.values();
        for (int i = 0; i < 4; i++)
            for (int j = 0; j < 5; j++)
                for (int k = 0; k < 3; k++)
                    ASSERT_EQ(got[(i * 5 + j) * 3 + k], a[i * 3 + k] - b[j]) << level.name;
    }
}

TEST(CpuElementwise, IntegersWrapAtTheirWidth)
{
    for (const Level &level : levels()) {
        Array x(YOKE_I8, {3}, {127, -128, 100}), y(YOKE_I8, {3}, {1, -1, 100}), out(YOKE_I8, {3});
        ASSERT_EQ(launch(level, YOKE_OP_ADD, {x, y, out}, 2), YOKE_OK);
        expect_near(out.values(), {-128, 127, -56}, 0, level.name);
    }
}

TEST(CpuElementwise, LargeArraysGiveTheSameValuesWithAnyThreadCount)
{
    int64_t n = 300001;
    for (const Level &level : levels()) {
        Array x(YOKE_F32, {n}, ramp(n)), one(YOKE_F32, {n}), two(YOKE_F32, {n});
        set_threads(1);
        ASSERT_EQ(launch(level, YOKE_OP_EXP, {x, one}, 1), YOKE_OK);
        set_threads(2);
        ASSERT_EQ(launch(level, YOKE_OP_EXP, {x, two}, 1), YOKE_OK);
        EXPECT_EQ(*one.storage, *two.storage) << level.name;
    }
}

TEST(CpuElementwise, FunctionsAgreeWithTheCLibraryInEveryFloatDtype)
{
    struct Case {
        int op;
        double (*f)(double);
    };
    const Case cases[] = {
        {YOKE_OP_EXP, [](double x) { return std::exp(x); }},
        {YOKE_OP_TANH, [](double x) { return std::tanh(x); }},
        {YOKE_OP_RELU, [](double x) { return x > 0 ? x : 0; }},
        {YOKE_OP_NEG, [](double x) { return -x; }},
        {YOKE_OP_GELU, [](double x) { return x * 0.5 * std::erfc(-x / std::sqrt(2.0)); }},
    };
    for (const Level &level : levels())
        for (yoke_dtype dtype : float_dtypes())
            for (const Case &c : cases)
                for (const Array &x : layouts(dtype, ramp(60))) {
                    Array out(dtype, {3, 4, 5});
                    ASSERT_EQ(launch(level, c.op, {x, out}, 1, {text("none")}), YOKE_OK);
                    std::vector<double> want = ramp(60);
                    for (double &value : want) value = c.f(value);
                    expect_near(out.values(), want, tolerance(dtype),
                                level.name + " op " + std::to_string(c.op));
                }
}

TEST(CpuElementwise, NothingHappensToZeroElements)
{
    for (const Level &level : levels()) {
        Array x(YOKE_F32, {3, 0, 2}), out(YOKE_F32, {3, 0, 2});
        EXPECT_EQ(launch(level, YOKE_OP_ADD, {x, x, out}, 2), YOKE_OK);
        EXPECT_EQ(launch(level, YOKE_OP_CLONE, {x.permuted({2, 1, 0}), out.permuted({2, 1, 0})}, 1),
                  YOKE_OK);
        EXPECT_EQ(launch(level, YOKE_OP_FILL_, {out}, 0, {number(1)}), YOKE_OK);
    }
}

TEST(CpuElementwise, DivisionOfIntegersIsRefusedByName)
{
    for (const Level &level : levels()) {
        Array x(YOKE_I32, {2}, {1, 2}), out(YOKE_I32, {2});
        EXPECT_EQ(launch(level, YOKE_OP_DIV, {x, x, out}, 2), YOKE_E_TYPE);
        std::string error = take_error();
        EXPECT_NE(error.find("div"), std::string::npos) << error;
        EXPECT_NE(error.find("int32"), std::string::npos) << error;
    }
}

TEST(CpuCopy, EveryPairOfDtypesConvertsInEveryLayout)
{
    std::vector<double> values(60);
    for (int i = 0; i < 60; i++) values[i] = i % 3 == 0 ? 0 : i;
    for (const Level &level : levels())
        for (yoke_dtype from : all_dtypes())
            for (yoke_dtype to : all_dtypes())
                for (const Array &x : layouts(from, values))
                    for (Array out :
                         {Array(to, {3, 4, 5}), Array(to, {4, 5, 3}).permuted({2, 0, 1})}) {
                        ASSERT_EQ(launch(level, YOKE_OP_COPY_, {out, x}, 2, {}, {true}), YOKE_OK);
                        std::vector<double> want = values;
                        if (from == YOKE_BOOL || to == YOKE_BOOL)
                            for (double &value : want) value = value != 0;
                        expect_near(out.values(), want, 0,
                                    level.name + std::to_string(from) + std::to_string(to));
                    }
}

TEST(CpuCopy, TransposedCopiesOfOddSizesMoveEveryElement)
{
    for (const Level &level : levels())
        for (yoke_dtype dtype : {YOKE_F64, YOKE_F32, YOKE_BF16, YOKE_I8}) {
            Array x(dtype, {3, 70, 45}, ramp(3 * 70 * 45)), out(dtype, {45, 70, 3});
            ASSERT_EQ(launch(level, YOKE_OP_CLONE, {x.permuted({2, 1, 0}), out}, 1), YOKE_OK);
            EXPECT_EQ(out.values(), x.permuted({2, 1, 0}).values()) << level.name;
            Array large(dtype, {300, 400}, ramp(120000)), turned(dtype, {400, 300});
            ASSERT_EQ(launch(level, YOKE_OP_CLONE, {large.permuted({1, 0}), turned}, 1), YOKE_OK);
            EXPECT_EQ(turned.values(), large.permuted({1, 0}).values()) << level.name;
        }
}

TEST(CpuCopy, FillConvertsItsValueOnce)
{
    for (const Level &level : levels())
        for (yoke_dtype dtype : all_dtypes()) {
            Array x = Array(dtype, {6, 4}).sliced(0, 0, 2, 3);
            ASSERT_EQ(launch(level, YOKE_OP_FILL_, {x}, 0, {integer(1)}), YOKE_OK);
            expect_near(x.values(), std::vector<double>(12, 1), 0, level.name);
        }
}

TEST(CpuShape, CatPlacesTensorsOneBehindAnother)
{
    for (const Level &level : levels())
        for (int axis : {0, 1}) {
            Array x(YOKE_F32, {2, 3}, ramp(6)),
                y = Array(YOKE_F32, {3, 2}, ramp(6, 20)).permuted({1, 0});
            Array none(YOKE_F32, axis ? std::vector<int64_t>{2, 0} : std::vector<int64_t>{0, 3});
            Array out(YOKE_F32, axis ? std::vector<int64_t>{2, 6} : std::vector<int64_t>{4, 3});
            ASSERT_EQ(launch(level, YOKE_OP_CAT, {x, none, y, out}, 3, {integer(axis)}), YOKE_OK);
            EXPECT_EQ(out.sliced(axis, 0, 1, x.shape[axis]).values(), x.values());
            EXPECT_EQ(out.sliced(axis, x.shape[axis], 1, y.shape[axis]).values(), y.values());
        }
}

TEST(CpuShape, OneHotRefusesAnIndexOutsideAndWritesNothing)
{
    for (const Level &level : levels()) {
        Array x = Array(YOKE_I64, {2, 2}, {0, 2, 1, 0}).permuted({1, 0}), out(YOKE_I64, {2, 2, 3});
        ASSERT_EQ(launch(level, YOKE_OP_ONE_HOT, {x, out}, 1, {integer(3)}), YOKE_OK);
        EXPECT_EQ(out.values(), (std::vector<double>{1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0}));
        Array bad(YOKE_I32, {3}, {0, 7, -1}), small(YOKE_I64, {3, 3});
        std::vector<char> before = *small.storage;
        EXPECT_EQ(launch(level, YOKE_OP_ONE_HOT, {bad, small}, 1, {integer(3)}), YOKE_E_INDEX);
        std::string error = take_error();
        EXPECT_NE(error.find("element 1 of x is 7"), std::string::npos) << error;
        EXPECT_EQ(*small.storage, before);
    }
}
