// Philox against published vectors, and the transforms: range, moments, independence of the cuts of a draw.
#include "kernels/common/philox.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

using namespace yoke::kernels;

namespace {

template <class T, class Distribution>
std::vector<T> draw(const Distribution &distribution, int64_t n, uint64_t seed = 42)
{
    std::vector<T> out((size_t)n);
    random_fill(distribution, seed, 0, 0, n, out.data());
    return out;
}

struct SampleMoments {
    double mean = 0, variance = 0, kurtosis = 0, next = 0;  // next: correlation with the neighbour
};

template <class T>
SampleMoments moments(const std::vector<T> &x)
{
    SampleMoments m;
    double n = (double)x.size();
    for (T v : x) m.mean += (double)v / n;
    for (size_t i = 0; i < x.size(); ++i) {
        double d = (double)x[i] - m.mean;
        m.variance += d * d / n;
        m.kurtosis += d * d * d * d / n;
        if (i > 0) m.next += d * ((double)x[i - 1] - m.mean) / n;
    }
    m.kurtosis /= m.variance * m.variance;
    m.next /= m.variance;
    return m;
}

// The known answers of Random123's kat_vectors for philox4x32-10.
void expect_words(Words counter, uint32_t key0, uint32_t key1, std::array<uint32_t, 4> expected)
{
    Words got = philox4x32(counter, key0, key1);
    for (int draw = 0; draw < 4; ++draw) EXPECT_EQ(got.w[draw], expected[draw]) << draw;
}

// Any cut into spans must give the numbers of one span.
template <class T, class Distribution>
void expect_cut_independent(const Distribution &distribution)
{
    constexpr int64_t kCount = 103;
    std::vector<T> whole = draw<T>(distribution, kCount);
    for (int64_t width : {1, 2, 3, 5, 7, 8, 64}) {
        std::vector<T> cut((size_t)kCount);
        for (int64_t i = 0; i < kCount; i += width)
            random_fill(distribution, 42, 0, i, std::min(i + width, kCount), cut.data());
        EXPECT_TRUE(std::equal(whole.begin(), whole.end(), cut.begin(), [](T a, T b) {
            return memcmp(&a, &b, sizeof(T)) == 0;
        })) << width;
    }
    // A draw with a start 1 counter later gives elements kDraws later.
    std::vector<T> later((size_t)(kCount - Distribution::kDraws));
    random_fill(distribution, 42, 1, 0, (int64_t)later.size(), later.data());
    EXPECT_EQ(memcmp(later.data(), whole.data() + Distribution::kDraws, later.size() * sizeof(T)),
              0);
}

}  // namespace

TEST(Philox, MatchesThePublishedKnownAnswers)
{
    const uint32_t f = 0xffffffffu;
    expect_words({{0, 0, 0, 0}}, 0, 0, {0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u});
    expect_words({{f, f, f, f}}, f, f, {0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu});
    expect_words({{0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}}, 0xa4093822u, 0x299f31d0u,
                 {0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u});
}

TEST(Philox, ElementTakesLaneOfItsCounter)
{
    std::vector<float> x = draw<float>(Uniform<float>(), 40, 9);
    for (size_t i = 0; i < x.size(); ++i)
        EXPECT_EQ(x[i], unit_f32(random_block(9, i / 4).w[i % 4]));
    EXPECT_EQ(blocks_used<4>(0), 0u);
    EXPECT_EQ(blocks_used<4>(5), 2u);
    EXPECT_EQ(blocks_used<2>(5), 3u);
    // The counter's upper half and both halves of the seed count.
    EXPECT_NE(random_block(0, 1ull << 32).w[0], random_block(0, 0).w[0]);
    EXPECT_NE(random_block(1ull << 32, 0).w[0], random_block(0, 0).w[0]);
}

TEST(Philox, DrawsDoNotDependOnHowTheyAreCut)
{
    expect_cut_independent<float>(Uniform<float>());
    expect_cut_independent<f16>(Uniform<f16>());
    expect_cut_independent<double>(Uniform<double>());
    expect_cut_independent<float>(StandardNormal<float>());
    expect_cut_independent<bf16>(StandardNormal<bf16>());
    expect_cut_independent<double>(StandardNormal<double>());
    expect_cut_independent<int32_t>(UniformInteger{-5, 12});
    expect_cut_independent<uint8_t>(Keep::dropping(0.3));
}

TEST(Philox, UnitsStayBelowOneAndReachTheirEnds)
{
    EXPECT_EQ(unit_f32(0xffffffffu), 1.0f - 0x1p-24f);
    EXPECT_EQ(unit_f64(~0ull), 1.0 - 0x1p-53);
    EXPECT_EQ(unit_f32(255), 0.0f);
    EXPECT_EQ(unit_f64(2047), 0.0);
    EXPECT_EQ(positive_unit_f32(0), 0x1p-32f);
    EXPECT_EQ(positive_unit_f32(0xffffffffu), 1.0f);
    EXPECT_EQ(positive_unit_f64(0), 0x1p-53);
    EXPECT_EQ(positive_unit_f64(~0ull), 1.0);
    Words ones{{~0u, ~0u, ~0u, ~0u}};
    float values[4];
    Uniform<f16>()(ones, values);
    EXPECT_EQ(convert<float>(convert<f16>(values[0])), values[0]);
    EXPECT_LT(values[0], 1.0f);
    Uniform<bf16>()(ones, values);
    EXPECT_EQ(convert<float>(convert<bf16>(values[0])), values[0]);
    EXPECT_LT(values[0], 1.0f);
}

// 2^20 draws: the mean's standard error is 2^-10 deviations, a variance's about 1.4 of that; five of each is allowed.
TEST(Philox, UniformsHaveTheMomentsOfTheirDistribution)
{
    for (SampleMoments m : {moments(draw<float>(Uniform<float>(), 1 << 20)),
                            moments(draw<double>(Uniform<double>(), 1 << 20))}) {
        EXPECT_NEAR(m.mean, 0.5, 5 * std::sqrt(1.0 / 12) / 1024);
        EXPECT_NEAR(m.variance, 1.0 / 12, 5 * 1.4 / 12 / 1024);
        EXPECT_NEAR(m.kurtosis, 1.8, 0.02);
        EXPECT_NEAR(m.next, 0, 5.0 / 1024);
    }
}

TEST(Philox, UniformsFillEveryCellEvenly)
{
    std::array<int, 256> cells{};
    for (float x : draw<float>(Uniform<float>(), 1 << 20)) ++cells[(size_t)(x * 256)];
    double chi_square = 0;
    for (int count : cells) chi_square += (count - 4096.0) * (count - 4096.0) / 4096.0;
    EXPECT_GT(chi_square,
              255 - 5 * 22.6);  // 255 degrees of freedom: deviation 22.6; too even is wrong as well
    EXPECT_LT(chi_square, 255 + 5 * 22.6);
}

TEST(Philox, NormalsHaveTheMomentsOfTheirDistribution)
{
    for (SampleMoments m : {moments(draw<float>(StandardNormal<float>(), 1 << 20)),
                            moments(draw<double>(StandardNormal<double>(), 1 << 20))}) {
        EXPECT_NEAR(m.mean, 0, 5.0 / 1024);
        EXPECT_NEAR(m.variance, 1, 5 * 1.42 / 1024);
        EXPECT_NEAR(m.kurtosis, 3, 5 * 4.9 / 1024);
        EXPECT_NEAR(m.next, 0, 5.0 / 1024);
    }
}

TEST(Philox, NormalsFollowTheNormalDistributionFunction)
{
    std::vector<float> x = draw<float>(StandardNormal<float>(), 1 << 20);
    std::sort(x.begin(), x.end());
    double distance = 0;  // Kolmogorov and Smirnov's
    for (size_t i = 0; i < x.size(); ++i) {
        double expected = 0.5 * std::erfc(-(double)x[i] / std::sqrt(2.0));
        distance = std::max(distance, std::fabs(expected - ((double)i + 0.5) / (double)x.size()));
    }
    EXPECT_LT(distance, 2.0 / 1024);  // exceeded once in 1,500 samples of this size
}

TEST(Philox, BoxMullerIsFiniteAtItsEnds)
{
    for (uint32_t a : {0u, ~0u}) {
        for (uint32_t b : {0u, ~0u, 1u << 30}) {
            NormalPair<float> pair = box_muller(a, b);
            EXPECT_LE(std::hypot(pair.first, pair.second), 6.67f);
            NormalPair<double> wide = box_muller((uint64_t)a << 32 | a, (uint64_t)b << 32 | b);
            EXPECT_LE(std::hypot(wide.first, wide.second), 8.6);
        }
    }
}

TEST(Philox, IntegersCoverTheirRangeEvenly)
{
    std::array<int, 7> seen{};
    for (int64_t x : draw<int64_t>(UniformInteger{-3, 4}, 70000)) {
        ASSERT_GE(x, -3);
        ASSERT_LT(x, 4);
        ++seen[(size_t)(x + 3)];
    }
    for (int count : seen) EXPECT_NEAR(count, 10000, 5 * 93);
    for (int64_t x : draw<int64_t>(UniformInteger{8, 9}, 100)) EXPECT_EQ(x, 8);
    bool low = false, high = false;  // the widest range there is
    for (int64_t x : draw<int64_t>(UniformInteger{INT64_MIN, INT64_MAX}, 100))
        (x < 0 ? low : high) = true;
    EXPECT_TRUE(low && high);
    __extension__ using Wide = unsigned __int128;
    Wide product = (Wide)0xfedcba9876543210ull * 0xf0f1f2f3f4f5f6f7ull;
    EXPECT_EQ(multiply_high(0xfedcba9876543210ull, 0xf0f1f2f3f4f5f6f7ull),
              (uint64_t)(product >> 64));
    EXPECT_EQ(multiply_high(~0ull, ~0ull), ~0ull - 1);
}

TEST(Philox, DropoutKeepsItsShareAndHonoursZeroAndOne)
{
    for (double p : {0.1, 0.5, 0.9}) {
        std::vector<uint8_t> mask = draw<uint8_t>(Keep::dropping(p), 1 << 20);
        double kept = (double)std::count(mask.begin(), mask.end(), 1) / (1 << 20);
        EXPECT_NEAR(kept, 1 - p, 5 * 0.5 / 1024);
    }
    std::vector<uint8_t> none = draw<uint8_t>(Keep::dropping(1), 10000);
    EXPECT_EQ(std::count(none.begin(), none.end(), 1), 0);
    std::vector<uint8_t> all = draw<uint8_t>(Keep::dropping(0), 10000);
    EXPECT_EQ(std::count(all.begin(), all.end(), 1), 10000);
    EXPECT_FALSE((Keep::dropping(1).threshold <= (~0u >> 1)));
}
