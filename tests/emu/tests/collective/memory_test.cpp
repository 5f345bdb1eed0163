// Memory from NCCL: windows, or registered buffers of older versions, and the time of their release.
#include <cstdlib>
#include <cstring>
#include <thread>

#include "ranks.h"
#include "tests/core/fresh_process.h"

namespace yoke::test {

namespace {

void *allocate(Rank &rank, uint64_t bytes)
{
    void *pointer = nullptr;
    EXPECT_EQ(engine().mem_alloc(rank.comm, bytes, &pointer, nullptr), YOKE_OK)
        << failure().message;
    return pointer;
}

void fill(Rank &rank, void *to, const std::string &bytes)
{
    EXPECT_EQ(open_module().copy(rank.device, to, bytes.data(), bytes.size(),
                                 YOKE_COPY_HOST_TO_DEVICE, rank.stream),
              YOKE_OK)
        << failure().message;
}

void expect_sums(Rank &rank, void *x)
{
    fill(rank, x, encode(YOKE_F32, {1, 2.0 + rank.rank}));
    ASSERT_EQ(rank.run(YOKE_COMM_ALL_REDUCE, YOKE_F32, 2, x, x, -1, YOKE_REDUCE_SUM), YOKE_OK)
        << failure().message;
    EXPECT_EQ(decode(YOKE_F32, rank.download(x, 8)), (std::vector<double>{2, 5}));
}

void in_each_version(void (*body)())
{
    for (const char *folders : {DRIVER_FOLDER, OLD_FOLDER ":" DRIVER_FOLDER})
        in_fresh_process([=] {
            set_devices();
            open_module(folders);
            body();
            expect_none_held();
        });
}

}  // namespace

TEST(NcclMemory, CallsUseItAndItIsGivenBackBeforeTheCommunicatorGoes)
{
    in_each_version([] {
        with_ranks({.size = 2}, [](Rank &rank) {
            void *x = allocate(rank, 8), *y = allocate(rank, 5000);
            expect_sums(rank, x);
            expect_sums(rank, y);
            rank.wait();
            EXPECT_EQ(engine().mem_free(rank.comm, x, 8), YOKE_OK) << failure().message;
            expect_sums(rank, y);
            rank.wait();
            EXPECT_EQ(engine().mem_free(rank.comm, y, 5000), YOKE_OK);
        });
    });
}

TEST(NcclMemory, CardsThatDoNotReachEachOtherHaveItRegistered)
{
    for (const bool has_windows : {true, false})
        in_fresh_process([has_windows] {
            set_devices();
            if (!has_windows) setenv("FAKE_NCCL_NO_WINDOWS", "1", 1);
            with_ranks({.size = 2}, [&](Rank &rank) {
                void *x = allocate(rank, 8);
                char text[200];
                engine().describe(rank.comm, text, sizeof text);
                EXPECT_EQ(std::string(text).find("with windows") != std::string::npos, has_windows);
                expect_sums(rank, x);
                rank.wait();
                if (rank.rank == 0) setenv("FAKE_NCCL_FAIL", "ncclCommDeregister=3", 1);
                rank.wait();
                EXPECT_EQ(engine().mem_free(rank.comm, x, 8), YOKE_OK) << failure().message;
                rank.wait();
                EXPECT_EQ(logged().empty(), has_windows) << "what was registered is deregistered";
                engine().abort(rank.comm);
            });
            EXPECT_EQ(held_after_a_while(), 0);
        });
}

TEST(NcclMemory, ItOutlivesItsCommunicator)
{
    in_each_version([] {
        with_ranks({.size = 2}, [](Rank &rank) {
            void *x = allocate(rank, 4096);
            expect_sums(rank, x);
            rank.wait();
            rank.destroy();
            usleep(100000);
            fill(rank, x, "still there");
            EXPECT_EQ(rank.download(x, 11), "still there");
            EXPECT_EQ(engine().mem_free(nullptr, x, 4096), YOKE_OK) << failure().message;
        });
    });
}

TEST(NcclMemory, ItIsGivenBackWhileNcclDeregistersIt)
{
    in_fresh_process([] {
        set_devices();
        setenv("FAKE_NCCL_FAIL", "ncclCommWindowDeregister=slow:0.02", 1);
        with_ranks({.size = 2}, [](Rank &rank) {
            std::vector<void *> blocks;
            for (int i = 0; i < 10; ++i) blocks.push_back(allocate(rank, 4096));
            rank.destroy();
            for (void *block : blocks) {
                EXPECT_EQ(engine().mem_free(nullptr, block, 4096), YOKE_OK) << failure().message;
                usleep(10000);  // between releases of NCCL, and within a release
            }
        });
        expect_none_held();
    });
}

TEST(NcclMemory, ItGoesWithACommunicatorThatWasAborted)
{
    in_each_version([] {
        with_ranks({.size = 2}, [](Rank &rank) {
            void *x = allocate(rank, 4096), *y = allocate(rank, 4096);
            if (rank.rank == 0) {
                EXPECT_EQ(rank.run(YOKE_COMM_ALL_REDUCE, YOKE_F32, 2, x, x, -1, YOKE_REDUCE_SUM),
                          YOKE_OK);
            }
            EXPECT_EQ(engine().abort(rank.comm), YOKE_OK);
            EXPECT_EQ(engine().mem_free(rank.comm, x, 4096), YOKE_OK) << failure().message;
            rank.sync();
            rank.destroy();
            EXPECT_EQ(engine().mem_free(nullptr, y, 4096), YOKE_OK) << failure().message;
        });
    });
}

// This happens if a process has several cards.
TEST(NcclMemory, ItStaysUntilKernelsHaveEndedThatAnAbortDidNotWaitFor)
{
    in_fresh_process([] {
        set_devices();
        setenv("FAKE_NCCL_ABORT_LATE", "200", 1);
        with_ranks({.size = 2}, [](Rank &rank) {
            void *x = allocate(rank, 4096);
            if (rank.rank == 0) {
                EXPECT_EQ(rank.run(YOKE_COMM_ALL_REDUCE, YOKE_F32, 2, x, x, -1, YOKE_REDUCE_SUM),
                          YOKE_OK);
            }
            EXPECT_EQ(engine().abort(rank.comm), YOKE_OK);
            EXPECT_EQ(engine().mem_free(rank.comm, x, 4096), YOKE_OK) << failure().message;
            if (rank.rank == 0) usleep(50000);  // NCCL has released the memory before the core does
            rank.destroy();
        });
        expect_none_held();
    });
}

TEST(NcclMemory, ItIsGivenBackAtOnceToACommunicatorThatDoesNotEnd)
{
    for (const bool with_abort : {true, false})
        in_fresh_process([with_abort] {
            setenv("FAKE_NCCL_FAIL", "ncclCommAbort=hang,ncclCommFinalize=hang", 1);
            with_ranks({.size = 1}, [&](Rank &rank) {
                std::vector<void *> blocks;
                for (int i = 0; i < 20; ++i) blocks.push_back(allocate(rank, 4096));
                if (with_abort)
                    engine().abort(rank.comm);
                else
                    rank.destroy();
                usleep(50000);  // the thread of the end takes the turn
                const double took = seconds_of([&] {
                    for (void *block : blocks)
                        EXPECT_EQ(engine().mem_free(rank.comm, block, 4096), YOKE_OK);
                });
                EXPECT_LT(took, 0.5) << "each would wait 50 ms for a turn";
            });
        });
}

TEST(NcclMemory, AThreadMayGiveItBackAmidCallsOfAnother)
{
    in_each_version([] {
        with_ranks({.size = 2}, [](Rank &rank) {
            std::vector<void *> blocks;
            for (int i = 0; i < 20; ++i) blocks.push_back(allocate(rank, 4096));
            void *x = allocate(rank, 8);
            rank.wait();
            std::thread frees([&] {
                for (void *block : blocks)
                    EXPECT_EQ(engine().mem_free(rank.comm, block, 4096), YOKE_OK);
            });
            for (int i = 0; i < 20; ++i) expect_sums(rank, x);
            frees.join();
            rank.wait();
            EXPECT_EQ(engine().mem_free(rank.comm, x, 8), YOKE_OK);
        });
    });
}

// A deregistration would fail, with a line in the log.
TEST(NcclMemory, ItIsDeregisteredAmidNoKernelOfItsCommunicator)
{
    in_each_version([] {
        with_ranks({.size = 2}, [](Rank &rank) {
            void *x = allocate(rank, 4096), *y = allocate(rank, 8);
            fill(rank, y, encode(YOKE_F32, {1, 2}));
            rank.sync();
            rank.wait();
            const auto sum = [&] {
                ASSERT_EQ(rank.run(YOKE_COMM_ALL_REDUCE, YOKE_F32, 2, y, y, -1, YOKE_REDUCE_SUM),
                          YOKE_OK)
                    << failure().message;
            };
            if (rank.rank == 0) {
                setenv("FAKE_NCCL_FAIL", "ncclCommWindowDeregister=3,ncclCommDeregister=3", 1);
                sum();
                EXPECT_EQ(engine().mem_free(rank.comm, x, 4096), YOKE_OK) << failure().message;
                EXPECT_EQ(logged(), "");
                unsetenv("FAKE_NCCL_FAIL");
            }
            rank.wait();
            if (rank.rank == 1) {
                sum();
                EXPECT_EQ(engine().mem_free(rank.comm, x, 4096), YOKE_OK) << failure().message;
            }
            rank.sync();
            EXPECT_EQ(decode(YOKE_F32, rank.download(y, 8)), (std::vector<double>{2, 4}));
            EXPECT_EQ(engine().mem_free(rank.comm, y, 8), YOKE_OK) << failure().message;
        });
    });
}

TEST(NcclMemory, ACommunicatorThatGoesKeepsItUntilItsLastWorkIsDone)
{
    in_each_version([] {
        with_ranks({.size = 2}, [](Rank &rank) {
            void *x = allocate(rank, 8);
            fill(rank, x, encode(YOKE_F32, {1, 2}));
            rank.wait();
            if (rank.rank == 1) usleep(100000);  // the other rank's work waits for this rank
            ASSERT_EQ(rank.run(YOKE_COMM_ALL_REDUCE, YOKE_F32, 2, x, x, -1, YOKE_REDUCE_SUM),
                      YOKE_OK);
            rank.destroy();
            EXPECT_EQ(decode(YOKE_F32, rank.download(x, 8)), (std::vector<double>{2, 4}));
            EXPECT_EQ(engine().mem_free(nullptr, x, 8), YOKE_OK) << failure().message;
        });
    });
}

TEST(NcclMemory, WhatIsNoMemoryOfItIsRefused)
{
    in_each_version([] {
        with_ranks({.size = 1}, [](Rank &rank) {
            void *x = allocate(rank, 64);
            int mine = 0;
            expect_fails(YOKE_E_VALUE, engine().mem_free(rank.comm, &mine, 4), {"mem_free"});
            expect_fails(YOKE_E_VALUE, engine().mem_free(rank.comm, x, 65), {"of 65 bytes"});
            EXPECT_EQ(engine().mem_free(rank.comm, x, 64), YOKE_OK);
            EXPECT_EQ(engine().mem_free(rank.comm, x, 64), YOKE_E_VALUE) << "once";
            void *none = &mine;
            expect_fails(YOKE_E_VALUE, engine().mem_alloc(rank.comm, 0, &none, nullptr),
                         {"0 bytes"});
            expect_fails(YOKE_E_OOM, engine().mem_alloc(rank.comm, 1ull << 60, &none, nullptr),
                         {"cuda:0"});
            EXPECT_EQ(none, &mine);
        });
    });
}

TEST(NcclMemory, ACardThatIsFullIsAShortageOfMemory)
{
    in_fresh_process([] {
        setenv("FAKE_CUDA_MEMORY", "64", 1);
        with_ranks({.size = 1}, [](Rank &rank) {
            void *x = allocate(rank, 40 << 20), *y = nullptr;
            expect_fails(YOKE_E_OOM, engine().mem_alloc(rank.comm, 40 << 20, &y, nullptr),
                         {"mem_alloc: cuda:0, rank 0 of 1: ncclMemAlloc failed"});
            EXPECT_EQ(engine().mem_free(rank.comm, x, 40 << 20), YOKE_OK);
        });
        expect_none_held();
    });
}

TEST(NcclMemory, ARankThatDoesNotAllocateEndsTheOthersAtTheDeadline)
{
    in_fresh_process([] {
        set_devices();
        with_ranks({.size = 2, .timeout_s = 0.4}, [](Rank &rank) {
            void *x = nullptr;
            if (rank.rank == 0)
                expect_fails(YOKE_E_TIMEOUT, engine().mem_alloc(rank.comm, 64, &x, nullptr),
                             {"mem_alloc: cuda:0, rank 0 of 2: ncclCommWindowRegister"});
            rank.wait();
            engine().abort(rank.comm);
        });
        expect_none_held();
    });
}

TEST(NcclMemory, EachCallOfItThatFailsIsTold)
{
    for (const char *function : {"ncclMemAlloc", "ncclCommWindowRegister"})
        in_fresh_process([function] {
            setenv("FAKE_NCCL_FAIL", (std::string(function) + "=3").c_str(), 1);
            with_ranks({.size = 1}, [&](Rank &rank) {
                void *x = nullptr;
                expect_fails(YOKE_E_INTERNAL, engine().mem_alloc(rank.comm, 64, &x, nullptr),
                             {"mem_alloc: cuda:0, rank 0 of 1: ", function, "(3)"});
            });
            expect_none_held();
        });
}

}  // namespace yoke::test
