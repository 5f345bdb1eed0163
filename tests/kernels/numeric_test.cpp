// Conversions against a slow reference: the definition of round to nearest even, searched for among
// all values of the narrow format.
#include "kernels/common/numeric.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/common/span.h"

using namespace yoke::kernels;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// Returns the value of a format with 1 sign bit, `exponent` and `mantissa` bits, by its definition.
double decode(uint32_t bits, int exponent, int mantissa)
{
    int bias = (1 << (exponent - 1)) - 1;
    int e = (int)(bits >> mantissa) & ((1 << exponent) - 1);
    double fraction = (double)(bits & ((1u << mantissa) - 1)) * std::ldexp(1.0, -mantissa);
    double sign = bits >> (exponent + mantissa) & 1 ? -1.0 : 1.0;
    if (e == (1 << exponent) - 1) return fraction != 0 ? std::nan("") : sign * kInf;
    return sign * (e == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, e - bias));
}

struct Format {
    int exponent;
    int mantissa;
    std::vector<double> values;  // values of patterns 0, 1, … to infinity, ascending

    Format(int e, int m) : exponent(e), mantissa(m)
    {
        for (uint32_t bits = 0; bits <= ((1u << e) - 1) << m; ++bits)
            values.push_back(decode(bits, e, m));
    }

    // Infinity stands where the next power of two would: IEEE's rule of overflow.
    double place(size_t i) const
    {
        return i + 1 == values.size() ? std::ldexp(1.0, 1 << (exponent - 1)) : values[i];
    }

    uint32_t nearest_even(double x) const
    {
        double size = std::fabs(x);
        uint32_t sign = std::signbit(x) ? 1u << (exponent + mantissa) : 0u;
        size_t above =
            (size_t)(std::lower_bound(values.begin(), values.end(), size) - values.begin());
        if (above == 0 || values[above] == size) return sign | (uint32_t)above;
        // Exact in long double: the candidates have few bits, and halving loses none.
        long double middle = ((long double)place(above - 1) + place(above)) / 2;
        bool up = size > middle || ((long double)size == middle && above % 2 == 0);
        return sign | (uint32_t)(up ? above : above - 1);
    }
};

const Format kF16(5, 10);
const Format kBf16(8, 7);

float float_of(uint32_t bits)
{
    return bit_cast<float>(bits);
}
bool is_quiet_nan(float x)
{
    return x != x && (bit_cast<uint32_t>(x) & 0x00400000u);
}

}  // namespace

TEST(Numeric, EveryF16WidensExactlyAndNarrowsBack)
{
    for (uint32_t bits = 0; bits < 65536; ++bits) {
        f16 h{(uint16_t)bits};
        float x = f16_to_f32(h);
        double expected = decode(bits, 5, 10);
        if (std::isnan(expected)) {
            EXPECT_TRUE(is_quiet_nan(x)) << bits;
            EXPECT_EQ(f32_to_f16(x).bits, bits | 0x0200u);
        } else {
            EXPECT_EQ((double)x, expected) << bits;
            EXPECT_EQ(std::signbit(x), std::signbit(expected)) << bits;
            EXPECT_EQ(f32_to_f16(x).bits, bits);
        }
    }
}

TEST(Numeric, EveryBf16WidensExactlyAndNarrowsBack)
{
    for (uint32_t bits = 0; bits < 65536; ++bits) {
        bf16 b{(uint16_t)bits};
        float x = bf16_to_f32(b);
        double expected = decode(bits, 8, 7);
        bool nan = std::isnan(expected);
        EXPECT_EQ(std::isnan(x), nan) << bits;
        if (!nan) {
            EXPECT_EQ((double)x, expected) << bits;
        }
        EXPECT_EQ(f32_to_bf16(x).bits, nan ? bits | 0x0040u : bits);
    }
}

TEST(Numeric, FloatsAllOverTheRangeNarrowToTheNearestEvenValue)
{
    for (uint64_t bits = 0; bits < (1ull << 32); bits += 1009) {
        float x = float_of((uint32_t)bits);
        if (x != x) {
            EXPECT_TRUE(is_quiet_nan(f16_to_f32(f32_to_f16(x))) &&
                        is_quiet_nan(bf16_to_f32(f32_to_bf16(x))));
            continue;
        }
        ASSERT_EQ(f32_to_f16(x).bits, kF16.nearest_even(x)) << x;
        ASSERT_EQ(f32_to_bf16(x).bits, kBf16.nearest_even(x)) << x;
    }
}

// Ties and their neighbours: where a rounding error would show.
TEST(Numeric, MidpointsAndTheirNeighboursRoundOnceFromFloatAndDouble)
{
    for (const Format *format : {&kF16, &kBf16}) {
        for (size_t i = 0; i + 1 < format->values.size(); ++i) {
            double middle = (double)(((long double)format->place(i) + format->place(i + 1)) / 2);
            for (double x :
                 {middle, std::nextafter(middle, 0.0), std::nextafter(middle, kInf), -middle}) {
                uint32_t expected = format->nearest_even(x);
                uint32_t got = format == &kF16 ? convert<f16>(x).bits : convert<bf16>(x).bits;
                ASSERT_EQ(got, expected) << x;
                float f = (float)x;
                got = format == &kF16 ? convert<f16>(f).bits : convert<bf16>(f).bits;
                ASSERT_EQ(got, format->nearest_even(f)) << f;
            }
        }
    }
}

TEST(Numeric, DoublesNarrowLikeTheirSpecialValues)
{
    EXPECT_EQ(convert<f16>(kInf).bits, 0x7c00);
    EXPECT_EQ(convert<f16>(-1e300).bits, 0xfc00);
    EXPECT_EQ(convert<bf16>(-kInf).bits, 0xff80);
    EXPECT_EQ(convert<f16>(-0.0).bits, 0x8000);
    EXPECT_EQ(convert<bf16>(1e-300).bits, 0);
    EXPECT_TRUE(is_quiet_nan(f16_to_f32(convert<f16>(std::nan("")))));
    EXPECT_TRUE(is_quiet_nan(convert<float>(std::nan(""))));
}

TEST(Numeric, IntegersBecomeTheNearestHalf)
{
    std::mt19937_64 random(1);
    for (int i = 0; i < 200000; ++i) {
        int64_t x = (int64_t)random() >> (random() % 64);
        if (i % 3 == 0) x &= ~0xffffll;  // near a tie, then just off it
        for (int64_t y : {x, x + (x < INT64_MAX), x - (x > INT64_MIN)}) {
            uint32_t expected = kBf16.nearest_even((double)i64_to_f64_odd(y));
            ASSERT_EQ(convert<bf16>(y).bits, expected) << y;
            if (y > -(1ll << 53) && y < (1ll << 53)) {
                ASSERT_EQ(convert<bf16>(y).bits, kBf16.nearest_even((double)y)) << y;
                ASSERT_EQ(convert<f16>(y).bits, kF16.nearest_even((double)y)) << y;
            }
            ASSERT_EQ(convert<bf16>((int32_t)y).bits, kBf16.nearest_even((double)(int32_t)y));
        }
    }
    // 2^62 + 2^54 is a tie, and 1 more breaks the tie; a double cannot hold the 1.
    EXPECT_EQ(convert<bf16>((1ll << 62) + (1ll << 54)).bits, convert<bf16>(1ll << 62).bits);
    EXPECT_EQ(convert<bf16>((1ll << 62) + (1ll << 54) + 1).bits, convert<bf16>(1ll << 62).bits + 1);
    EXPECT_EQ(convert<f16>((int64_t)65519).bits, 0x7bff);
    EXPECT_EQ(convert<f16>((int64_t)65520).bits, 0x7c00);
    for (int x = -128; x < 256; ++x) {
        EXPECT_EQ(convert<float>(convert<f16>((int8_t)x)), (float)(int8_t)x);
        EXPECT_EQ(convert<float>(convert<f16>((uint8_t)x)), (float)(uint8_t)x);
    }
}

template <class To>
void expect_truncation()
{
    using Limits = std::numeric_limits<To>;
    for (double x :
         {0.0,           -0.0,   0.5,     -0.9,  1.99, 126.5,        127.0,        -128.0,
          -128.9,        255.0,  255.9,   256.0, -1.0, 2147483647.0, 2147483648.0, -2147483648.0,
          -2147483649.0, 9.3e18, -9.3e18, 1e300, kInf, -kInf}) {
        long double whole = std::trunc((long double)x);
        To expected = whole >= (long double)Limits::max()   ? Limits::max()
                      : whole <= (long double)Limits::min() ? Limits::min()
                                                            : (To)whole;
        EXPECT_EQ(convert<To>(x), expected) << x;
        float f = (float)x;
        whole = std::trunc((long double)f);
        expected = whole >= (long double)Limits::max()   ? Limits::max()
                   : whole <= (long double)Limits::min() ? Limits::min()
                                                         : (To)whole;
        EXPECT_EQ(convert<To>(f), expected) << f;
    }
    EXPECT_EQ(convert<To>(std::nanf("")), 0);
    EXPECT_EQ(convert<To>(std::nan("")), 0);
    EXPECT_EQ(convert<To>(f16{0x7e00}), 0);
    EXPECT_EQ(convert<To>(bf16{0x7f80}), Limits::max());
}

TEST(Numeric, FloatsTruncateAndSaturateToEveryInteger)
{
    expect_truncation<int64_t>();
    expect_truncation<int32_t>();
    expect_truncation<int8_t>();
    expect_truncation<uint8_t>();
}

TEST(Numeric, BoolIsTrueForWhatIsNotZero)
{
    EXPECT_FALSE(convert<bool8>(-0.0f).byte);
    EXPECT_FALSE(convert<bool8>(f16{0x8000}).byte);
    EXPECT_EQ(convert<bool8>(std::nan("")).byte, 1);
    EXPECT_EQ(convert<bool8>(bf16{1}).byte, 1);
    EXPECT_EQ(convert<bool8>((int64_t)1 << 40).byte, 1);
    EXPECT_EQ(convert<bool8>(5e-324).byte, 1);
    for (uint8_t byte : {1, 2, 127, 128, 255}) {
        EXPECT_EQ(load(bool8{byte}), 1);
        EXPECT_EQ(convert<int64_t>(bool8{byte}), 1);
        EXPECT_EQ(convert<float>(bool8{byte}), 1.0f);
        EXPECT_EQ(convert<f16>(bool8{byte}).bits, 0x3c00);
        EXPECT_EQ(convert<bool8>(bool8{byte}).byte, byte);
    }
    EXPECT_EQ(convert<double>(bool8{0}), 0.0);
}

TEST(Numeric, IntegersNarrowModuloTheirRange)
{
    EXPECT_EQ(convert<uint8_t>((int64_t)-1), 255);
    EXPECT_EQ(convert<int8_t>((int32_t)200), -56);
    EXPECT_EQ(convert<int32_t>(((int64_t)1 << 32) + 5), 5);
    EXPECT_EQ(convert<int64_t>((uint8_t)200), 200);
}

TEST(Numeric, RunsConvertLikeSingleElements)
{
    std::vector<f16> halves(65536 + 3);
    for (size_t i = 0; i < halves.size(); ++i) halves[i].bits = (uint16_t)i;
    std::vector<float> wide(halves.size());
    convert_span(halves.data(), (int64_t)halves.size(), wide.data());
    for (size_t i = 0; i < halves.size(); ++i)
        ASSERT_EQ(bit_cast<uint32_t>(wide[i]), bit_cast<uint32_t>(f16_to_f32(halves[i]))) << i;

    std::vector<float> floats;
    for (uint64_t bits = 0; bits < (1ull << 32); bits += 4001)
        floats.push_back(float_of((uint32_t)bits));
    std::vector<f16> narrow(floats.size());
    convert_span(floats.data(), (int64_t)floats.size(), narrow.data());
    for (size_t i = 0; i < floats.size(); ++i)
        ASSERT_EQ(narrow[i].bits, f32_to_f16(floats[i]).bits) << floats[i];
}
