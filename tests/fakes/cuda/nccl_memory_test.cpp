// Memory, windows and held resources of the fake NCCL; functions missing in an older NCCL.
#include <csignal>

#include "tests/fakes/cuda/nccl_ranks.h"

namespace yoke::test {

namespace {

int held(NcclRank &own, int kind)
{
    return own.call<decltype(&::fake_held)>("fake_held")(kind);
}

void *allocate(NcclRank &own, size_t bytes)
{
    void *made = nullptr;
    EXPECT_EQ(own.nccl.ncclMemAlloc(&made, bytes), ncclSuccess);
    return made;
}

}  // namespace

TEST(NcclMemory, IsHeldInWholePagesAndFreedByNcclAlone)
{
    in_fresh_process([] {
        in_threads(1, [](NcclRank &own) {
            size_t before = 0, after = 0, total = 0;
            EXPECT_EQ(cudaMemGetInfo(&before, &total), cudaSuccess);
            void *const place = allocate(own, 100);
            EXPECT_EQ(cudaMemGetInfo(&after, &total), cudaSuccess);
            EXPECT_EQ(before - after, size_t{2} << 20);
            EXPECT_EQ(held(own, FAKE_BLOCKS), 1);
            EXPECT_EQ(own.nccl.fake_nccl_held(), 1);
            EXPECT_EQ(cudaFree(place), cudaErrorInvalidValue) << "it is not cudaMalloc()'s";
            float *const other = own.floats(8, 1);
            EXPECT_EQ(own.nccl.ncclMemFree(other), ncclInvalidUsage);
            EXPECT_EQ(cudaMemsetAsync(place, 1, 100, own.stream), cudaSuccess);
            EXPECT_EQ(own.nccl.ncclMemFree(place), ncclInvalidUsage) << "it is in use";
            own.synchronize();
            EXPECT_EQ(own.nccl.ncclMemFree(place), ncclSuccess);
            EXPECT_EQ(own.nccl.fake_nccl_held(), 0);
            void *made = nullptr;
            EXPECT_EQ(own.nccl.ncclMemAlloc(&made, size_t{2} << 30), ncclUnhandledCudaError);
        });
    });
}

TEST(Windows, AreRegisteredByAllRanksAndGoBeforeTheirCommunicator)
{
    threads_of_two([](NcclRank &own) {
        own.init();
        char *const place = static_cast<char *>(allocate(own, 16384));
        ncclWindow_t window = nullptr;
        const auto add = [&](size_t offset, size_t bytes, int flags = NCCL_WIN_COLL_SYMMETRIC) {
            return own.nccl.ncclCommWindowRegister(own.comm, place + offset, bytes, &window, flags);
        };
        EXPECT_EQ(add(256, 4096), ncclInvalidArgument) << "it is not aligned";
        EXPECT_EQ(add(0, 32768), ncclInvalidUsage) << "it reaches beyond the block";
        EXPECT_EQ(add(0, 4096, 64), ncclInvalidArgument);
        if (own.rank == 1) {
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
            own.meeting.flags[0] = 1;
        }
        EXPECT_EQ(add(4096, 8192), ncclSuccess);
        EXPECT_EQ(own.meeting.flags[0], 1) << "it waited for the other rank";
        EXPECT_NE(window, nullptr);
        EXPECT_EQ(own.nccl.ncclCommDestroy(own.comm), ncclInvalidUsage) << "it has a window";
        EXPECT_EQ(own.nccl.ncclCommWindowDeregister(own.comm, window), ncclSuccess);
        EXPECT_EQ(own.nccl.ncclCommWindowDeregister(own.comm, window), ncclInvalidArgument);
        EXPECT_EQ(add(0, own.rank ? 4096 : 8192), ncclInvalidUsage) << "of unlike sizes";
    });
}

TEST(Windows, StayWhileAKernelUsesThem)
{
    threads_of_two([](NcclRank &own) {
        own.init();
        void *const places[] = {allocate(own, 4096), allocate(own, 4096)};
        ncclWindow_t windows[2];
        for (int i = 0; i < 2; ++i)
            EXPECT_EQ(own.nccl.ncclCommWindowRegister(own.comm, places[i], 4096, &windows[i], 0),
                      ncclSuccess);
        if (own.rank == 0) {
            EXPECT_EQ(own.all_reduce(static_cast<float *>(places[0])), ncclSuccess);
            EXPECT_EQ(own.nccl.ncclCommWindowDeregister(own.comm, windows[0]), ncclInvalidUsage);
            EXPECT_EQ(own.nccl.ncclCommWindowDeregister(own.comm, windows[1]), ncclSuccess)
                << "no kernel uses it";
        }
        own.barrier();
        EXPECT_EQ(own.nccl.ncclCommAbort(own.comm), ncclSuccess);
    });
}

TEST(Windows, AreWrittenAfterSuccessWhereTheCommunicatorDoesNotBlock)
{
    for (const bool has_windows : {true, false})
        in_fresh_process([=] {
            if (!has_windows) setenv("FAKE_NCCL_NO_WINDOWS", "1", 1);
            in_threads(1, [=](NcclRank &own) {
                ncclConfig_t config = NcclRank::config(0);
                own.nccl.ncclCommInitRankConfig(&own.comm, 1, own.meeting.ids[0], 0, &config);
                EXPECT_TRUE(comes([&] { return own.state() == ncclSuccess; }));
                ncclWindow_t window = nullptr;
                EXPECT_EQ(own.nccl.ncclCommWindowRegister(own.comm, allocate(own, 4096), 4096,
                                                          &window, NCCL_WIN_COLL_SYMMETRIC),
                          ncclSuccess);
                EXPECT_EQ(window, nullptr);
                EXPECT_EQ(own.state(), has_windows ? ncclInProgress : ncclSuccess);
                EXPECT_TRUE(comes([&] { return own.state() == ncclSuccess; }));
                EXPECT_EQ(window != nullptr, has_windows);
                EXPECT_EQ(own.nccl.ncclCommAbort(own.comm), ncclSuccess);
            });
        });
}

TEST(Windows, GoWithACommunicatorThatIsAborted)
{
    in_fresh_process([] {
        in_threads(1, [](NcclRank &own) {
            own.init();
            void *const place = allocate(own, 4096), *handle = nullptr;
            ncclWindow_t window = nullptr;
            EXPECT_EQ(own.nccl.ncclCommWindowRegister(own.comm, place, 4096, &window, 0),
                      ncclSuccess);
            EXPECT_EQ(own.nccl.ncclCommRegister(own.comm, place, 4096, &handle), ncclSuccess);
            EXPECT_EQ(own.nccl.fake_nccl_held(), 4);
            EXPECT_EQ(own.nccl.ncclCommAbort(own.comm), ncclSuccess);
            EXPECT_EQ(own.nccl.ncclMemFree(place), ncclSuccess);
            EXPECT_EQ(own.nccl.fake_nccl_held(), 0);
        });
    });
}

TEST(Registrations, AreCounted)
{
    in_fresh_process([] {
        in_threads(1, [](NcclRank &own) {
            own.init();
            void *handle = nullptr;
            EXPECT_EQ(own.nccl.ncclCommRegister(own.comm, own.floats(8, 1), 32, &handle),
                      ncclSuccess);
            EXPECT_EQ(held(own, FAKE_HANDLES), 2) << "and the communicator";
            EXPECT_EQ(own.nccl.ncclCommDeregister(own.comm, own.comm), ncclInvalidArgument);
            EXPECT_EQ(own.nccl.ncclCommDeregister(own.comm, handle), ncclSuccess);
            own.destroy();
            EXPECT_EQ(held(own, FAKE_HANDLES), 0);
        });
    });
}

TEST(Leaks, AreToldAtExit)
{
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(
        {
            setenv("FAKE_NCCL_LEAKS", "1", 1);
            in_threads(1, [](NcclRank &own) {
                own.init();
                allocate(own, 8);
            });
            exit(0);
        },
        testing::ExitedWithCode(0),
        "left behind: 1 communicators, 0 windows, 0 registrations, 1 blocks");
}

TEST(AKilledRank, LeavesNothingBehind)
{
    in_fresh_process([] {
        setenv("FAKE_CUDA_DEVICES", "9.0,9.0", 1);
        int ends[2];
        EXPECT_EQ(pipe(ends), 0);
        const pid_t child = fork();
        if (!child) {
            Meeting meeting;
            NcclRank own(0, 1, meeting);
            own.size = 2;
            ncclConfig_t config = NcclRank::config(0);
            EXPECT_EQ(own.nccl.ncclCommInitRankConfig(&own.comm, 2, meeting.ids[0], 0, &config),
                      ncclInProgress);
            for (int i = 0; i < 2; ++i) EXPECT_EQ(own.state(), ncclInProgress);
            EXPECT_EQ(write(ends[1], meeting.ids, sizeof meeting.ids[0]), 128);
            for (;;) pause();
        }
        ncclUniqueId id;
        EXPECT_EQ(read(ends[0], &id, sizeof id), 128);
        kill(child, SIGKILL);
        EXPECT_EQ(waitpid(child, nullptr, 0), child);
        Meeting meeting;
        NcclRank own(0, 1, meeting);
        ncclConfig_t config = NcclRank::config(0);
        const ncclResult_t begun = own.nccl.ncclCommInitRankConfig(&own.comm, 2, id, 1, &config);
        EXPECT_EQ(own.outcome(begun), ncclSystemError)
            << "with its process the memory of the id went";
    });
}

TEST(AnOlderLibrary, LacksWhatCameLater)
{
    in_fresh_process([] {
        const Nccl old(FOLDER "/old_nccl/libnccl.so.2"), now;
        int version = 0;
        EXPECT_EQ(old.ncclGetVersion(&version), ncclSuccess);
        EXPECT_EQ(version, 21900);
        EXPECT_EQ(old.ncclCommWindowRegister, nullptr);
        EXPECT_EQ(old.ncclCommWindowDeregister, nullptr);
        EXPECT_EQ(old.ncclAlltoAll, nullptr);
        EXPECT_EQ(old.ncclGather, nullptr);
        EXPECT_EQ(old.ncclScatter, nullptr);
        EXPECT_NE(old.ncclMemAlloc, nullptr);
        EXPECT_EQ(now.ncclGetVersion(&version), ncclSuccess);
        EXPECT_EQ(version, NCCL_VERSION_CODE);
        setenv("FAKE_NCCL_VERSION", "21805", 1);
        EXPECT_EQ(now.ncclGetVersion(&version), ncclSuccess);
        EXPECT_EQ(version, 21805);
    });
}

}  // namespace yoke::test
