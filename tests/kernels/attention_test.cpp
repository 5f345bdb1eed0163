// The arithmetic of attention's rows, against doubles.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/common/attention.h"

using namespace yoke::kernels;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// A row's maximum and sum, carried over blocks of `block` scores as the kernels do.
struct Carried {
    float max = -kInf, sum = 0;

    Carried(const std::vector<float> &scores, size_t block)
    {
        for (size_t begin = 0; begin < scores.size(); begin += block) {
            const size_t end = std::min(scores.size(), begin + block);
            float top = max;
            for (size_t i = begin; i < end; i++) top = std::max(top, scores[i]);
            const float shift = attention_shift(top);
            sum *= attention_rescale(max, shift);
            for (size_t i = begin; i < end; i++) sum += attention_weight(scores[i], shift);
            max = top;
        }
    }
};

}  // namespace

TEST(Attention, ARowsSumDoesNotDependOnHowItIsCutIntoBlocks)
{
    std::vector<float> scores;
    for (int i = 0; i < 200; i++) scores.push_back(20.0f * std::sin(0.7f * (float)i));
    double exact = 0;
    for (float s : scores) exact += std::exp((double)s);
    for (size_t block : {1, 7, 64, 200}) {
        const Carried row(scores, block);
        EXPECT_NEAR(attention_log_sum_exp(row.max, row.sum), std::log(exact), 4e-6);
        double total = 0;
        for (float s : scores)
            total += attention_probability(s, attention_log_sum_exp(row.max, row.sum));
        EXPECT_NEAR(total, 1, 1e-5);
        EXPECT_NEAR(attention_normaliser(row.sum) * row.sum, 1, 1e-6);
    }
}

TEST(Attention, ARowWithoutAnyKeyHasNoWeightAndNoGradient)
{
    for (const std::vector<float> &scores : {std::vector<float>{}, std::vector<float>(70, -kInf)}) {
        const Carried row(scores, 32);
        EXPECT_EQ(row.sum, 0);
        EXPECT_EQ(attention_normaliser(row.sum), 0);
        const float lse = attention_log_sum_exp(row.max, row.sum);
        EXPECT_EQ(lse, kInf);
        EXPECT_EQ(attention_probability(-kInf, lse), 0);
        EXPECT_EQ(attention_probability(5.0f, lse), 0);
        EXPECT_EQ(attention_score_backward(0.0f, 3.0f, 0.0f), 0);
    }
}

TEST(Attention, BlocksOfForbiddenKeysBeforeAllowedOnesLeaveNoTrace)
{
    std::vector<float> scores(64, -kInf);
    scores.insert(scores.end(), {1.0f, 2.0f});
    const Carried row(scores, 16);
    EXPECT_NEAR(attention_log_sum_exp(row.max, row.sum), std::log(std::exp(1.0) + std::exp(2.0)),
                1e-6);
}

TEST(Attention, NanAndInfinityAmongTheScoresAreNotHidden)
{
    const Carried nan({1.0f, std::nanf(""), 2.0f}, 8), infinite({1.0f, kInf}, 8);
    EXPECT_TRUE(std::isnan(attention_log_sum_exp(nan.max, nan.sum)));
    EXPECT_TRUE(std::isnan(attention_normaliser(infinite.sum)));
}

TEST(Attention, NoTwoPairsShareAnElementOfDropoutsDraw)
{
    const int64_t heads = 2, keys = 3, queries = 6;
    std::vector<int> used(heads * keys * 8);
    for (int64_t head = 0; head < heads; head++)
        for (int64_t key = 0; key < keys; key++)
            for (int64_t query = 0; query < queries; query++)
                EXPECT_EQ(used.at((size_t)attention_draw(head, key, query, keys, queries))++, 0);
    EXPECT_EQ(attention_draw(1, 2, 0, keys, queries) % 4, 0);
}
