// The making of a communicator over the fake NCCL: ranks that do not come, fail, or do not fit.
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "ranks.h"
#include "tests/core/fresh_process.h"

namespace yoke::test {

namespace {

// `stuck_in`: the function of NCCL that does not return; else the other ranks do not come.
void expect_late(Rank &rank, const char *stuck_in = nullptr)
{
    const double took = seconds_of([&] {
        expect_fails(YOKE_E_TIMEOUT, rank.init(),
                     {"init: cuda:", "of 2", stuck_in ? stuck_in : "ncclCommInitRankConfig",
                      stuck_in ? "has not returned in time" : "has not finished in time"});
    });
    EXPECT_GE(took, rank.timeout_s);
    EXPECT_LT(took, rank.timeout_s + 1);
    EXPECT_EQ(rank.fault.kind, YOKE_COMM_FAULT_LATE);
    EXPECT_EQ(rank.fault.rank, stuck_in ? rank.rank : -1);
    EXPECT_EQ(rank.comm, nullptr);
}

}  // namespace

TEST(NcclInit, ARankThatDoesNotComeEndsItAtTheDeadline)
{
    in_fresh_process([] {
        set_devices();
        with_ranks(
            {.size = 2, .timeout_s = 0.4},
            [](Rank &rank) {
                rank.gathers = false;
                if (rank.rank == 0) expect_late(rank);
            },
            false);
        expect_none_held();
    });
}

TEST(NcclInit, ACallThatHangsEndsItAtTheDeadline)
{
    for (const char *function : {"ncclCommInitRankConfig", "ncclCommGetAsyncError"})
        in_fresh_process([function] {
            set_devices();
            setenv("FAKE_NCCL_FAIL", (std::string(function) + "=hang").c_str(), 1);
            with_ranks(
                {.size = 2, .timeout_s = 0.4},
                [function](Rank &rank) { expect_late(rank, function); }, false);
        });
}

TEST(NcclInit, ACallThatComesBackTooLateIsTakenBack)
{
    in_fresh_process([] {
        set_devices();
        setenv("FAKE_NCCL_FAIL", "ncclCommInitRankConfig=slow:1", 1);
        with_ranks(
            {.size = 2, .timeout_s = 0.3},
            [](Rank &rank) { expect_late(rank, "ncclCommInitRankConfig"); }, false);
        usleep(1200000);
        expect_none_held();
    });
}

TEST(NcclInit, AFailureIsToldWithRankDeviceAndNcclsWords)
{
    in_fresh_process([] {
        set_devices();
        setenv("FAKE_NCCL_FAIL", "ncclCommInitRankConfig@1=2", 1);
        std::atomic<int> failed{0};
        with_ranks(
            {.size = 2, .timeout_s = 0.4},
            [&](Rank &rank) {
                const yoke_status status = rank.init();
                if (status == YOKE_E_TIMEOUT) return;
                ++failed;
                expect_fails(YOKE_E_COMM, status,
                             {"init: cuda:", "rank ",
                              " of 2: ncclCommInitRankConfig failed with "
                              "ncclSystemError (2)",
                              "that the test asked for", "NCCL_DEBUG=INFO"});
            },
            false);
        EXPECT_EQ(failed, 1);
        expect_none_held();
    });
}

TEST(NcclInit, AGroupThatHasFailedEndsIt)
{
    in_fresh_process([] {
        set_devices();
        with_ranks(
            {.size = 2},
            [](Rank &rank) {
                rank.gathers = false;
                if (rank.rank) return;
                rank.is_over = [questions = std::make_shared<int>(0)] { return ++*questions > 3; };
                const double took = seconds_of(
                    [&] { expect_fails(YOKE_E_CANCELLED, rank.init(), {"the group has failed"}); });
                EXPECT_LT(took, 1);
            },
            false);
        expect_none_held();
    });
}

TEST(NcclInit, TwoRanksOnOneCardAreNamedWithTheRemedy)
{
    for (const bool gathers : {true, false})
        in_fresh_process([gathers] {
            set_devices();
            with_ranks(
                {.size = 2, .timeout_s = 2, .devices = {1, 1}},
                [&](Rank &rank) {
                    rank.gathers = gathers;
                    const yoke_status status = rank.init();
                    expect_fails(YOKE_E_VALUE, status, {"call set_device(local_rank)"});
                    if (gathers) expect_fails(status, status, {"ranks 0 and 1", "GPU-"});
                },
                false);
            expect_none_held();
        });
}

TEST(NcclInit, TwoRanksOnOneCardAreNamedWhereNeitherIsTheFirst)
{
    in_fresh_process([] {
        set_devices();
        with_ranks(
            {.size = 3, .timeout_s = 2, .devices = {0, 1, 1}},
            [&](Rank &rank) {
                expect_fails(YOKE_E_VALUE, rank.init(), {"ranks 1 and 2", "GPU-"});
            },
            false);
        expect_none_held();
    });
}

// Lets a rank of three send the others a wrong number at this byte, and expects init to fail with these texts.
static void expect_refused(uint64_t teller, uint64_t at, int32_t told,
                           std::initializer_list<const char *> texts)
{
    in_fresh_process([&] {
        set_devices();
        with_ranks(
            {.size = 3},
            [&](Rank &rank) {
                rank.change_gathered = [&](void *all, uint64_t bytes) {
                    memcpy(static_cast<char *>(all) + teller * bytes + at, &told, sizeof told);
                };
                expect_fails(YOKE_E_COMM, rank.init(), texts);
            },
            false);
        expect_none_held();
    });
}

TEST(NcclInit, RanksWithUnlikeVersionsAreNamed)
{
    expect_refused(2, 0, 22105, {"rank 0 has NCCL 2.28.", "rank 2 has NCCL 2.21.5"});
}

TEST(NcclInit, ARankThatCannotGoOnIsNamedToTheOthers)
{
    expect_refused(1, 4, YOKE_E_UNAVAILABLE, {"rank 1 cannot create its part"});
}

TEST(NcclInit, DescribeTellsRankDeviceAndVersion)
{
    in_fresh_process([] {
        set_devices();
        with_ranks({.size = 2}, [](Rank &rank) {
            char text[200];
            engine().describe(rank.comm, text, sizeof text);
            const std::string wanted = "rank " + std::to_string(rank.rank) +
                                       " of 2 on cuda:" + std::to_string(rank.rank) + ": NCCL 2.";
            EXPECT_EQ(std::string(text).substr(0, wanted.size()), wanted);
            EXPECT_EQ(std::string(text).find("with windows"), std::string::npos);
            rank.wait();
        });
        expect_none_held();
    });
}

}  // namespace yoke::test
