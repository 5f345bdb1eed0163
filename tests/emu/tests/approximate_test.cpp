// The approximations of a device's instructions, and what is made of them for results of 16 bits: over dense sweeps of
// floats, and over every half.
#include "tests/emu/approximate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/cuda/ops/gelu.cuh"

namespace cuda = yoke::cuda;
namespace emu = yoke::emu;
namespace kernels = yoke::kernels;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
const float kNan = std::nanf("");

struct Worst {
    double error = 0;  // relative
    float at = 0;
};

// Returns the largest relative error of f for floats in [from, to] whose true value is a normal number.
template <class F, class Reference>
Worst worst(const F &f, const Reference &reference, float from, float to)
{
    Worst result;
    for (uint64_t bits = 0; bits < (uint64_t)1 << 32; bits += 1021) {
        const float x = kernels::bit_cast<float>((uint32_t)bits);
        if (!(x >= from && x <= to) || (x != 0 && std::fabs(x) < 0x1p-126f)) continue;
        const double expected = reference((double)x);
        if (!(std::fabs(expected) >= 0x1p-126 && std::fabs(expected) < 0x1p127)) continue;
        const double error = std::fabs(f(x) / expected - 1);
        if (!(error <= result.error)) result = {error, x};
    }
    return result;
}

constexpr double kRounding = 0x1p-24;

TEST(Approximate, ModelsErrAsMuchAsThePtxIsaAllows)
{
    const Worst power = worst(
        emu::ex2_approx_ftz, [](double x) { return std::exp2(x); }, -126, 127);
    EXPECT_LE(power.error, 0x1p-22 + kRounding) << power.at;
    EXPECT_GE(power.error, 0.9 * 0x1p-22);
    const Worst reciprocal = worst(
        emu::rcp_approx_ftz, [](double x) { return 1 / x; }, -0x1p126f, 0x1p126f);
    EXPECT_LE(reciprocal.error, 0x1p-23 + kRounding) << reciprocal.at;
    EXPECT_GE(reciprocal.error, 0.9 * 0x1p-23);
}

TEST(Approximate, ModelsKnowTheEnds)
{
    EXPECT_EQ(emu::ex2_approx_ftz(-kInf), 0);
    EXPECT_EQ(emu::ex2_approx_ftz(kInf), kInf);
    EXPECT_TRUE(std::isnan(emu::ex2_approx_ftz(kNan)));
    EXPECT_EQ(emu::ex2_approx_ftz(-127.5f), 0) << "below the normal numbers";
    EXPECT_EQ(emu::rcp_approx_ftz(kInf), 0);
    EXPECT_EQ(emu::rcp_approx_ftz(-0.0f), -kInf);
    EXPECT_EQ(emu::rcp_approx_ftz(0x1p-130f), kInf);
    EXPECT_TRUE(std::isnan(emu::rcp_approx_ftz(kNan)));
}

TEST(Approximate, ExponentialsErrByWhatTheirHeaderSays)
{
    for (uint32_t bits = 0x80000000u; bits <= 0xff800000u; bits += 4093) {
        const float x = kernels::bit_cast<float>(bits);
        const double expected = std::exp((double)x), got = cuda::exp_as_stored<cuda::Halves>(x);
        const double allowed = 0x1p-22 + std::fabs((double)x) * 0x1p-23 + kRounding;
        if (expected < 0x1p-125)
            ASSERT_LE(got, 0x1p-124) << x;
        else
            ASSERT_LE(std::fabs(got / expected - 1), allowed) << x;
    }
    EXPECT_TRUE(std::isnan(cuda::exp_as_stored<cuda::Halves>(kNan)));
}

// ---- gelu of every half ---------------------------------------------------------------------------------------------

double exact_gelu(double x)
{
    return 0.5 * x * std::erfc(-x * std::sqrt(0.5));
}

double exact_gelu_tanh(double x)
{
    const double slope = 2 * std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x);
    return x / (1 + std::exp(-slope));
}

// Returns the distance of neighbours of T at x.
template <class T>
double unit(double x)
{
    constexpr bool kIsF16 = std::is_same_v<T, kernels::f16>;
    const int exponent = std::max(x == 0 ? -1000 : std::ilogb(x), kIsF16 ? -14 : -126);
    return std::ldexp(1.0, exponent - (kIsF16 ? 10 : 7));
}

// Compares for all x. The error before rounding to T is at most a tenth of a unit, and half as much for bfloat16.
template <class T, class F, class Reference>
void expect_near_everywhere(const F &f, const Reference &reference)
{
    for (uint32_t bits = 0; bits < 1u << 16; bits++) {
        const float x = kernels::load<T>(T{(uint16_t)bits});
        const float y = f(x);
        if (std::isnan(x)) {
            ASSERT_TRUE(std::isnan(y)) << bits;
        } else if (std::isinf(x)) {
            ASSERT_EQ(y, x > 0 ? kInf : 0.0f) << x;
        } else {
            const double expected = reference((double)x);
            const double flushed = std::is_same_v<T, kernels::f16> ? 0 : 0x1p-120;
            ASSERT_LE(std::fabs(y - expected), 0.1 * unit<T>(expected) + flushed) << x;
        }
    }
}

TEST(Approximate, GeluOfEveryHalf)
{
    expect_near_everywhere<kernels::f16>(cuda::FastGelu(), exact_gelu);
    expect_near_everywhere<kernels::bf16>(cuda::FastGelu(), exact_gelu);
    expect_near_everywhere<kernels::f16>(cuda::FastGeluTanh(), exact_gelu_tanh);
    expect_near_everywhere<kernels::bf16>(cuda::FastGeluTanh(), exact_gelu_tanh);
}

}  // namespace
