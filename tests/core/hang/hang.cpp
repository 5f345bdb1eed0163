// Ranks blamed by dumps, over made-up records: core/hang/hang.cpp, hang_calls.cpp, hang_findings.cpp.
#include "core/hang/hang.h"

#include "tests/core/comm/made_dumps.h"

#include <gtest/gtest.h>

namespace yoke::test {
namespace {

std::optional<bool> nobody_knows(const RankInfo &)
{
    return std::nullopt;
}

struct Told {
    GroupReport report;
    std::vector<std::string> texts(FindingKind kind) const
    {
        std::vector<std::string> all;
        for (const Finding &each : report.findings)
            if (each.kind == kind) all.push_back(each.text);
        return all;
    }
    std::vector<int32_t> ranks(FindingKind kind) const
    {
        std::vector<int32_t> all;
        for (const Finding &each : report.findings)
            if (each.kind == kind) all.insert(all.end(), each.ranks.begin(), each.ranks.end());
        return all;
    }
    // Checks the only finding of a kind for these parts.
    void expect(FindingKind kind, std::initializer_list<const char *> parts) const
    {
        const std::vector<std::string> all = texts(kind);
        ASSERT_EQ(all.size(), 1u) << finding_name(kind);
        for (const char *part : parts)
            EXPECT_NE(all[0].find(part), std::string::npos) << "no '" << part << "' in: " << all[0];
    }
};

// Returns the report. Keeps the dumps, because the report points into the dumps.
Told told(std::vector<Dump> dumps, const IsRunning &is_running = nobody_knows)
{
    static std::vector<std::vector<Dump>> kept;
    kept.push_back(std::move(dumps));
    const std::vector<GroupReport> all = find_hangs(kept.back(), is_running);
    EXPECT_EQ(all.size(), 1u);
    return {all[0]};
}

using Ranks = std::vector<int32_t>;

// ---- Calls of all ranks -----------------------------------------------------------------------------------------

TEST(Hang, WhereAllHaveFinishedThereIsNone)
{
    const Told all = told({Made(0, 2).done(kReduce, 1), Made(1, 2).done(kReduce, 1)});
    EXPECT_FALSE(all.report.hangs);
    EXPECT_TRUE(all.report.findings.empty());
    EXPECT_TRUE(all.report.blamed.empty());
    EXPECT_EQ(all.report.finished, 1u);
    EXPECT_FALSE(told({Made(0, 1)}).report.hangs);
}

TEST(Hang, TheRankThatNeverCameIsNamedWithItsLastLine)
{
    const Told all =
        told({Made(0, 3).done(kBarrier, 1).in(kReduce, 2), Made(1, 3).done(kBarrier, 1),
              Made(2, 3).done(kBarrier, 1).in(kReduce, 2)});
    EXPECT_TRUE(all.report.hangs);
    EXPECT_EQ(all.report.blamed, Ranks{1});
    EXPECT_EQ(all.report.finished, 1u);
    all.expect(FindingKind::kIn,
               {"call 2: ranks 0, 2 for 20 s in all_reduce of 4 float32, sum at t.py:2 (step)"});
    all.expect(FindingKind::kNeverCame, {"call 2: rank 1 (host h1, process 101) has not called it",
                                         "in no call; its last call was barrier at t.py:1 (step)",
                                         "which ended 19 s before"});
    EXPECT_EQ(all.ranks(FindingKind::kNeverCame), Ranks{1});
    EXPECT_TRUE(all.texts(FindingKind::kNoDump).empty());
}

TEST(Hang, ARankWithoutAnyCallIsNamed)
{
    told({Made(0, 2).in(kReduce, 2), Made(1, 2)})
        .expect(FindingKind::kNeverCame, {"rank 1", "has made no call"});
}

TEST(Hang, AnotherCallIsShownBesideTheOthersAndTheMinorityBlamed)
{
    const Told all =
        told({Made(0, 3).in(kReduce, 2), Made(1, 3).in(kReduce, 3, 5), Made(2, 3).in(kReduce, 2)});
    EXPECT_EQ(all.report.blamed, Ranks{1});
    all.expect(FindingKind::kMismatch, {"ranks 0, 2 called all_reduce of 4 float32, sum at t.py:2",
                                        "rank 1 called all_reduce of 5 float32, sum at t.py:3"});
    EXPECT_EQ(told({Made(0, 2).in(kReduce, 2), Made(1, 2).in(kBarrier, 3)}).report.blamed,
              (Ranks{0, 1}));
}

TEST(Hang, WhoDiffersIsNotOneWhoIsMissing)
{
    const Told all = told({Made(0, 2).in(kReduce, 2), Made(1, 2).in(kBarrier, 3)});
    EXPECT_TRUE(all.texts(FindingKind::kNeverCame).empty());
    EXPECT_TRUE(all.texts(FindingKind::kUnderWay).empty());
}

TEST(Hang, ARankWithoutADumpIsSuspectedWhereNobodyElseIs)
{
    const Told one = told({Made(0, 3).in(kReduce, 2)});
    EXPECT_TRUE(one.report.hangs);
    EXPECT_EQ(one.report.blamed, (Ranks{1, 2}));
    one.expect(FindingKind::kNoDump, {"no dump of ranks 1, 2: died, or was not dumped"});
    const Told two = told({Made(0, 3).in(kReduce, 2), Made(1, 3)});
    EXPECT_EQ(two.report.blamed, Ranks{1});
    two.expect(FindingKind::kNoDump, {"no dump of rank 2 (host h2, process 102)"});
}

TEST(Hang, ProcessesThatHaveEndedAreTold)
{
    const IsRunning first_alone = [](const RankInfo &rank) {
        return std::optional(rank.rank == 0);
    };
    const Told all = told({Made(0, 3).in(kReduce, 2), Made(1, 3)}, first_alone);
    all.expect(FindingKind::kEnded, {"the process of rank 1 (host h1, process 101) has exited"});
    all.expect(FindingKind::kNoDump, {"rank 2", "its process has exited"});
    const IsRunning all_run = [](const RankInfo &) { return std::optional(true); };
    told({Made(0, 2).in(kReduce, 2)}, all_run).expect(FindingKind::kNoDump, {"its process runs"});
}

TEST(Hang, WhereNobodyIsMissingTimeTells)
{
    const Told young = told({Made(0, 2).in(kReduce, 2, 4, 1), Made(1, 2).in(kReduce, 2, 4, 20)});
    EXPECT_FALSE(young.report.hangs);
    young.expect(FindingKind::kUnderWay, {"no rank is missing; the call is running"});
    const Told old = told({Made(0, 2).in(kReduce, 2), Made(1, 2).in(kReduce, 2)});
    EXPECT_TRUE(old.report.hangs);
    old.expect(FindingKind::kUnderWay, {"is stopped or slow"});
    told({Made(0, 2).in(kReduce, 2), Made(1, 2).done(kReduce, 2)})
        .expect(FindingKind::kUnderWay, {"rank 1 has finished the call", "older"});
}

TEST(Hang, WhatIsOnlyOnItsTurnCountsAsBegun)
{
    const Told all =
        told({Made(0, 2).call(kReduce, kQueued, 2).call(kReduce, kQueued, 3), Made(1, 2)});
    all.expect(FindingKind::kIn, {"call 1: rank 0"});
    EXPECT_EQ(all.report.blamed, Ranks{1});
}

TEST(Hang, ManyRanksAreNamedByTheirRange)
{
    std::vector<Dump> dumps{Made(0, 6).in(kReduce, 2)};
    for (int32_t rank = 1; rank < 5; ++rank) dumps.push_back(Made(rank, 6).done(kReduce, 2));
    dumps[1] = Made(1, 6);
    dumps.push_back(Made(5, 6));
    // Rank 0 is in its first call, and other ranks have finished this call. So rank 0 is not missing.
    const Told all = told(std::move(dumps));
    EXPECT_EQ(all.report.blamed, (Ranks{1, 5}));
    all.expect(FindingKind::kNeverCame, {"ranks 1, 5 have not called it"});
    const Told most = told({Made(0, 6).in(kReduce, 2)});
    most.expect(FindingKind::kNoDump, {"ranks 1 to 5"});
}

// ---- Sends and receives -----------------------------------------------------------------------------------------

TEST(Hang, ASendThatNobodyReceivesIsLaidAtTheReceiver)
{
    const Told all = told({Made(0, 3).send(1, kDone, 1).send(1, kRunning, 2),
                           Made(1, 3).recv(0, kDone, 1), Made(2, 3)});
    EXPECT_EQ(all.report.blamed, Ranks{1});
    all.expect(
        FindingKind::kIn,
        {"send 2 from rank 0 to rank 1: rank 0 for 20 s in send of 4 float32 to rank 1 at t.py:2"});
    all.expect(FindingKind::kNeverCame,
               {"send 2", "rank 1 (host h1, process 101) has not called it",
                "its last call was recv of 4 float32 from rank 0"});
}

TEST(Hang, SendAndReceiveOfDifferentSizesDoNotAgree)
{
    const Told all = told({Made(0, 2).send(1, kRunning, 1, 3), Made(1, 2).recv(0, kRunning, 5, 4)});
    all.expect(FindingKind::kMismatch, {"rank 0 called send of 3 float32 to rank 1 at t.py:1",
                                        "rank 1 called recv of 4 float32 from rank 0 at t.py:5"});
    EXPECT_FALSE(
        told({Made(0, 2).send(1, kDone, 1, 3), Made(1, 2).recv(0, kDone, 5, 3)}).report.hangs);
}

TEST(Hang, WhoWaitForEachOtherAreOneCircle)
{
    const Told two = told({Made(0, 2).send(1, kRunning, 1), Made(1, 2).send(0, kRunning, 1)});
    EXPECT_TRUE(two.report.hangs);
    EXPECT_EQ(two.report.blamed, (Ranks{0, 1}));
    two.expect(
        FindingKind::kCycle,
        {"ranks wait for each other: rank 0 for rank 1 in send of 4 float32 to rank 1 at t.py:1",
         "rank 1 for rank 0 in send"});
    std::vector<Dump> ring;
    for (int32_t rank = 0; rank < 4; ++rank)
        ring.push_back(Made(rank, 5).recv((rank + 1) % 4, kRunning, 9));
    ring.push_back(Made(4, 5).recv(0, kRunning, 9));  // waits for the ring from outside
    const Told all = told(std::move(ring));
    EXPECT_EQ(all.report.blamed, (Ranks{0, 1, 2, 3}));
    EXPECT_EQ(all.ranks(FindingKind::kCycle), (Ranks{0, 1, 2, 3}));
}

TEST(Hang, ASendAndACallOfAllMayBeOneCircle)
{
    const Told all = told({Made(0, 2).send(1, kRunning, 1), Made(1, 2).in(kReduce, 2)});
    all.expect(FindingKind::kCycle,
               {"rank 0 for rank 1 in send", "rank 1 for rank 0 in all_reduce"});
}

TEST(Hang, TwoCirclesAreTwo)
{
    const Told all = told({Made(0, 4).send(1, kRunning, 1), Made(1, 4).send(0, kRunning, 1),
                           Made(2, 4).send(3, kRunning, 1), Made(3, 4).send(2, kRunning, 1)});
    EXPECT_EQ(all.texts(FindingKind::kCycle).size(), 2u);
    EXPECT_EQ(all.report.blamed, (Ranks{0, 1, 2, 3}));
}

TEST(Hang, WhoWaitsForTwoCirclesIsInNone)
{
    // Rank 5 receives from ranks 1 and 6 at once, and rank 0 waits for rank 5.
    std::vector<Dump> dumps{Made(0, 8).recv(5, kRunning, 1),
                            Made(5, 8).recv(1, kRunning, 1).recv(6, kRunning, 1)};
    for (const int32_t rank : {1, 6}) {
        dumps.push_back(Made(rank, 8).send(rank + 1, kRunning, 1));
        dumps.push_back(Made(rank + 1, 8).send(rank, kRunning, 1));
    }
    const Told all = told(std::move(dumps));
    EXPECT_EQ(all.texts(FindingKind::kCycle).size(), 2u);
    EXPECT_EQ(all.ranks(FindingKind::kCycle), (Ranks{1, 2, 6, 7}));
    EXPECT_EQ(all.report.blamed, (Ranks{1, 2, 6, 7}));
}

TEST(Hang, ACallBehindAnotherOneLeadsToWhoIsMissingThere)
{
    // Rank 0 waits for rank 1. Rank 1 has queued the receive behind a call in which rank 2 is missing.
    const Told all = told({Made(0, 3).in(kReduce, 1).send(1, kQueued, 2),
                           Made(1, 3).in(kReduce, 1).recv(0, kQueued, 2), Made(2, 3)});
    EXPECT_EQ(all.report.blamed, Ranks{2});
    const Told chain = told({Made(0, 3).recv(1, kRunning, 1),
                             Made(1, 3).recv(2, kRunning, 1).send(0, kQueued, 2), Made(2, 3)});
    EXPECT_EQ(chain.report.blamed, Ranks{2});
    chain.expect(
        FindingKind::kBehind,
        {"send 1 from rank 1 to rank 0",
         "rank 1 (host h1, process 101) has called it, and is in recv of 4 float32 from rank 2"});
}

// ---- Rendezvous -------------------------------------------------------------------------------------------------

TEST(Hang, WhoDoesNotComeToSplitIsBlamedAfterAWhile)
{
    const Told all =
        told({Made(0, 3).done(kBarrier, 1).meet("split", 20), Made(1, 3).done(kBarrier, 1),
              Made(2, 3).done(kBarrier, 1).meet("split", 30)});
    EXPECT_TRUE(all.report.hangs);
    EXPECT_EQ(all.report.blamed, Ranks{1});
    all.expect(FindingKind::kStoreCall,
               {"ranks 0, 2 wait for the other ranks in split at t.py:8 (step)"});
    EXPECT_FALSE(told({Made(0, 2).meet("split", 1), Made(1, 2)}).report.hangs);
    EXPECT_EQ(told({Made(0, 2).meet("split", 20)}).report.blamed, Ranks{1});
    const Told other = told({Made(0, 2).in(kReduce, 2), Made(1, 2).meet("split", 20)});
    other.expect(FindingKind::kNeverCame, {"rank 1", "is in split at t.py:8 (step), for 20 s"});
    EXPECT_EQ(other.report.blamed, Ranks{1});
}

// ---- Failed groups ----------------------------------------------------------------------------------------------

TEST(Hang, OfAFailedGroupThePlaceOfTheFailureCounts)
{
    const char *const cause = "all_reduce: rank 1 did not come";
    // The queued call began when the group had failed.
    const Told all = told({Made(0, 2)
                               .call(kReduce, kFailed, 1)
                               .call(kReduce, kFailed, 2, 4, 5)
                               .fail(cause, kNow - 10),
                           Made(1, 2).fail(cause, kNow - 10)});
    EXPECT_TRUE(all.report.hangs);
    EXPECT_EQ(all.report.blamed, Ranks{1});
    all.expect(FindingKind::kCause, {cause});
    all.expect(FindingKind::kIn, {"call 1: rank 0 for 10 s"});
    // A call failed only for its caller is over.
    EXPECT_FALSE(
        told({Made(0, 2).call(kReduce, kFailed, 1), Made(1, 2).done(kReduce, 1)}).report.hangs);
}

// ---- Sets of dumps ----------------------------------------------------------------------------------------------

TEST(Hang, EachGroupIsToldApart)
{
    const std::vector<Dump> dumps{Made(0, 2, 7).in(kReduce, 1), Made(0, 2, 8).done(kReduce, 1),
                                  Made(1, 2, 8).done(kReduce, 1), Made(0, 3, 7)};
    const std::vector<GroupReport> all = find_hangs(dumps, nobody_knows);
    ASSERT_EQ(all.size(), 3u);
    EXPECT_TRUE(all[0].hangs);
    EXPECT_FALSE(all[1].hangs);
    EXPECT_EQ(all[2].ranks.size(), 3u);
}

TEST(Hang, OfTwoDumpsOfARankTheNewerCounts)
{
    for (const bool is_first : {true, false}) {
        const Dump newer = Made(0, 1).done(kReduce, 1).at(kNow),
                   older = Made(0, 1).in(kReduce, 1).at(kNow - 5);
        const Told all = told(is_first ? std::vector{newer, older} : std::vector{older, newer});
        EXPECT_FALSE(all.report.hangs);
        EXPECT_EQ(all.report.older, std::vector{older.path});
    }
}

TEST(Hang, CallsThatTheRingHasLostAreFinished)
{
    Dump dump = Made(1, 2).done(kReduce, 1).done(kReduce, 1).in(kReduce, 2);
    dump.records.erase(dump.records.begin());
    const Told all = told({Made(0, 2).in(kReduce, 2), dump});
    EXPECT_EQ(all.report.blamed, Ranks{0});  // rank 0 is still in call 1
    all.expect(FindingKind::kUnderWay, {"call 1", "rank 1 has finished the call"});
}

}  // namespace
}  // namespace yoke::test
