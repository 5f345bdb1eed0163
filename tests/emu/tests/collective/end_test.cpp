// The end of a communicator: abort and destroy beside peers and calls of NCCL that hang, forks, and the process's end.
#include <cstdlib>
#include <thread>

#include "ranks.h"
#include "tests/core/fresh_process.h"

namespace yoke::test {

namespace {

yoke_status reduce(Rank &rank, void *x)
{
    return rank.run(YOKE_COMM_ALL_REDUCE, YOKE_F32, 4, x, x, -1, YOKE_REDUCE_SUM);
}

void *four_ones(Rank &rank)
{
    return rank.upload(encode(YOKE_F32, {1, 1, 1, 1}));
}

// Neither waits for NCCL.
void expect_ends_at_once(Rank &rank, bool with_abort)
{
    const double took = seconds_of([&] {
        if (with_abort) {
            EXPECT_EQ(engine().abort(rank.comm), YOKE_OK);
        }
        rank.destroy();
    });
    EXPECT_LT(took, 0.5);
}

}  // namespace

TEST(NcclEnd, AbortLetsAStreamGoOnWhosePeerDoesNotCome)
{
    in_fresh_process([] {
        set_devices();
        with_ranks({.size = 2}, [](Rank &rank) {
            if (rank.rank == 0) {
                void *x = four_ones(rank);
                ASSERT_EQ(reduce(rank, x), YOKE_OK);
                usleep(20000);
                int32_t idle = -1;
                EXPECT_EQ(open_module().stream_query(rank.device, rank.stream, &idle), YOKE_OK);
                EXPECT_EQ(idle, 0);
                EXPECT_EQ(engine().async_error(rank.comm, &rank.fault), YOKE_OK);
                EXPECT_LT(seconds_of([&] { EXPECT_EQ(engine().abort(rank.comm), YOKE_OK); }), 0.5);
                rank.sync();
                expect_fails(YOKE_E_CANCELLED, reduce(rank, x),
                             {"all_reduce: cuda:0, rank 0 of 2", "was aborted"});
                EXPECT_EQ(rank.fault.kind, YOKE_COMM_FAULT_ABORTED);
                expect_fails(YOKE_E_CANCELLED, engine().async_error(rank.comm, &rank.fault), {});
                EXPECT_EQ(rank.fault.kind, YOKE_COMM_FAULT_ABORTED);
            }
            rank.wait();
            engine().abort(rank.comm);
        });
        expect_none_held();
    });
}

TEST(NcclEnd, DestroyLetsWorkEndThatTheStreamStillHas)
{
    in_fresh_process([] {
        set_devices();
        with_ranks({.size = 2}, [](Rank &rank) {
            void *x = four_ones(rank);
            for (int i = 0; i < 3; ++i) ASSERT_EQ(reduce(rank, x), YOKE_OK);
            expect_ends_at_once(rank, false);
            rank.sync();
            EXPECT_EQ(decode(YOKE_F32, rank.download(x, 16)), (std::vector<double>(4, 8)));
            rank.wait();
        });
        expect_none_held();
    });
}

// At the deadline, with a line in the log: no caller is left that could get an error.
TEST(NcclEnd, ACommunicatorThatPeersDoNotLetGoOfIsAborted)
{
    in_fresh_process([] {
        set_devices();
        with_ranks({.size = 2, .timeout_s = 0.3}, [](Rank &rank) {
            rank.wait();
            if (rank.rank == 0) setenv("FAKE_NCCL_IN_PROGRESS", "1000000", 1);
            rank.wait();
            expect_ends_at_once(rank, false);
        });
        EXPECT_EQ(held_after_a_while(), 0);
        EXPECT_NE(logged().find("rank 0 of 2: other ranks have not released"), std::string::npos)
            << logged();
    });
}

TEST(NcclEnd, AbortAndDestroyReturnAtOnceWhateverHangs)
{
    struct Case {
        const char *fault;
        bool with_abort;
        int held;  // two communicators with a block each
        const char *told;
    };
    for (const Case &one : {
             Case{"ncclCommAbort=hang", true, 4, ""},
             Case{"ncclCommAbort=3", true, 4, "ncclCommAbort failed"},
             Case{"ncclCommFinalize=hang", false, 4, ""},
             Case{"ncclCommFinalize=hang", true, 0, ""},
             Case{"ncclCommFinalize=3", false, 0, "ncclCommFinalize failed"},
             Case{"ncclCommDestroy=hang", false, 4, ""},
             Case{"ncclCommDestroy=3", false, 0, "ncclCommDestroy failed"},
             Case{"ncclCommDestroy=3,ncclCommAbort=3", false, 4, "memory are not freed"},
         })
        in_fresh_process([&one] {
            set_devices();
            setenv("FAKE_NCCL_FAIL", one.fault, 1);
            with_ranks({.size = 2, .timeout_s = 2}, [&](Rank &rank) {
                void *x = four_ones(rank), *memory = nullptr;
                ASSERT_EQ(engine().mem_alloc(rank.comm, 64, &memory, nullptr), YOKE_OK);
                ASSERT_EQ(reduce(rank, x), YOKE_OK);
                rank.sync();
                rank.wait();
                expect_ends_at_once(rank, one.with_abort);
                EXPECT_EQ(engine().mem_free(nullptr, memory, 64), YOKE_OK) << failure().message;
            });
            const std::string at_end = one.told;
            for (int i = 0; i < 2000 && logged().find(at_end) == std::string::npos; ++i)
                usleep(1000);
            EXPECT_NE(logged().find(at_end), std::string::npos) << one.fault << ": " << logged();
            EXPECT_EQ(logged().empty(), at_end.empty()) << logged();
            const int held = held_after_a_while(one.held ? 300 : 5000);
            EXPECT_TRUE(one.held ? held >= one.held : !held) << one.fault << " leaves " << held;
        });
}

// The thread in the call stays there; all other threads go on.
TEST(NcclEnd, ACallThatHangsKeepsNeitherAbortNorDestroy)
{
    in_fresh_process([] {
        set_devices();
        with_ranks({.size = 2}, [](Rank &rank) {
            void *x = four_ones(rank);
            rank.wait();
            if (rank.rank == 0) {
                setenv("FAKE_NCCL_FAIL", "ncclAllReduce=hang", 1);
                std::thread([&rank, x] { reduce(rank, x); }).detach();
                usleep(100000);
                yoke_comm_fault fault{};
                EXPECT_EQ(engine().async_error(rank.comm, &fault), YOKE_OK);
                expect_ends_at_once(rank, true);
            }
            rank.wait();
            if (rank.rank == 1) engine().abort(rank.comm);
        });
    });
}

TEST(NcclEnd, AWaitForOtherRanksEndsWithTheCallsTimeAndByAbort)
{
    in_fresh_process([] {
        set_devices();
        with_ranks({.size = 2}, [](Rank &rank) {
            void *x = four_ones(rank);
            rank.wait();
            if (rank.rank == 0) setenv("FAKE_NCCL_IN_PROGRESS", "1000000", 1);
            rank.wait();
            if (rank.rank == 0) {
                rank.timeout_s = 0.3;
                const double took = seconds_of([&] {
                    expect_fails(
                        YOKE_E_TIMEOUT, reduce(rank, x),
                        {"all_reduce: cuda:0, rank 0 of 2: ncclAllReduce has not finished"});
                });
                EXPECT_GE(took, 0.3);
                EXPECT_LT(took, 1.3);
                EXPECT_EQ(rank.fault.kind, YOKE_COMM_FAULT_LATE);
                EXPECT_EQ(rank.fault.keeps_memory, 1u);
            } else {
                std::thread aborts([&] {
                    usleep(200000);
                    engine().abort(rank.comm);
                });
                expect_fails(YOKE_E_CANCELLED, reduce(rank, x), {"was aborted during ncclAll"});
                EXPECT_EQ(rank.fault.kind, YOKE_COMM_FAULT_ABORTED);
                EXPECT_EQ(rank.fault.keeps_memory, 1u);
                aborts.join();
            }
            engine().abort(rank.comm);
        });
        expect_none_held();
    });
}

TEST(NcclEnd, ScratchOfACallThatIsLateIsNotGivenBack)
{
    for (const bool is_late : {false, true})
        in_fresh_process([is_late] {
            set_devices();
            with_ranks({.size = 1}, [&](Rank &rank) {
                if (is_late) setenv("FAKE_NCCL_IN_PROGRESS", "1000000", 1);
                rank.timeout_s = 0.1;
                void *x = rank.upload(encode(YOKE_F16, {1, 2}));
                EXPECT_EQ(rank.run(YOKE_COMM_ALL_REDUCE, YOKE_F16, 2, x, x, -1, YOKE_REDUCE_SUM,
                                   YOKE_COMM_IN_F32),
                          is_late ? YOKE_E_TIMEOUT : YOKE_OK);
                EXPECT_EQ(scratch_given_back(), is_late ? 0 : 1);
                rank.sync();
                engine().abort(rank.comm);
            });
            expect_none_held();
        });
}

TEST(NcclEnd, ACallWaitsForItsTurnNoLongerThanItHasTime)
{
    in_fresh_process([] {
        set_devices();
        with_ranks({.size = 1, .timeout_s = 0.3}, [](Rank &rank) {
            void *x = four_ones(rank);
            setenv("FAKE_NCCL_FAIL", "ncclAllReduce@1=hang", 1);
            std::thread([&rank, x] { reduce(rank, x); }).detach();
            usleep(50000);
            yoke_comm_fault fault{};
            yoke_collective record{};
            record.op = YOKE_COMM_BROADCAST;
            record.dtype = YOKE_F32;
            record.reduction = -1;
            record.count = 4;
            record.in = record.out = x;
            record.timeout_s = rank.timeout_s;
            record.fault = &fault;
            const double took = seconds_of([&] {
                expect_fails(YOKE_E_TIMEOUT, rank.call(record), {"ncclAllReduce has not returned"});
            });
            EXPECT_EQ(fault.kind, YOKE_COMM_FAULT_LATE);
            EXPECT_EQ(fault.rank, 0);
            EXPECT_GE(took, 0.2);
            EXPECT_LT(took, 1.3);
            expect_ends_at_once(rank, true);
            end_process();
        });
    });
}

TEST(NcclEnd, AForkedChildTouchesNoHandle)
{
    if (!kMayFork) GTEST_SKIP();
    in_fresh_process([] {
        set_devices();
        with_ranks({.size = 2}, [](Rank &rank) {
            void *x = four_ones(rank), *memory = nullptr;
            ASSERT_EQ(engine().mem_alloc(rank.comm, 64, &memory, nullptr), YOKE_OK)
                << failure().message;
            rank.wait();
            if (rank.rank == 0) {
                EXPECT_TRUE(passes_in_child([&] {
                    open_module().after_fork();
                    expect_fails(YOKE_E_FORKED, reduce(rank, x), {"forked child"});
                    EXPECT_EQ(engine().async_error(rank.comm, &rank.fault), YOKE_OK);
                    EXPECT_EQ(engine().mem_free(rank.comm, memory, 64), YOKE_E_FORKED);
                    EXPECT_EQ(engine().abort(rank.comm), YOKE_OK);
                    engine().destroy(rank.comm);
                    char why[200];
                    EXPECT_EQ(engine().version(20, why, sizeof why), 0);
                    EXPECT_NE(std::string(why).find("forked"), std::string::npos);
                }));
            }
            rank.wait();
            ASSERT_EQ(reduce(rank, x), YOKE_OK) << failure().message;
            rank.sync();
            EXPECT_EQ(engine().mem_free(rank.comm, memory, 64), YOKE_OK);
        });
        expect_none_held();
    });
}

TEST(NcclEnd, AProcessEndsWithItsOwnCodeBesideCallsThatHang)
{
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    for (const char *hanging : {"", "ncclCommAbort=hang"}) {
        const double took = seconds_of([&] {
            EXPECT_EXIT(
                {
                    set_devices();
                    setenv("FAKE_NCCL_FAIL", hanging, 1);
                    engine().share_exit([] { return 0.5; });
                    with_ranks({.size = 2}, [](Rank &rank) {
                        EXPECT_EQ(reduce(rank, four_ones(rank)), YOKE_OK);
                        rank.wait();
                        engine().abort(rank.comm);
                    });
                    if (*hanging) usleep(50000);
                    exit(7);
                },
                testing::ExitedWithCode(7), "");
        });
        EXPECT_LT(took, 2);
        EXPECT_EQ(took >= 0.5, *hanging != '\0');
    }
}

TEST(NcclEnd, AProcessEndsBehindACallThatMakesACommunicator)
{
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const double took = seconds_of([] {
        EXPECT_EXIT(
            {
                set_devices();
                open_module();
                setenv("FAKE_NCCL_FAIL", "ncclCommInitRankConfig=slow:1.5", 1);
                std::thread([] {
                    with_ranks(
                        {.size = 1},
                        [](Rank &rank) {
                            rank.init();
                            for (;;) pause();
                        },
                        false);
                }).detach();
                usleep(300000);
                exit(7);
            },
            testing::ExitedWithCode(7), "");
    });
    EXPECT_GE(took, 1.5);
}

}  // namespace yoke::test
