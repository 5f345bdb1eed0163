// The float functions against the C library in double (their error there is beyond notice), over
// floats of every exponent. Errors are in units in the last place of the true value; the bounds are
// those math.h states.
#include "kernels/common/math.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <utility>

#include <gtest/gtest.h>

#include "kernels/common/normal.h"
#include "kernels/common/random_math.h"
#include "kernels/common/trigonometry.h"

namespace kernels = yoke::kernels;
using kernels::bit_cast;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
const float kNan = std::nanf("");
// Ours in float and the C library's in double.
#define YOKE_BOTH(f) [](float x) { return kernels::f(x); }, [](double x) { return std::f(x); }

constexpr uint64_t kStride = 1021;  // prime: all mantissas and exponents are visited
constexpr uint64_t kDense = 97;     // for what errs in a few binades alone

// Returns the distance between floats at x; below the normal numbers it stays the same.
double unit_in_last_place(double x)
{
    int exponent = std::max(x == 0 ? -1000 : std::ilogb(x), -126);
    return std::ldexp(1.0, exponent - 23);
}

double error_in_units(float got, double expected)
{
    // Overflow begins half a unit above the largest float: there infinity is the right answer.
    if (std::fabs(expected) > 0x1.ffffffp127)
        return std::isinf(got) && (got > 0) == (expected > 0) ? 0 : 1e9;
    if (std::isnan(got) || std::isinf(got)) return 1e9;
    return std::fabs((double)got - expected) / unit_in_last_place(expected);
}

struct Worst {
    double error = 0;
    float at = 0;
};

template <class F, class Reference>
Worst worst(F f, Reference reference, float from = -kInf, float to = kInf,
            uint64_t stride = kStride)
{
    Worst result;
    for (uint64_t bits = 0; bits < (1ull << 32); bits += stride) {
        float x = bit_cast<float>((uint32_t)bits);
        if (!(x >= from && x <= to) || std::isinf(x)) continue;
        double error = error_in_units(f(x), reference((double)x));
        if (error > result.error) result = {error, x};
    }
    return result;
}

void expect_within(const char *name, Worst found, double bound)
{
    EXPECT_LE(found.error, bound) << name << " at " << found.at;
    EXPECT_GT(found.error, 0.4) << "the measurement of " << name << " cannot be right";
    ::testing::Test::RecordProperty(name, std::to_string(found.error));
    printf("    %-12s %.3f units, at %a\n", name, found.error, (double)found.at);
}

// The quarter is subtracted first, exactly. Near a zero, 2 pi u itself would have lost the significant digits.
std::pair<long double, long double> sincos_reference(double u)
{
    int quarter = (int)std::rint(4 * u);
    long double angle = 2 * M_PIl * ((long double)u - 0.25L * quarter);
    long double s = std::sin(angle), c = std::cos(angle);
    switch (quarter % 4) {
        case 0:
            return {s, c};
        case 1:
            return {c, -s};
        case 2:
            return {-s, -c};
        default:
            return {-c, s};
    }
}

bool same(float a, float b)
{
    return (a != a && b != b) || bit_cast<uint32_t>(a) == bit_cast<uint32_t>(b);
}

}  // namespace

TEST(Math, FloatFunctionsStayWithinTheirStatedErrors)
{
    auto exact_exp = [](double x) { return std::exp(x); };
    auto tail = [](float x) { return kernels::normal_tail(x).tail; };
    auto density = [](float x) { return kernels::normal_tail(x).density; };
    expect_within("exp", worst(YOKE_BOTH(exp), -110, 100), 1);
    expect_within("exp_small",
                  worst([](float x) { return kernels::exp_small(x); }, exact_exp, -110, 43), 1.4);
    expect_within("exp_not_large",
                  worst([](float x) { return kernels::exp_not_large(x); }, exact_exp, -1000, 43),
                  1.4);
    expect_within("log", worst(YOKE_BOTH(log), 1e-45f), 0.8);
    expect_within("tanh", worst(YOKE_BOTH(tanh)), 1.5);
    expect_within("erf", worst(YOKE_BOTH(erf)), 1.2);
    expect_within("sin", worst(YOKE_BOTH(sin)), 0.6);
    expect_within("cos", worst(YOKE_BOTH(cos)), 0.6);
    auto exact_tail = [](double x) { return 0.5 * std::erfc(x * M_SQRT1_2); };
    expect_within("normal_tail", worst(tail, exact_tail, 0, 6, kDense), 7.5);
    expect_within("normal_tail, far", worst(tail, exact_tail, 6, 14.5f, kDense), 12);
    expect_within(
        "normal_density",
        worst(
            density, [](double x) { return std::exp(-0.5 * x * x) / std::sqrt(2 * M_PI); }, 0,
            14.5f, kDense),
        2.1);
}

// Arguments that a stride may skip: the arguments nearest to multiples of pi/2 and the borders of every reduction.
TEST(Math, SineAndCosineHoldWhereReductionIsHardest)
{
    for (float x :
         {0x1.6ac5b2p+94f, 0x1.ddebdep+34f, 0x1.921fb6p+0f, 0x1.921fb6p+1f, 0x1.4d0e2p+18f,
          0x1.fffffep+127f, 0x1p25f, 0x1.fffffep24f, 0x1p20f, 16367173.0f * 0x1p72f}) {
        for (float y : {x, -x, std::nextafter(x, 0.0f)}) {
            EXPECT_LE(error_in_units(kernels::sin(y), std::sin((double)y)), 0.6) << y;
            EXPECT_LE(error_in_units(kernels::cos(y), std::cos((double)y)), 0.6) << y;
        }
    }
}

TEST(Math, SpecialValuesAreThoseOfTheCLibrary)
{
    for (float x : {0.0f, -0.0f, kInf, -kInf, kNan, 1e-45f, -1e-45f, 0x1p-126f, 3.4e38f, -3.4e38f,
                    -1.0f, 88.8f, -104.0f, -87.5f, 1.0f}) {
        EXPECT_TRUE(same(kernels::tanh(x), std::tanh(x)) || std::fabs(x) == 1.0f) << x;
        EXPECT_LE(std::isnan(x) ? !std::isnan(kernels::exp(x))
                                : error_in_units(kernels::exp(x), std::exp((double)x)),
                  1)
            << x;
        bool log_special = !(x > 0) || std::isinf(x);
        EXPECT_TRUE(!log_special || same(kernels::log(x), std::log(x))) << x;
        EXPECT_TRUE(!(std::isnan(x) || std::isinf(x)) || std::isnan(kernels::sin(x))) << x;
        EXPECT_TRUE(!(std::isnan(x) || std::isinf(x)) || std::isnan(kernels::cos(x))) << x;
        EXPECT_EQ(std::isnan(kernels::erf(x)), std::isnan(x)) << x;
    }
    EXPECT_TRUE(same(kernels::exp(-kInf), 0.0f));
    EXPECT_TRUE(same(kernels::log(1.0f), 0.0f));
    EXPECT_TRUE(same(kernels::sin(-0.0f), -0.0f));
    EXPECT_TRUE(same(kernels::erf(-0.0f), -0.0f));
    EXPECT_TRUE(same(kernels::erf(-kInf), -1.0f));
    EXPECT_TRUE(same(kernels::exp_not_large(-kInf), 0.0f));
    EXPECT_TRUE(std::isnan(kernels::exp_not_large(kNan)));
    EXPECT_TRUE(same(kernels::exp_small(0.0f), 1.0f));
    EXPECT_TRUE(same(kernels::normal_tail(0.0f).tail, 0.5f));
    EXPECT_TRUE(same(kernels::normal_tail(kernels::kNormalReach<float>).tail, 0.0f));
    for (float x : {kInf, -kInf, kNan})
        EXPECT_TRUE(same(kernels::magnitude_at_most(x, 14.5f), 14.5f)) << x;
    EXPECT_TRUE(same(kernels::magnitude_at_most(-0.0f, 14.5f), 0.0f));
}

TEST(Math, RandomTransformsStayWithinTheirStatedErrors)
{
    std::mt19937_64 random(7);
    double log64 = 0, sin64 = 0, cos64 = 0, sin32 = 0, cos32 = 0;
    for (int i = 0; i < 1000000; ++i) {
        double u = (double)(random() >> 11) * 0x1p-53;
        double x = i % 2 ? u + 0x1p-53 : std::ldexp(u + 1, -(int)(random() % 60));
        long double expected = std::log((long double)x);
        if (expected != 0)
            log64 = std::max(log64, (double)(std::fabs(kernels::random_log(x) - expected) /
                                             std::ldexp(1.0L, std::ilogb(expected) - 52)));
        kernels::SinCos<double> y = kernels::sincos_turns(u);
        std::pair<long double, long double> exact = sincos_reference(u);
        long double s = exact.first, c = exact.second;
        sin64 =
            std::max(sin64, (double)(std::fabs(y.sin - s) / std::ldexp(1.0L, std::ilogb(s) - 52)));
        cos64 =
            std::max(cos64, (double)(std::fabs(y.cos - c) / std::ldexp(1.0L, std::ilogb(c) - 52)));
        float v = (float)(random() >> 40) * 0x1p-24f;
        kernels::SinCos<float> z = kernels::sincos_turns(v);
        double turn = 4 * (double)v;
        if (turn != std::floor(turn)) {
            sin32 = std::max(sin32, error_in_units(z.sin, (double)sincos_reference(v).first));
            cos32 = std::max(cos32, error_in_units(z.cos, (double)sincos_reference(v).second));
        }
    }
    printf("    log64 %.3f, sin64 %.3f, cos64 %.3f, sin32 %.3f, cos32 %.3f units\n", log64, sin64,
           cos64, sin32, cos32);
    EXPECT_LE(log64, 1.0);
    EXPECT_LE(std::max(sin64, cos64), 2.0);
    EXPECT_LE(std::max(sin32, cos32), 2.0);
    EXPECT_GT(std::min({log64, sin64, cos64, sin32, cos32}), 0.4);
}

TEST(Math, WholeQuarterTurnsAreExact)
{
    for (int quarter = 0; quarter < 4; ++quarter) {
        const int expected[5] = {0, 1, 0, -1, 0};
        kernels::SinCos<float> f = kernels::sincos_turns(0.25f * (float)quarter);
        kernels::SinCos<double> d = kernels::sincos_turns(0.25 * quarter);
        EXPECT_EQ(f.sin, (float)expected[quarter]);
        EXPECT_EQ(f.cos, (float)expected[quarter + 1]);
        EXPECT_EQ(d.sin, expected[quarter]);
        EXPECT_EQ(d.cos, expected[quarter + 1]);
    }
}
