// Faults that tests ask of the fake NCCL, and non-blocking communicators.
#include "tests/fakes/cuda/nccl_ranks.h"

namespace yoke::test {

namespace {

void ask(const char *variable, const char *what)
{
    setenv(variable, what, 1);
}

// Makes a non-blocking communicator of all ranks, and polls until the communicator is ready.
void come(NcclRank &own)
{
    ncclConfig_t config = NcclRank::config(0);
    const ncclResult_t begun =
        own.nccl.ncclCommInitRankConfig(&own.comm, own.size, own.meeting.ids[0], own.rank, &config);
    EXPECT_TRUE(begun == ncclInProgress || begun == ncclSuccess) << begun;
    EXPECT_TRUE(comes([&] { return own.state() == ncclSuccess; }));
}

// Tells whether a call returns. The thread that makes the call is not joined.
bool comes_back(NcclRank &own, int milliseconds, const std::function<void()> &call)
{
    const auto is_back = std::make_shared<std::atomic<bool>>(false);
    std::thread([=, &own] {
        own.use_device(own.rank);
        call();
        *is_back = true;
    }).detach();
    const bool came = comes([&] { return is_back->load(); }, milliseconds);
    own.barrier();
    return came;
}

}  // namespace

// ---- in progress ----------------------------------------------------------------------------------------------------

TEST(InProgress, IsTheMakingOfACommunicatorUntilAllHaveCome)
{
    threads_of_two([](NcclRank &own) {
        ncclConfig_t config = NcclRank::config(0);
        if (own.rank == 1) own.barrier();
        const ncclResult_t begun =
            own.nccl.ncclCommInitRankConfig(&own.comm, 2, own.meeting.ids[0], own.rank, &config);
        if (own.rank == 0) {
            EXPECT_EQ(begun, ncclInProgress);
            for (int i = 0; i < 20; ++i) EXPECT_EQ(own.state(), ncclInProgress);
            int count = 0;
            EXPECT_EQ(own.nccl.ncclCommCount(own.comm, &count), ncclInvalidArgument);
            EXPECT_EQ(own.all_reduce(own.floats(8, 1)), ncclInvalidArgument);
            own.barrier();
        }
        EXPECT_TRUE(comes([&] { return own.state() == ncclSuccess; }));
        int count = 0, rank = -1, device = -1;
        EXPECT_EQ(own.nccl.ncclCommCount(own.comm, &count), ncclSuccess);
        EXPECT_EQ(own.nccl.ncclCommUserRank(own.comm, &rank), ncclSuccess);
        EXPECT_EQ(own.nccl.ncclCommCuDevice(own.comm, &device), ncclSuccess);
        EXPECT_EQ(count, 2);
        EXPECT_EQ(rank, own.rank);
        EXPECT_EQ(device, own.rank);
    });
}

TEST(InProgress, IsEachCallForAsManyPollsAsAsked)
{
    in_fresh_process([] {
        alarm(20);
        ask("FAKE_NCCL_IN_PROGRESS", "3");
        in_threads(2, [](NcclRank &own) {
            come(own);
            float *const x = own.floats(8, 1);
            const auto polls = [&] {
                int count = 0;
                for (; own.state() == ncclInProgress; ++count) {
                }
                return count;
            };
            EXPECT_EQ(own.all_reduce(x), ncclInProgress);
            EXPECT_EQ(own.all_reduce(x), ncclInvalidArgument) << "it is not done";
            EXPECT_FALSE(own.hangs()) << "nothing is launched before";
            EXPECT_EQ(polls(), 3);
            own.synchronize();
            EXPECT_EQ(x[0], 2);
            EXPECT_EQ(own.nccl.ncclGroupStart(), ncclSuccess);
            EXPECT_EQ(own.all_reduce(x), ncclSuccess);
            EXPECT_EQ(own.nccl.ncclGroupEnd(), ncclInProgress);
            EXPECT_EQ(polls(), 3);
            own.synchronize();
            EXPECT_EQ(x[0], 4);
            EXPECT_EQ(own.nccl.ncclCommFinalize(own.comm), ncclInProgress);
            EXPECT_EQ(own.nccl.ncclCommDestroy(own.comm), ncclInvalidArgument);
            EXPECT_EQ(polls(), 3);
            own.destroy();
        });
    });
}

TEST(InProgress, IsAnEndThatWaitsForItsKernels)
{
    threads_of_two([](NcclRank &own) {
        come(own);
        float *const x = own.floats(8, 1);
        if (own.rank == 0) {
            EXPECT_EQ(own.all_reduce(x), ncclInProgress);
            EXPECT_TRUE(comes([&] { return own.state() == ncclSuccess; }));
            EXPECT_EQ(own.nccl.ncclCommFinalize(own.comm), ncclInProgress);
            for (int i = 0; i < 20; ++i) EXPECT_EQ(own.state(), ncclInProgress);
            own.barrier();
        } else {
            own.barrier();
            EXPECT_EQ(own.all_reduce(x), ncclInProgress);
            EXPECT_TRUE(comes([&] { return own.state() == ncclSuccess; }));
            own.synchronize();
            own.nccl.ncclCommFinalize(own.comm);
        }
        EXPECT_TRUE(comes([&] { return own.state() == ncclSuccess; }));
        own.destroy();
    });
}

// ---- faults ---------------------------------------------------------------------------------------------------------

TEST(Faults, FailTheCallThatIsNamedAndNoOther)
{
    in_fresh_process([] {
        in_threads(1, [](NcclRank &own) {
            own.init();
            float *const x = own.floats(8, 1);
            ask("FAKE_NCCL_FAIL", "ncclAllReduce@2=3,ncclCommAbort=2,ncclGroupEnd=1");
            EXPECT_EQ(own.all_reduce(x), ncclSuccess);
            EXPECT_EQ(own.all_reduce(x), ncclInternalError);
            EXPECT_EQ(own.all_reduce(x), ncclSuccess);
            EXPECT_EQ(own.nccl.ncclCommAbort(own.comm), ncclSystemError);
            EXPECT_EQ(own.nccl.ncclGroupStart(), ncclSuccess);
            EXPECT_EQ(own.nccl.ncclGroupEnd(), ncclUnhandledCudaError);
            ask("FAKE_NCCL_FAIL", "ncclAllReduce#0@4=5,ncclAllReduce#1=6");
            EXPECT_EQ(own.all_reduce(x), ncclInvalidUsage) << "the fourth of rank 0";
            EXPECT_EQ(own.all_reduce(x), ncclSuccess);
            own.synchronize();
            own.destroy();
            ask("FAKE_NCCL_FAIL", "ncclCommInitRankConfig=3,ncclGetUniqueId=2,ncclMemAlloc=1");
            ncclConfig_t config = NcclRank::config();
            EXPECT_EQ(own.nccl.ncclCommInitRankConfig(&own.comm, 1, own.meeting.ids[1], 0, &config),
                      ncclInternalError);
            void *made = nullptr;
            EXPECT_EQ(own.nccl.ncclGetUniqueId(&own.meeting.ids[0]), ncclSystemError);
            EXPECT_EQ(own.nccl.ncclMemAlloc(&made, 8), ncclUnhandledCudaError);
            EXPECT_EQ(own.nccl.fake_nccl_held(), 0);
        });
    });
}

TEST(Faults, AreCountedByRankWhereOneIsNamed)
{
    threads_of_two([](NcclRank &own) {
        own.init();
        float *const x = own.floats(8, 1);
        own.barrier();
        if (own.rank == 0) ask("FAKE_NCCL_FAIL", "ncclAllReduce#1@2=3");
        for (int i = 1; i <= 3; ++i) {
            own.barrier();  // the second of all six calls may be another rank's; rank 1's own second call must fail
            EXPECT_EQ(own.all_reduce(x), own.rank == 1 && i == 2 ? ncclInternalError : ncclSuccess);
        }
    });
}

TEST(Faults, HangACallForEver)
{
    ask("FAKE_NCCL_FAIL", "ncclCommAbort#1=hang");
    threads_of_two([](NcclRank &own) {
        own.init();
        const auto abort = [nccl = own.nccl, comm = own.comm] { nccl.ncclCommAbort(comm); };
        EXPECT_EQ(comes_back(own, own.rank ? 100 : 5000, abort), own.rank == 0);
    });
    unsetenv("FAKE_NCCL_FAIL");
}

TEST(Faults, SlowACallDown)
{
    in_fresh_process([] {
        in_threads(1, [](NcclRank &own) {
            own.init();
            ask("FAKE_NCCL_FAIL", "ncclAllReduce=slow:0.1");
            const auto start = std::chrono::steady_clock::now();
            EXPECT_EQ(own.all_reduce(own.floats(8, 1)), ncclSuccess);
            EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(100));
            own.synchronize();
        });
    });
}

TEST(Faults, TellAnAsynchronousErrorOfOneRank)
{
    in_fresh_process([] {
        alarm(20);
        ask("FAKE_NCCL_ASYNC", "2@1");
        in_threads(2, [](NcclRank &own) {
            come(own);
            float *const x = own.floats(8, 1);
            for (const ncclResult_t expected :
                 {ncclSuccess, own.rank ? ncclRemoteError : ncclSuccess}) {
                EXPECT_EQ(own.all_reduce(x), ncclInProgress);
                EXPECT_TRUE(comes([&] { return own.state() == expected; }));
            }
            if (own.rank) {
                EXPECT_EQ(own.all_reduce(x), ncclRemoteError);
            }
            own.synchronize();
            EXPECT_EQ(own.nccl.ncclCommAbort(own.comm), ncclSuccess);
        });
    });
}

TEST(Faults, KeepARankStuckAndSoItsPeers)
{
    in_fresh_process([] {
        alarm(20);
        ask("FAKE_NCCL_STUCK", "1@2");
        in_threads(2, [](NcclRank &own) {
            own.init();
            float *const x = own.floats(8, 1);
            EXPECT_EQ(own.all_reduce(x), ncclSuccess);
            own.synchronize();
            EXPECT_EQ(own.all_reduce(x), ncclSuccess);
            EXPECT_TRUE(own.hangs());
            own.barrier();
            EXPECT_EQ(own.nccl.ncclCommAbort(own.comm), ncclSuccess);
            own.synchronize();
        });
    });
}

TEST(Faults, KeepAMessageFromARankThatIsStuck)
{
    in_fresh_process([] {
        alarm(20);
        ask("FAKE_NCCL_STUCK", "1@1");
        in_threads(2, [](NcclRank &own) {
            own.init();
            float *const x = own.floats(8, 1);
            EXPECT_EQ(own.rank ? own.nccl.ncclRecv(x, 8, ncclFloat, 0, own.comm, own.stream)
                               : own.nccl.ncclSend(x, 8, ncclFloat, 1, own.comm, own.stream),
                      ncclSuccess);
            EXPECT_TRUE(own.hangs());
            own.barrier();
        });
    });
}

TEST(Faults, EndKernelsLate)
{
    in_fresh_process([] {
        ask("FAKE_NCCL_LATE", "20");
        in_threads(1, [](NcclRank &own) {
            own.init();
            const auto start = std::chrono::steady_clock::now();
            for (int i = 0; i < 10; ++i) {
                EXPECT_EQ(own.all_reduce(own.floats(8, 1)), ncclSuccess);
                own.synchronize();
            }
            EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(30));
        });
    });
}

// ---- groups ---------------------------------------------------------------------------------------------------------

// A single thread makes both ranks, and does calls for both within groups.
TEST(Groups, LetOneThreadHaveSeveralRanks)
{
    in_fresh_process([] {
        alarm(20);
        in_threads(1, [](NcclRank &own) {
            const Nccl &nccl = own.nccl;
            ncclComm_t comms[2] = {};
            cudaStream_t streams[2];
            float *places[2];
            EXPECT_EQ(nccl.ncclGroupStart(), ncclSuccess);
            for (int i = 0; i < 2; ++i) {
                own.use_device(i);
                streams[i] = own.make_stream();
                places[i] = own.floats(8, static_cast<float>(i + 1));
                ncclConfig_t config = NcclRank::config();
                EXPECT_EQ(nccl.ncclCommInitRankConfig(&comms[i], 2, own.meeting.ids[0], i, &config),
                          ncclSuccess);
            }
            EXPECT_EQ(nccl.ncclGroupEnd(), ncclSuccess);
            EXPECT_EQ(nccl.ncclGroupStart(), ncclSuccess);
            for (int i = 0; i < 2; ++i)
                EXPECT_EQ(own.all_reduce(places[i], 8, streams[i], comms[i]), ncclSuccess);
            EXPECT_EQ(nccl.ncclGroupEnd(), ncclSuccess);
            for (int i = 0; i < 2; ++i) {
                own.use_device(i);
                EXPECT_EQ(cudaStreamSynchronize(streams[i]), cudaSuccess);
                EXPECT_EQ(places[i][7], 3.f);
                EXPECT_EQ(nccl.ncclCommDestroy(comms[i]), ncclSuccess);
            }
            EXPECT_EQ(nccl.ncclGroupEnd(), ncclInvalidUsage) << "there is none";
        });
    });
}

TEST(Groups, DoNothingOfWhatTheyHoldWhereOneCallFails)
{
    threads_of_two([](NcclRank &own) {
        own.init();
        float *const x = own.floats(8, 1);
        EXPECT_EQ(own.nccl.ncclGroupStart(), ncclSuccess);
        EXPECT_EQ(own.all_reduce(x), ncclSuccess);
        EXPECT_EQ(own.all_reduce(x, 9), ncclInvalidUsage);
        EXPECT_EQ(own.nccl.ncclGroupEnd(), ncclInvalidUsage);
        own.synchronize();
        EXPECT_EQ(x[0], 1);
    });
}

}  // namespace yoke::test
