// Examples of each rank: core/parallel/sampler.cpp.
#include "core/parallel/sampler.h"

#include "tests/core/expect_error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

namespace yoke::test {
namespace {

using Indices = std::vector<int64_t>;

Ref<yoke_sampler> sampler(SamplerOptions options)
{
    return Ref<yoke_sampler>::adopt(new yoke_sampler(std::move(options)));
}

Indices take(yoke_sampler &from, int64_t most = INT64_MAX)
{
    Indices taken;
    while (std::ssize(taken) < most) {
        const std::optional<int64_t> next = from.next();
        if (!next) break;
        taken.push_back(*next);
    }
    return taken;
}

Indices pass_of(yoke_sampler &from)
{
    const int64_t length = from.length();
    from.begin();
    const Indices all = take(from);
    EXPECT_EQ(std::ssize(all), length);
    return all;
}

SamplerOptions options_of(int64_t count, int32_t rank, int32_t size)
{
    SamplerOptions options;
    options.count = count;
    options.rank = rank;
    options.size = size;
    return options;
}

Indices sorted(Indices indices)
{
    std::ranges::sort(indices);
    return indices;
}

Indices all_of(int64_t count)
{
    Indices all(static_cast<size_t>(count));
    std::iota(all.begin(), all.end(), 0);
    return all;
}

TEST(Sampler, DealsInOrderAndPadsWithTheBeginning)
{
    auto plain = [](int64_t count, int32_t rank, bool drops_last, bool is_padded) {
        SamplerOptions options = options_of(count, rank, 4);
        options.is_shuffled = false;
        options.drops_last = drops_last;
        options.is_padded = is_padded;
        return pass_of(*sampler(options));
    };
    EXPECT_EQ(plain(10, 0, false, true), (Indices{0, 4, 8}));
    EXPECT_EQ(plain(10, 2, false, true), (Indices{2, 6, 0}));
    EXPECT_EQ(plain(10, 3, false, true), (Indices{3, 7, 1}));
    EXPECT_EQ(plain(10, 3, true, true), (Indices{3, 7}));
    EXPECT_EQ(plain(10, 1, true, false), (Indices{1, 5}));
    EXPECT_EQ(plain(10, 1, false, false), (Indices{1, 5, 9}));
    EXPECT_EQ(plain(10, 3, false, false), (Indices{3, 7}));
    EXPECT_EQ(plain(2, 3, false, true), (Indices{1})) << "padded more than once over";
    EXPECT_EQ(plain(2, 3, true, true), Indices());
    EXPECT_EQ(plain(0, 0, false, true), Indices());
}

TEST(Sampler, ShufflesByPermutationsThatDifferByEpochAndSeed)
{
    std::set<Indices> seen;
    for (const int64_t count : {1, 2, 3, 5, 64, 65, 1000})
        for (const int64_t seed : {0, 1, -7})
            for (const int64_t epoch : {0, 1, 2}) {
                const Shuffle shuffle(count, seed, epoch);
                Indices order;
                for (int64_t i = 0; i < count; ++i) order.push_back(shuffle(i));
                EXPECT_EQ(sorted(order), all_of(count)) << count;
                if (count == 1000) seen.insert(order);
            }
    EXPECT_EQ(seen.size(), 9u);
}

// Each index comes to each place about equally often: the statistic is of a chi-square test with 16 degrees of
// freedom an index, and the seeds are fixed.
TEST(Sampler, ShufflesEvenly)
{
    constexpr int64_t kCount = 5, kDraws = 20000;
    double counts[kCount][kCount] = {};
    for (int64_t epoch = 0; epoch < kDraws; ++epoch) {
        const Shuffle shuffle(kCount, 3, epoch);
        for (int64_t place = 0; place < kCount; ++place) ++counts[place][shuffle(place)];
    }
    constexpr double kExpected = double{kDraws} / kCount;
    double chi = 0;
    for (const auto &row : counts)
        for (const double each : row) chi += (each - kExpected) * (each - kExpected) / kExpected;
    EXPECT_LT(chi, 40);
}

TEST(Sampler, WithoutPaddingGivesEachExampleToOneRank)
{
    for (const int32_t size : {1, 2, 3, 7}) {
        Indices all;
        for (int32_t rank = 0; rank < size; ++rank) {
            SamplerOptions options = options_of(101, rank, size);
            options.is_padded = false;
            const Indices own = pass_of(*sampler(options));
            all.insert(all.end(), own.begin(), own.end());
        }
        EXPECT_EQ(sorted(all), all_of(101)) << size;
    }
}

TEST(Sampler, GoesOnWithOtherRanksWithoutLossOrRepeat)
{
    Indices all;
    SamplerState state;
    for (int32_t rank = 0; rank < 3; ++rank) {
        const auto before = sampler(options_of(100, rank, 3));
        before->set_epoch(4);
        before->begin();
        const Indices own = take(*before, 11);
        all.insert(all.end(), own.begin(), own.end());
        state = before->state();
        EXPECT_EQ(state.consumed, 33);
        EXPECT_EQ(state.epoch, 4);
    }
    for (int32_t rank = 0; rank < 4; ++rank) {
        SamplerOptions options = options_of(100, rank, 4);
        options.is_padded = false;
        const auto after = sampler(options);
        after->load(state);
        after->set_epoch(4);
        EXPECT_EQ(after->state().consumed, 33);
        const Indices own = pass_of(*after);
        all.insert(all.end(), own.begin(), own.end());
        EXPECT_EQ(after->state().consumed, 100);
        after->set_epoch(5);
        EXPECT_EQ(after->state().consumed, 0);
        EXPECT_EQ(pass_of(*after).size(), 25u);
    }
    EXPECT_EQ(sorted(all), all_of(100));
}

TEST(Sampler, DealsBySharesInEveryStep)
{
    const std::vector<double> shares{0.5, 0.3, 0.2};
    std::vector<Ref<yoke_sampler>> ranks;
    for (int32_t rank = 0; rank < 3; ++rank) {
        SamplerOptions options = options_of(1000, rank, 3);
        options.shares = shares;
        options.is_shuffled = false;
        ranks.push_back(sampler(options));
        EXPECT_EQ(ranks.back()->length(), std::llround(1000 * shares[static_cast<size_t>(rank)]));
        ranks.back()->begin();
    }
    for (int64_t step = 0; step < 100; ++step) {
        Indices all;
        for (size_t rank = 0; rank < 3; ++rank) {
            const Indices own = take(*ranks[rank], std::llround(10 * shares[rank]));
            all.insert(all.end(), own.begin(), own.end());
            EXPECT_EQ(ranks[rank]->state().consumed, 10 * (step + 1));
        }
        Indices expected = all_of(10);
        for (int64_t &each : expected) each += 10 * step;
        EXPECT_EQ(sorted(all), expected) << step;
    }
}

// Every example that this rank took is consumed, and every other example of this rank is left, whatever the other
// ranks have taken.
TEST(Sampler, StatesWithSharesAreExactForTheRanksOwnExamples)
{
    for (const std::vector<double> &shares :
         {std::vector<double>{0.613, 0.387}, {0.02, 0.9, 0.03, 0.05}, {0.1, 0.1, 0.1, 0.1, 0.6}})
        for (int32_t rank = 0; rank < static_cast<int32_t>(shares.size()); ++rank) {
            SamplerOptions options = options_of(500, rank, static_cast<int32_t>(shares.size()));
            options.shares = shares;
            options.is_shuffled = false;
            const Indices own = pass_of(*sampler(options));
            const auto stopped = sampler(options);
            stopped->begin();
            for (size_t taken = 0; taken < own.size(); ++taken) {
                const int64_t consumed = stopped->state().consumed;
                EXPECT_LE(consumed, own[taken]) << rank << " lost one after " << taken;
                EXPECT_GT(consumed, taken ? own[taken - 1] : -1) << rank << " repeats " << taken;
                stopped->next();
            }
        }
}

// In the last step some ranks have no examples left. They learn this only when they ask for an example.
TEST(Sampler, StatesBeforeAPartialLastStepLeaveItToAll)
{
    struct Case {
        int64_t count;
        std::vector<int64_t> batches;
        bool is_shared;
    };
    for (const Case &each :
         {Case{14, {1, 9}, true}, Case{7, {1, 1, 1, 1, 1}, false}, Case{23, {5, 5, 5, 5}, false},
          Case{46, {1, 9}, true}, Case{15, {4, 4, 4}, true}, Case{20, {1, 9}, true}}) {
        const int64_t step = std::reduce(each.batches.begin(), each.batches.end());
        const int64_t whole = each.count / step * step;
        for (size_t rank = 0; rank < each.batches.size(); ++rank) {
            SamplerOptions options = options_of(each.count, static_cast<int32_t>(rank),
                                                static_cast<int32_t>(each.batches.size()));
            options.is_padded = false;
            for (const int64_t batch : each.batches)
                if (each.is_shared)
                    options.shares.push_back(static_cast<double>(batch) /
                                             static_cast<double>(step));
            const auto some = sampler(options);
            some->begin();
            for (int64_t at = step; at <= whole; at += step) {
                take(*some, each.batches[rank]);
                EXPECT_EQ(some->state().consumed, at) << each.count << " on rank " << rank;
            }
            take(*some);
            EXPECT_EQ(some->state().consumed, each.count) << "rank " << rank;
        }
    }
}

TEST(Sampler, WhatIsDroppedIsConsumedWithTheLastThatIsNot)
{
    SamplerOptions options = options_of(14, 1, 4);
    options.drops_last = true;
    const auto some = sampler(options);
    some->begin();
    take(*some, 2);
    EXPECT_EQ(some->state().consumed, 8);
    take(*some, 1);
    EXPECT_EQ(some->state().consumed, 14);
}

TEST(Sampler, RefusesWhatIsNone)
{
    const auto refused = [](SamplerOptions options, std::initializer_list<const char *> parts) {
        expect_error(YOKE_E_VALUE, parts, [&] { sampler(options); });
    };
    refused(options_of(-1, 0, 1), {"DistributedSampler", "'n' is -1"});
    refused(options_of(INT64_MAX, 1, 3), {"'n' is 9223372036854775807", "4611686018427387904"});
    EXPECT_EQ(sampler(options_of(int64_t{1} << 62, 1, 3))->length(), 1537228672809129302);
    refused(options_of(5, 2, 2), {"'rank' is 2 and 'world_size' is 2"});
    refused(options_of(5, -1, 2), {"'rank' is -1 and 'world_size' is 2"});
    refused(options_of(5, 0, 0), {"'rank' is 0 and 'world_size' is 0"});
    SamplerOptions options = options_of(5, 0, 2);
    options.shares = {0.5};
    refused(options, {"'shares' has 1 numbers for 2 ranks"});
    options.shares = {0.5, 0.6};
    refused(options, {"'shares' has the sum 1.1"});
    options.shares = {1.5, -0.5};
    refused(options, {"'shares' has -0.5"});
    options.shares = {0.5, 0.5};
    options.drops_last = true;
    refused(options, {"'drop_last' and 'shares'"});
    const auto fine = sampler(options_of(5, 0, 2));
    expect_error(YOKE_E_VALUE, {"set_epoch", "'epoch' is -1"}, [&] { fine->set_epoch(-1); });
    for (const SamplerState &wrong : {SamplerState{0, 6}, SamplerState{0, -1}, SamplerState{-1, 0}})
        expect_error(YOKE_E_VALUE, {"the state says", "the data set has 5"},
                     [&] { fine->load(wrong); });
}

}  // namespace
}  // namespace yoke::test
