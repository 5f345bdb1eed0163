// Calls that the fake NCCL refuses, or answers with a hang or with wrong memory, as NCCL does.
#include "tests/fakes/cuda/nccl_ranks.h"

namespace yoke::test {

namespace {

bool is_stray(const float *place, size_t count)
{
    for (size_t i = 0; i < count * sizeof *place; ++i)
        if (reinterpret_cast<const unsigned char *>(place)[i] != 0xA5) return false;
    return true;
}

}  // namespace

// ---- hangs ----------------------------------------------------------------------------------------------------------

TEST(Hangs, LastUntilEveryRankHasCome)
{
    for (const auto &run : {in_threads, in_processes})
        in_fresh_process([&] {
            alarm(20);
            run(2, [](NcclRank &own) {
                own.init();
                float *const x = own.floats(8, 1), *const y = own.floats(8, 0);
                const cudaStream_t other = own.make_stream();
                if (own.rank == 0) {
                    EXPECT_EQ(own.all_reduce(x), ncclSuccess);
                    EXPECT_EQ(cudaMemsetAsync(y, 1, 32, own.stream), cudaSuccess);
                    EXPECT_TRUE(own.hangs());
                    EXPECT_EQ(y[0], 0) << "what stands behind it in its stream waits, too";
                    EXPECT_EQ(cudaMemsetAsync(y, 1, 32, other), cudaSuccess);
                    EXPECT_EQ(cudaStreamSynchronize(other), cudaSuccess) << "no other stream does";
                    EXPECT_EQ(x[0], 1) << "nothing is written before all have come";
                }
                own.barrier();
                if (own.rank == 1) {
                    EXPECT_EQ(own.all_reduce(x), ncclSuccess);
                }
                own.synchronize();
                EXPECT_EQ(x[0], 2);
                own.destroy();
            });
        });
}

TEST(Hangs, EndWithoutAnyThreadThatWaits)
{
    threads_of_two([](NcclRank &own) {
        own.init();
        float *const x = own.floats(8, 1);
        EXPECT_EQ(own.all_reduce(x), ncclSuccess);
        EXPECT_EQ(own.nccl.ncclCommFinalize(own.comm), ncclSuccess) << "it looks at no stream";
        EXPECT_EQ(x[7], 2.f);
    });
}

TEST(Hangs, AreWhatUnlikeKindsAndRootsEndIn)
{
    threads_of_two([](NcclRank &own) {
        own.init();
        float *const x = own.floats(8, 1);
        EXPECT_EQ(own.rank ? own.all_reduce(x)
                           : own.nccl.ncclBroadcast(x, x, 8, ncclFloat, 0, own.comm, own.stream),
                  ncclSuccess);
        EXPECT_TRUE(own.hangs());
        own.barrier();
        EXPECT_EQ(own.nccl.ncclCommAbort(own.comm), ncclSuccess);
        own.synchronize();
        own.comm = own.make_comm(1);
        EXPECT_EQ(own.nccl.ncclBroadcast(x, x, 8, ncclFloat, own.rank, own.comm, own.stream),
                  ncclSuccess);
        EXPECT_TRUE(own.hangs()) << "unlike roots";
    });
}

TEST(Hangs, AreWhatCommunicatorsInUnlikeOrdersEndIn)
{
    for (const bool alike : {true, false})
        threads_of_two([=](NcclRank &own) {
            const ncclComm_t comms[] = {own.make_comm(0), own.make_comm(1)};
            const cudaStream_t streams[] = {own.make_stream(), own.make_stream()};
            float *const places[] = {own.floats(8, 1), own.floats(8, 1)};
            for (int i = 0; i < 2; ++i) {
                const int which = alike || own.rank == 0 ? i : 1 - i;
                EXPECT_EQ(own.all_reduce(places[which], 8, streams[which], comms[which]),
                          ncclSuccess);
            }
            if (alike) {
                for (const cudaStream_t stream : streams)
                    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
                EXPECT_EQ(places[0][0] + places[1][0], 4);
            } else {
                EXPECT_TRUE(own.hangs(streams[0]));
                EXPECT_TRUE(own.hangs(streams[1]));
            }
            own.barrier();
        });
}

TEST(Hangs, AreWhatMessagesOutsideOfAGroupEndInThatCross)
{
    threads_of_two([](NcclRank &own) {
        own.init();
        float *const x = own.floats(8, 1), *const y = own.floats(8, 0);
        const int peer = 1 - own.rank;
        EXPECT_EQ(own.nccl.ncclSend(x, 8, ncclFloat, peer, own.comm, own.stream), ncclSuccess);
        EXPECT_EQ(own.nccl.ncclRecv(y, 8, ncclFloat, peer, own.comm, own.stream), ncclSuccess);
        EXPECT_TRUE(own.hangs());
        own.barrier();
    });
}

// ---- stray values ---------------------------------------------------------------------------------------------------

TEST(Stray, ValuesAreWhatUnlikeCallsOfOneKindGive)
{
    struct Case {
        size_t count;
        ncclDataType_t dtype;
        ncclRedOp_t op;
    };
    for (const Case other :
         {Case{7, ncclFloat, ncclSum}, Case{8, ncclInt32, ncclSum}, Case{8, ncclFloat, ncclMax}})
        threads_of_two([=](NcclRank &own) {
            own.init();
            const Case mine = own.rank ? other : Case{8, ncclFloat, ncclSum};
            float *const x = own.floats(8, 1);
            EXPECT_EQ(
                own.nccl.ncclAllReduce(x, x, mine.count, mine.dtype, mine.op, own.comm, own.stream),
                ncclSuccess);
            own.synchronize();
            EXPECT_TRUE(is_stray(x, mine.count));
            EXPECT_EQ(own.all_reduce(x), ncclSuccess) << "the next call is a good one";
            own.synchronize();
        });
}

TEST(Stray, ValuesAreWhatAMessageOfAnotherSizeGives)
{
    threads_of_two([](NcclRank &own) {
        own.init();
        float *const x = own.floats(8, 1);
        EXPECT_EQ(own.rank ? own.nccl.ncclSend(x, 4, ncclFloat, 0, own.comm, own.stream)
                           : own.nccl.ncclRecv(x, 8, ncclFloat, 1, own.comm, own.stream),
                  ncclSuccess);
        own.synchronize();
        EXPECT_EQ(is_stray(x, 8), own.rank == 0);
    });
}

TEST(Stray, ValuesAreWhatAnAbortLeavesOnItsRankAlone)
{
    threads_of_two([](NcclRank &own) {
        own.init();
        float *const x = own.floats(8, 1);
        if (own.rank == 0) {
            EXPECT_EQ(own.all_reduce(x), ncclSuccess);
            EXPECT_TRUE(own.hangs());
            EXPECT_EQ(own.nccl.ncclCommAbort(own.comm), ncclSuccess);
            EXPECT_TRUE(own.is_done());
            EXPECT_TRUE(is_stray(x, 8));
            own.barrier();
        } else {
            own.barrier();
            EXPECT_EQ(
                own.nccl.ncclAllGather(x, own.floats(16, 1), 8, ncclFloat, own.comm, own.stream),
                ncclSuccess);
            EXPECT_TRUE(own.hangs()) << "the peer aborted, but this rank was not notified";
            EXPECT_EQ(own.nccl.ncclCommAbort(own.comm), ncclSuccess);
            own.synchronize();
        }
    });
}

// ---- refusals -------------------------------------------------------------------------------------------------------

TEST(Refused, AreTwoRanksOnOneDevice)
{
    for (const auto &run : {in_threads, in_processes})
        in_fresh_process([&] {
            alarm(20);
            run(2, [](NcclRank &own) {
                own.use_device(0);
                ncclConfig_t config = NcclRank::config();
                EXPECT_EQ(own.nccl.ncclCommInitRankConfig(&own.comm, 2, own.meeting.ids[0],
                                                          own.rank, &config),
                          ncclInvalidUsage);
                EXPECT_EQ(own.comm, nullptr);
                const std::string told = own.nccl.ncclGetLastError(nullptr);
                EXPECT_NE(told.find("Duplicate GPU detected"), std::string::npos) << told;
            });
        });
}

TEST(Refused, AreRanksThatDoNotGoTogether)
{
    threads_of_two([](NcclRank &own) {
        ncclConfig_t config = NcclRank::config(0);
        const auto come = [&](int size, int rank, int which) {
            return own.nccl.ncclCommInitRankConfig(&own.comm, size, own.meeting.ids[which], rank,
                                                   &config);
        };
        if (own.rank == 0) {
            EXPECT_EQ(come(2, 0, 0), ncclInProgress);
            for (int i = 0; i < 2; ++i) EXPECT_EQ(own.state(), ncclInProgress);
        }
        own.barrier();
        if (own.rank == 1) {
            EXPECT_EQ(own.outcome(come(3, 1, 0)), ncclInvalidUsage) << "another number of ranks";
            EXPECT_EQ(own.outcome(come(2, 0, 0)), ncclInvalidUsage) << "a rank that is there";
            EXPECT_EQ(come(2, 2, 0), ncclInvalidArgument);
            ncclUniqueId unknown{};
            const ncclResult_t begun =
                own.nccl.ncclCommInitRankConfig(&own.comm, 2, unknown, 1, &config);
            EXPECT_EQ(own.outcome(begun), ncclSystemError);
        }
        own.barrier();
    });
}

TEST(Refused, IsACommunicatorThatIsGone)
{
    threads_of_two([](NcclRank &own) {
        float *const x = own.floats(8, 1);
        own.comm = own.make_comm(0);
        EXPECT_EQ(own.nccl.ncclCommFinalize(own.comm), ncclSuccess);
        EXPECT_EQ(own.all_reduce(x), ncclInvalidUsage) << "it is finalized";
        EXPECT_EQ(own.nccl.ncclCommDestroy(own.comm), ncclSuccess);
        EXPECT_EQ(own.nccl.ncclCommDestroy(own.comm), ncclInvalidArgument);
        EXPECT_EQ(own.all_reduce(x), ncclInvalidArgument);
        own.comm = own.make_comm(1);
        EXPECT_EQ(own.nccl.ncclCommAbort(own.comm), ncclSuccess);
        EXPECT_EQ(own.nccl.ncclCommAbort(own.comm), ncclInvalidArgument);
        ncclResult_t told = ncclSuccess;
        EXPECT_EQ(own.nccl.ncclCommGetAsyncError(own.comm, &told), ncclInvalidArgument);
        EXPECT_EQ(own.all_reduce(x, 8, nullptr, reinterpret_cast<ncclComm_t>(x)),
                  ncclInvalidArgument)
            << "there never was one";
    });
}

TEST(Refused, IsASecondThreadInACommunicator)
{
    setenv("FAKE_NCCL_FAIL", "ncclAllReduce#0@1=hang", 1);
    threads_of_two([](NcclRank &own) {
        own.init();
        float *const x = own.floats(8, 1);
        own.barrier();
        if (own.rank == 0) {
            std::thread(
                [=] {  // hangs in the call, unless the other thread's query is under way just then
                    while (own.nccl.ncclAllReduce(x, x, 8, ncclFloat, ncclSum, own.comm, nullptr) ==
                           ncclInvalidUsage)
                        std::this_thread::yield();
                })
                .detach();
            ncclResult_t told = ncclSuccess;
            EXPECT_TRUE(comes([&] {
                return own.nccl.ncclCommGetAsyncError(own.comm, &told) == ncclInvalidUsage;
            }));
            EXPECT_EQ(own.nccl.ncclGroupStart(), ncclSuccess);
            EXPECT_EQ(own.all_reduce(x), ncclInvalidUsage);
            EXPECT_EQ(own.nccl.ncclGroupEnd(), ncclInvalidUsage) << "the whole group";
        }
        own.barrier();
    });
    unsetenv("FAKE_NCCL_FAIL");
}

TEST(Refused, AreConfigsOfAnotherShape)
{
    in_fresh_process([] {
        in_threads(1, [](NcclRank &own) {
            const auto come = [&](const std::function<void(ncclConfig_t &)> &change) {
                ncclConfig_t config = NcclRank::config();
                change(config);
                ncclComm_t comm = nullptr;
                ncclUniqueId id;
                EXPECT_EQ(own.nccl.ncclGetUniqueId(&id), ncclSuccess);
                return own.nccl.ncclCommInitRankConfig(&comm, 1, id, 0, &config);
            };
            EXPECT_EQ(come([](ncclConfig_t &) {}), ncclSuccess);
            EXPECT_EQ(come([](ncclConfig_t &c) { c.size = 48, c.version = 21900; }), ncclSuccess);
            EXPECT_EQ(come([](ncclConfig_t &c) { c.size = 40; }), ncclInvalidArgument);
            EXPECT_EQ(come([](ncclConfig_t &c) { c.size += 8; }), ncclInvalidArgument);
            EXPECT_EQ(come([](ncclConfig_t &c) { c.magic = 0; }), ncclInvalidArgument);
            EXPECT_EQ(come([](ncclConfig_t &c) { c.version = 21800; }), ncclInvalidArgument);
            EXPECT_EQ(come([](ncclConfig_t &c) { c.version = 99999; }), ncclInvalidArgument);
            EXPECT_EQ(come([](ncclConfig_t &c) { c.blocking = 7; }), ncclInvalidArgument);
        });
    });
}

TEST(Refused, AreMemoryAndStreamsThatAreNotTheCommunicators)
{
    threads_of_two([](NcclRank &own) {
        own.init();
        float *const x = own.floats(8, 1);
        EXPECT_EQ(own.all_reduce(x, 9), ncclInvalidUsage) << "beyond the block";
        float host[8] = {};
        EXPECT_EQ(own.all_reduce(host), ncclInvalidArgument);
        EXPECT_EQ(own.all_reduce(nullptr), ncclInvalidArgument);
        EXPECT_EQ(
            own.nccl.ncclReduce(x, nullptr, 8, ncclFloat, ncclSum, own.rank, own.comm, own.stream),
            ncclInvalidArgument);
        EXPECT_EQ(own.nccl.ncclAllReduce(x, x + 1, 7, ncclFloat, ncclSum, own.comm, own.stream),
                  ncclInvalidUsage)
            << "they overlap";
        EXPECT_EQ(own.nccl.ncclAllReduce(x, x, 8, ncclNumTypes, ncclSum, own.comm, own.stream),
                  ncclInvalidArgument);
        EXPECT_EQ(own.nccl.ncclAllReduce(x, x, 8, ncclFloat, ncclNumOps, own.comm, own.stream),
                  ncclInvalidArgument);
        EXPECT_EQ(own.nccl.ncclSend(x, 8, ncclFloat, 2, own.comm, own.stream), ncclInvalidArgument);
        own.use_device(2);
        float *const theirs = own.floats(8, 1);
        EXPECT_EQ(own.all_reduce(theirs), ncclInvalidArgument) << "memory of another device";
        EXPECT_EQ(own.all_reduce(x, 8, own.make_stream()), ncclInvalidArgument) << "a stream of it";
        EXPECT_EQ(own.all_reduce(x), ncclSuccess) << "whichever device is current";
    });
}

TEST(Refused, AreCaptures)
{
    threads_of_two([](NcclRank &own) {
        own.init();
        EXPECT_EQ(cudaStreamBeginCapture(own.stream, cudaStreamCaptureModeRelaxed), cudaSuccess);
        EXPECT_EQ(own.all_reduce(own.floats(8, 1)), ncclInvalidUsage);
    });
}

}  // namespace yoke::test
