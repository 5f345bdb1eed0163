// The functions of exponentials.h and arcs.h against the C library in double, over floats of every exponent: errors in
// units in the last place, within the bounds that the headers state; and special values.
#include "kernels/common/functions.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "kernels/common/quotient.h"

namespace kernels = yoke::kernels;
using kernels::bit_cast;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr uint64_t kStride = 1021;  // prime: all mantissas and exponents are visited

double error_in_units(float got, double expected)
{
    if (std::fabs(expected) > 0x1.ffffffp127)
        return std::isinf(got) && (got > 0) == (expected > 0) ? 0 : 1e9;
    if (std::isnan(got) || std::isinf(got)) return 1e9;
    const int exponent = std::max(expected == 0 ? -1000 : std::ilogb(expected), -126);
    return std::fabs((double)got - expected) / std::ldexp(1.0, exponent - 23);
}

template <class F, class Reference>
void expect_within(const char *name, F f, Reference reference, float from, float to, double bound)
{
    double worst = 0;
    float at = 0;
    for (uint64_t bits = 0; bits < (1ull << 32); bits += kStride) {
        const float x = bit_cast<float>((uint32_t)bits);
        if (!(x >= from && x <= to) || std::isinf(x)) continue;
        const double error = error_in_units(f(x), reference((double)x));
        if (error > worst) worst = error, at = x;
    }
    EXPECT_LE(worst, bound) << name << " at " << at;
    EXPECT_GT(worst, 0.4) << "the measurement of " << name << " cannot be right";
    printf("    %-8s %.3f units, at %a\n", name, worst, (double)at);
}

#define YOKE_BOTH(f) #f, [](float x) { return kernels::f(x); }, [](double x) { return std::f(x); }

}  // namespace

TEST(Functions, FloatsStayWithinTheirStatedErrors)
{
    expect_within(YOKE_BOTH(log1p), -0.99999994f, kInf, 1.4);
    expect_within(YOKE_BOTH(log2), 1e-45f, kInf, 1.2);
    expect_within(YOKE_BOTH(log10), 1e-45f, kInf, 1.6);
    expect_within(YOKE_BOTH(exp2), -160, 140, 1.5);
    expect_within(YOKE_BOTH(expm1), -200, 100, 1.6);
    expect_within(YOKE_BOTH(sinh), -100, 100, 1.9);
    expect_within(YOKE_BOTH(cosh), -100, 100, 1.6);
    expect_within(YOKE_BOTH(tan), -kInf, kInf, 0.6);
    expect_within(YOKE_BOTH(atan), -kInf, kInf, 1.6);
    expect_within(YOKE_BOTH(asin), -1, 1, 0.6);
    expect_within(YOKE_BOTH(acos), -1, 1, 1.1);
    expect_within(
        "erfinv", [](float x) { return kernels::erfinv(x); },
        [](double x) { return kernels::erfinv(x); }, -0.99999994f, 0.99999994f, 2.1);
}

// In double, erfinv is compared with a step of Newton's method in long double.
TEST(Functions, TheInverseOfErfHoldsInDouble)
{
    double worst = 0;
    for (int i = 0; i < 300000; ++i) {
        const double u = (i + 0.5) / 300000;
        const double x = i % 3 == 0   ? 1 - std::ldexp(u + 0.5, -(i % 52) - 1)
                         : i % 3 == 1 ? u
                                      : std::ldexp(u, -(i % 200));
        if (!(x < 1)) continue;
        const long double y = kernels::erfinv(x);
        long double z = y;
        for (int step = 0; step < 3; ++step) {
            const long double error =
                x < 0.5 ? std::erf(z) - (long double)x : (1 - (long double)x) - std::erfc(z);
            z -= error * 0.886226925452758013649L * std::exp(z * z);
        }
        worst = std::max(worst, (double)(std::fabs(y - z) / std::ldexp(1.0L, std::ilogb(z) - 52)));
    }
    printf("    erfinv64 %.3f units\n", worst);
    EXPECT_LE(worst, 4);
}

TEST(Functions, SpecialValuesAreThoseOfTheCLibrary)
{
    const auto same = [](float a, float b) {
        return (a != a && b != b) || bit_cast<uint32_t>(a) == bit_cast<uint32_t>(b);
    };
    const float places[] = {0.0f, -0.0f, kInf, -kInf, std::nanf(""), 1.0f, -1.0f, 2.0f, -2.0f};
    for (const float x : places) {
        EXPECT_TRUE(same(kernels::log1p(x), std::log1p(x)) || x > 0) << x;
        EXPECT_TRUE(same(kernels::log2(x), std::log2(x))) << x;
        EXPECT_TRUE(same(kernels::log10(x), std::log10(x)) || x == 2) << x;
        EXPECT_TRUE(same(kernels::exp2(x), std::exp2(x))) << x;
        EXPECT_TRUE(same(kernels::expm1(x), std::expm1(x)) || std::fabs(x) >= 1) << x;
        EXPECT_TRUE(same(kernels::atan(x), std::atan(x)) || std::fabs(x) == 2) << x;
        EXPECT_TRUE(same(kernels::asin(x), std::asin(x))) << x;
        EXPECT_TRUE(same(kernels::acos(x), std::acos(x))) << x;
        for (const float y : places) {
            const float angle = kernels::atan2(x, y), exact = std::atan2(x, y);
            EXPECT_TRUE(same(angle, exact) || std::fabs(angle - exact) < 5e-7f) << x << ' ' << y;
            EXPECT_EQ(std::signbit(angle), std::signbit(exact)) << x << ' ' << y;
        }
    }
    EXPECT_TRUE(same(kernels::expm1(kInf), kInf) && same(kernels::expm1(-kInf), -1.0f));
    EXPECT_TRUE(same(kernels::sinh(kInf), kInf) && same(kernels::cosh(-kInf), kInf));
    EXPECT_TRUE(std::isnan(kernels::tan(kInf)) && std::isnan(kernels::erfinv(1.5f)));
    EXPECT_TRUE(same(kernels::erfinv(-1.0f), -kInf) && same(kernels::erfinv(-0.0f), -0.0f));
}

// Where quick() does not say that its result is wrong, it has the bits of the exact function.
TEST(Functions, QuickQuotientsAreExact)
{
    std::mt19937_64 random(46);
    int right = 0;
    for (int i = 0; i < 2000000; ++i) {
        uint32_t a = (uint32_t)random(), b = (uint32_t)random();
        if (i % 2) b = (a & 0x7f800000u) - ((b >> 8 & 15u) << 23) + (b & 0x807fffffu);
        const float x = bit_cast<float>(a), y = bit_cast<float>(b);
        const kernels::QuickResult f = kernels::Fmod::quick(x, y);
        if (f.wrong != 0) continue;
        ++right;
        ASSERT_EQ(bit_cast<uint32_t>(f.value), bit_cast<uint32_t>(std::fmod(x, y)))
            << x << ' ' << y;
        const kernels::QuickResult r = kernels::Remainder::quick(x, y);
        ASSERT_EQ(bit_cast<uint32_t>(r.value), bit_cast<uint32_t>(kernels::Remainder()(x, y)));
        const kernels::QuickResult d = kernels::FloorDivide::quick(x, y);
        ASSERT_EQ(d.value, kernels::FloorDivide()(x, y)) << x << ' ' << y;
    }
    EXPECT_GT(right, 1000000);
}
