// Matrix products, random numbers and memory of the CPU backend.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <thread>

#include "tests/kernels/cpu_harness.h"

using namespace cpu_test;

namespace {

struct Sizes {
    int64_t m, n, k;
};

// Small sizes take Yoke's own loops, the others take oneDNN; odd sizes leave remainders everywhere.
const Sizes kSizes[] = {{1, 1, 1},   {8, 8, 8},    {3, 5, 2},     {1, 70, 33},
                        {65, 1, 40}, {33, 47, 29}, {130, 70, 300}};

std::vector<double> small_values(int64_t n, yoke_dtype dtype, double from)
{
    return dtype >= YOKE_I64 ? ramp(n, dtype >= YOKE_U8 ? 0 : -1, 1, 2) : ramp(n, from, 0.25, 11);
}

std::vector<double> multiply(const std::vector<double> &a, const std::vector<double> &b, Sizes s)
{
    std::vector<double> c(s.m * s.n);
    for (int64_t i = 0; i < s.m; i++)
        for (int64_t p = 0; p < s.k; p++)
            for (int64_t j = 0; j < s.n; j++) c[i * s.n + j] += a[i * s.k + p] * b[p * s.n + j];
    return c;
}

double wrapped(yoke_dtype dtype, double x)
{
    if (dtype == YOKE_BOOL) return x != 0;
    if (dtype == YOKE_I8) return (double)(int8_t)(int64_t)x;
    if (dtype == YOKE_U8) return (double)(uint8_t)(int64_t)x;
    return x;
}

// Returns rows x columns in four layouts: row-major, transposed, every second element, reversed.
std::vector<Array> layouts(yoke_dtype dtype, int64_t rows, int64_t columns,
                           const std::vector<double> &values)
{
    std::vector<Array> list = {Array(dtype, {rows, columns}),
                               Array(dtype, {columns, rows}).permuted({1, 0}),
                               Array(dtype, {rows, columns * 2}).sliced(1, 0, 2, columns),
                               Array(dtype, {rows, columns}).reversed(0)};
    for (Array &array : list) array.set(values);
    return list;
}

}  // namespace

TEST(CpuMatmul, EveryDtypeSizeAndLayoutAgreesWithDoubles)
{
    for (const Level &level : levels())
        for (yoke_dtype dtype : all_dtypes())
            for (Sizes s : kSizes) {
                std::vector<double> a = small_values(s.m * s.k, dtype, -1),
                                    b = small_values(s.k * s.n, dtype, -0.5);
                std::vector<double> want = multiply(a, b, s);
                for (double &value : want) value = wrapped(dtype, value);
                for (const Array &x : layouts(dtype, s.m, s.k, a))
                    for (const Array &y : layouts(dtype, s.k, s.n, b)) {
                        Array out(dtype, {s.m, s.n});
                        ASSERT_EQ(launch(level, YOKE_OP_MATMUL, {x, y, out}, 2), YOKE_OK)
                            << take_error();
                        expect_near(out.values(), want, tolerance(dtype),
                                    level.name + " dtype " + std::to_string(dtype) + " m " +
                                        std::to_string(s.m));
                    }
            }
}

TEST(CpuMatmul, BatchesBroadcastAndVectorsCountAsMatrices)
{
    for (const Level &level : levels())
        for (Sizes s : {Sizes{3, 4, 5}, Sizes{20, 24, 40}}) {
            Array x(YOKE_F32, {2, 1, s.m, s.k}, ramp(2 * s.m * s.k)),
                y(YOKE_F32, {3, s.k, s.n}, ramp(3 * s.k * s.n, -1));
            Array out(YOKE_F32, {2, 3, s.m, s.n});
            ASSERT_EQ(launch(level, YOKE_OP_MATMUL, {x, y, out}, 2), YOKE_OK);
            for (int i = 0; i < 2; i++)
                for (int j = 0; j < 3; j++)
                    expect_near(
                        out.sliced(0, i, 1, 1).sliced(1, j, 1, 1).values(),
                        multiply(x.sliced(0, i, 1, 1).values(), y.sliced(0, j, 1, 1).values(), s),
                        2e-6, level.name);
            Array shared(YOKE_F32, {s.k, s.n}, ramp(s.k * s.n)), joined(YOKE_F32, {2, 1, s.m, s.n});
            ASSERT_EQ(launch(level, YOKE_OP_MATMUL, {x, shared, joined}, 2), YOKE_OK);
            expect_near(joined.values(), multiply(x.values(), shared.values(), {2 * s.m, s.n, s.k}),
                        2e-6, level.name);
            Array vector(YOKE_F32, {s.k}, ramp(s.k)), row(YOKE_F32, {3, s.n}),
                column(YOKE_F32, {2, 1, s.m}), dot(YOKE_F32, {});
            ASSERT_EQ(launch(level, YOKE_OP_MATMUL, {vector, y, row}, 2), YOKE_OK);
            expect_near(row.sliced(0, 2, 1, 1).values(),
                        multiply(vector.values(), y.sliced(0, 2, 1, 1).values(), {1, s.n, s.k}),
                        2e-6, level.name);
            ASSERT_EQ(launch(level, YOKE_OP_MATMUL, {x, vector, column}, 2), YOKE_OK);
            expect_near(column.values(), multiply(x.values(), vector.values(), {2 * s.m, 1, s.k}),
                        2e-6, level.name);
            ASSERT_EQ(launch(level, YOKE_OP_MATMUL, {vector, vector, dot}, 2), YOKE_OK);
            expect_near(dot.values(), multiply(vector.values(), vector.values(), {1, 1, s.k}), 2e-6,
                        level.name);
        }
}

TEST(CpuMatmul, LinearAddsItsBiasEvenWhereNothingIsSummed)
{
    for (const Level &level : levels())
        for (yoke_dtype dtype : {YOKE_F64, YOKE_F32, YOKE_BF16, YOKE_F16})
            for (Sizes s : {Sizes{4, 3, 2}, Sizes{30, 40, 50}, Sizes{4, 3, 0}}) {
                Array x(dtype, {2, s.m, s.k}, ramp(2 * s.m * s.k, -1, 0.25)),
                    weight(dtype, {s.n, s.k}, ramp(s.n * s.k, -0.5, 0.25));
                std::vector<double> want =
                    multiply(x.values(), weight.permuted({1, 0}).values(), {2 * s.m, s.n, s.k});
                Array bias = Array(dtype, {2 * s.n}).sliced(0, 1, 2, s.n),
                      out(dtype, {2, s.m, s.n});
                bias.set(ramp(s.n));
                for (int64_t i = 0; i < 2 * s.m * s.n; i++) want[i] += bias.at(i % s.n);
                ASSERT_EQ(launch(level, YOKE_OP__LINEAR, {x, weight, bias, out}, 3), YOKE_OK)
                    << take_error();
                expect_near(out.values(), want, tolerance(dtype), level.name);
            }
}

TEST(CpuMatmul, ManyShapesInManyThreadsKeepTheirPrimitivesApart)
{
    auto work = [] {
        for (int round = 0; round < 2; round++)
            for (int64_t m = 17; m < 320; m += 1) {
                Array x(YOKE_F32, {m, 20}, ramp(m * 20)), y(YOKE_F32, {20, 18}, ramp(360)),
                    out(YOKE_F32, {m, 18});
                ASSERT_EQ(launch(levels().back(), YOKE_OP_MATMUL, {x, y, out}, 2), YOKE_OK);
                if (m % 37 == 0)
                    expect_near(out.values(), multiply(x.values(), y.values(), {m, 18, 20}), 2e-6,
                                "shape");
            }
    };
    levels();
    std::thread other(work);
    work();
    other.join();
}

TEST(CpuRandom, DrawsAreTheSameAtEveryLevelThreadCountAndLayout)
{
    const int ops[] = {YOKE_OP__UNIFORM, YOKE_OP__NORMAL, YOKE_OP__RANDINT, YOKE_OP__RANDPERM};
    for (int op : ops) {
        std::vector<std::vector<double>> got;
        for (const Level &level : levels())
            for (int threads : {1, 2})
                for (int step : {1, 2}) {
                    set_threads(threads);
                    bool integral = op == YOKE_OP__RANDINT || op == YOKE_OP__RANDPERM;
                    Array x = Array(integral ? YOKE_I64 : YOKE_F32, {50001 * step})
                                  .sliced(0, 0, step, 50001);
                    std::vector<yoke_arg> params = {integer(7), integer(3)};
                    if (op == YOKE_OP__UNIFORM || op == YOKE_OP__NORMAL)
                        params.insert(params.begin(), {number(0), number(1)});
                    if (op == YOKE_OP__RANDINT)
                        params.insert(params.begin(), {integer(-5), integer(12)});
                    ASSERT_EQ(launch(level, op, {x}, 0, params), YOKE_OK);
                    got.push_back(x.values());
                }
        set_threads(2);
        for (const auto &values : got) EXPECT_EQ(values, got[0]) << op;
        double sum = 0;
        for (double value : got[0]) sum += value;
        if (op == YOKE_OP__UNIFORM) {
            EXPECT_NEAR(sum / 50001, 0.5, 0.01);
        }
        if (op == YOKE_OP__NORMAL) {
            EXPECT_NEAR(sum / 50001, 0, 0.02);
        }
        if (op == YOKE_OP__RANDINT) {
            EXPECT_NEAR(sum / 50001, 3, 0.1);
        }
        if (op == YOKE_OP__RANDPERM) {
            std::sort(got[0].begin(), got[0].end());
            for (int64_t i = 0; i < 50001; i++) ASSERT_EQ(got[0][i], i);
        }
    }
}

TEST(CpuRandom, DropoutKeepsTheSameElementsInEveryLayoutAndScalesThem)
{
    for (const Level &level : levels())
        for (yoke_dtype dtype : float_dtypes()) {
            std::vector<double> ones(30000, 1);
            Array x(dtype, {100, 300}, ones), out(dtype, {100, 300}),
                turned = Array(dtype, {300, 100}).permuted({1, 0});
            std::vector<yoke_arg> params = {number(0.5), integer(9), integer(0)};
            ASSERT_EQ(launch(level, YOKE_OP__DROPOUT, {x, out}, 1, params), YOKE_OK);
            turned.set(ones);
            Array other = Array(dtype, {300, 100}).permuted({1, 0});
            ASSERT_EQ(launch(level, YOKE_OP__DROPOUT, {turned, other}, 1, params), YOKE_OK);
            EXPECT_EQ(out.values(), other.values()) << level.name;
            int64_t kept = 0;
            for (double value : out.values()) {
                ASSERT_TRUE(value == 0 || value == 2);
                kept += value == 2;
            }
            EXPECT_NEAR((double)kept / 30000, 0.5, 0.02);
        }
}

TEST(CpuCreate, ArangeAndEyeFillEveryDtype)
{
    for (const Level &level : levels())
        for (yoke_dtype dtype : all_dtypes()) {
            if (dtype == YOKE_BOOL) continue;
            Array x(dtype, {5}), eye = Array(dtype, {3, 2}).permuted({1, 0});
            ASSERT_EQ(launch(level, YOKE_OP__ARANGE, {x}, 0, {integer(2), integer(3)}), YOKE_OK);
            expect_near(x.values(), {2, 5, 8, 11, 14}, 0, level.name);
            ASSERT_EQ(launch(level, YOKE_OP__EYE, {eye}, 0), YOKE_OK);
            expect_near(eye.values(), {1, 0, 0, 0, 1, 0}, 0, level.name);
        }
}

TEST(CpuMemory, BlocksOfEverySizeAreAlignedAndWritable)
{
    const yoke_backend &cpu = backend();
    void *device = nullptr;
    ASSERT_EQ(cpu.device_open(0, &device), YOKE_OK);
    for (uint64_t bytes : {1ull, 63ull, 4096ull, (4ull << 20) - 1, 4ull << 20, (9ull << 20) + 5}) {
        void *block = nullptr;
        ASSERT_EQ(cpu.alloc(device, bytes, &block), YOKE_OK);
        EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 64, 0u);
        ASSERT_EQ(cpu.fill(device, block, 7, bytes, nullptr), YOKE_OK);
        EXPECT_EQ(static_cast<char *>(block)[bytes - 1], 7);
        EXPECT_EQ(cpu.free(device, block, bytes), YOKE_OK);
    }
    void *block = &device;
    EXPECT_EQ(cpu.alloc(device, 1ull << 62, &block), YOKE_E_OOM);
    EXPECT_EQ(block, &device);
}

TEST(CpuMemory, AChunkKeepsItsContentsWhileItMoves)
{
    const yoke_backend &cpu = backend();
    void *device = nullptr, *range = nullptr;
    ASSERT_EQ(cpu.device_open(0, &device), YOKE_OK);
    uint64_t size = 0, chunk = 0, other = 0;
    ASSERT_EQ(cpu.vmm_granularity(device, &size), YOKE_OK);
    ASSERT_EQ(cpu.vmm_reserve(device, 4 * size, &range), YOKE_OK);
    char *at = static_cast<char *>(range);
    ASSERT_EQ(cpu.vmm_create(device, size, &chunk), YOKE_OK);
    ASSERT_EQ(cpu.vmm_create(device, size, &other), YOKE_OK);
    ASSERT_EQ(cpu.vmm_map(device, at + size, size, chunk), YOKE_OK);
    memset(at + size, 5, size);
    EXPECT_EQ(cpu.vmm_map(device, at, size, chunk), YOKE_E_STATE);
    EXPECT_EQ(cpu.vmm_destroy(device, chunk), YOKE_E_STATE);
    EXPECT_EQ(cpu.vmm_release(device, range, 4 * size), YOKE_E_STATE);
    ASSERT_EQ(cpu.vmm_unmap(device, at + size, size), YOKE_OK);
    ASSERT_EQ(cpu.vmm_map(device, at + size, size, other), YOKE_OK);
    EXPECT_EQ(at[size], 0);
    ASSERT_EQ(cpu.vmm_map(device, at + 3 * size, size, chunk), YOKE_OK);
    EXPECT_EQ(at[3 * size], 5);
    EXPECT_EQ(at[4 * size - 1], 5);
    EXPECT_EQ(cpu.vmm_unmap(device, at, size), YOKE_E_VALUE);
    for (uint64_t place : {1, 3})
        ASSERT_EQ(cpu.vmm_unmap(device, at + place * size, size), YOKE_OK);
    ASSERT_EQ(cpu.vmm_destroy(device, chunk), YOKE_OK);
    ASSERT_EQ(cpu.vmm_destroy(device, other), YOKE_OK);
    ASSERT_EQ(cpu.vmm_release(device, range, 4 * size), YOKE_OK);
    EXPECT_DEATH(at[0] = 1, "");
}
