// Ranks that have gone, in an engine without own means to see deaths: the engine asks the host, and names the ranks
// it waits for.
#include "ranks.h"

#include <utility>

namespace yoke::test {

class AskingEngines : public Collectives {
protected:
    void SetUp() override
    {
        Collectives::SetUp();
        if (kEngineKnowsDeaths) GTEST_SKIP() << "this engine detects lost ranks by itself";
    }
};
YOKE_ON_EVERY_BACKEND(AskingEngines);

namespace {

constexpr int64_t kGoneCount = 50'000;  // too many for one message

}  // namespace

TEST_P(AskingEngines, ARankThatHasGoneIsNotMissedByWhoDoesNotWaitForIt)
{
    run({}, [&](Rank &r) {
        ASSERT_DONE(r.barrier());
        float one = 1;
        if (r.rank == 1) {
            r.meet();  // once the other one has asked
            ASSERT_DONE(r.run(YOKE_COMM_SEND, YOKE_F32, 1, &one, nullptr, 0));
            return;
        }
        int asked = 0;
        r.find_gone = [&](std::span<const int32_t> ranks, bool died) {
            EXPECT_EQ(std::vector(ranks.begin(), ranks.end()), std::vector<int32_t>{1});
            EXPECT_FALSE(died);
            if (++asked == 3) r.meet();
            return -1;
        };
        ASSERT_DONE(r.run(YOKE_COMM_RECV, YOKE_F32, 1, nullptr, &one, 1));
        EXPECT_GE(asked, 3);
    });
}

// A rank that had left the group in order would have sent its elements, so this rank must have died.
TEST_P(AskingEngines, ARankThatDiesAmidElementsIsNamed)
{
    run({}, [&](Rank &r) {
        std::vector<float> in(kGoneCount), out(static_cast<size_t>(kGoneCount * 2));
        r.lie = [](yoke_comm_signature &said) { said.count = kGoneCount; };
        bool has_asked = false;
        r.find_gone = [&](std::span<const int32_t> asked, bool died) {
            EXPECT_EQ(asked.size(), 2U);
            EXPECT_TRUE(died);
            return std::exchange(has_asked, true) ? 1 : -1;
        };
        const yoke_status status = r.run(YOKE_COMM_ALL_GATHER, YOKE_F32,
                                         r.rank == 1 ? 0 : kGoneCount, in.data(), out.data());
        r.meet();
        if (r.rank == 1) return;
        EXPECT_EQ(status, YOKE_E_COMM);
        EXPECT_EQ(r.fault.kind, YOKE_COMM_FAULT_DIED);
        EXPECT_EQ(r.fault.rank, 1);
    });
}

// Its message is awaited for a little while yet.
TEST_P(AskingEngines, WhatARankHasSentBeforeItWentArrives)
{
    run({}, [&](Rank &r) {
        ASSERT_DONE(r.barrier());
        float number = r.rank == 1 ? 5 : 0;
        if (r.rank == 1) {
            r.meet();
            ASSERT_DONE(r.run(YOKE_COMM_SEND, YOKE_F32, 1, &number, nullptr, 0));
            return;
        }
        bool has_asked = false;
        r.find_gone = [&](std::span<const int32_t>, bool) {
            if (!std::exchange(has_asked, true)) r.meet();
            return 1;
        };
        ASSERT_DONE(r.run(YOKE_COMM_RECV, YOKE_F32, 1, nullptr, &number, 1));
        EXPECT_TRUE(has_asked);
        EXPECT_EQ(number, 5);
    });
}

}  // namespace yoke::test
