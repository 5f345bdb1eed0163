// Failures of NCCL's calls: each failure is reported once, with call, place and NCCL's own text.
#include <cstdlib>

#include "ranks.h"
#include "tests/core/fresh_process.h"

namespace yoke::test {

namespace {

struct Call {
    int32_t op;
    const char *name, *function;
    int32_t reduction = -1;
};
const std::vector<Call> kCalls = {
    {YOKE_COMM_ALL_REDUCE, "all_reduce", "ncclAllReduce", YOKE_REDUCE_SUM},
    {YOKE_COMM_REDUCE, "reduce", "ncclReduce", YOKE_REDUCE_MAX},
    {YOKE_COMM_BROADCAST, "broadcast", "ncclBroadcast"},
    {YOKE_COMM_ALL_GATHER, "all_gather", "ncclAllGather"},
    {YOKE_COMM_GATHER, "gather", "ncclGather"},
    {YOKE_COMM_SCATTER, "scatter", "ncclScatter"},
    {YOKE_COMM_REDUCE_SCATTER, "reduce_scatter", "ncclReduceScatter", YOKE_REDUCE_SUM},
    {YOKE_COMM_ALL_TO_ALL, "all_to_all", "ncclAlltoAll"},
};

yoke_status run(Rank &rank, const Call &call)
{
    void *in = rank.room(64), *out = rank.room(64);
    const bool has_root = call.op == YOKE_COMM_REDUCE || call.op == YOKE_COMM_BROADCAST ||
                          call.op == YOKE_COMM_GATHER || call.op == YOKE_COMM_SCATTER;
    if (call.op == YOKE_COMM_BROADCAST) in = out;
    return rank.run(call.op, YOKE_F32, 2, in, out, has_root ? 0 : -1, call.reduction);
}

// Receives and sends in a group, with a separate fault for each.
yoke_status exchange(Rank &rank, yoke_comm_fault *faults)
{
    EXPECT_EQ(engine().group_begin(rank.comm), YOKE_OK);
    for (const int32_t op : {YOKE_COMM_RECV, YOKE_COMM_SEND}) {
        yoke_collective record{};
        record.op = op;
        record.dtype = YOKE_F32;
        record.reduction = -1;
        record.peer = 1 - rank.rank;
        record.count = 2;
        (op == YOKE_COMM_RECV ? record.out : const_cast<void *&>(record.in)) = rank.room(64);
        record.timeout_s = rank.timeout_s;
        record.fault = faults++;
        EXPECT_EQ(rank.call(record), YOKE_OK);
    }
    return engine().group_end(rank.comm);
}

void fail_in(const std::string &function, int result)
{
    setenv("FAKE_NCCL_FAIL", (function + "#1=" + std::to_string(result)).c_str(), 1);
}

}  // namespace

TEST(NcclFaults, EachCallThatFailsIsToldWithRankAndDevice)
{
    in_fresh_process([] {
        set_devices();
        for (const Call &call : kCalls) {
            fail_in(call.function, 3);
            with_ranks({.size = 2}, [&](Rank &rank) {
                const yoke_status status = run(rank, call);
                if (rank.rank == 1) {
                    const std::string text = std::string(call.name) +
                                             ": cuda:1, rank 1 of 2: " + call.function +
                                             " failed with ncclInternalError (3)";
                    expect_fails(YOKE_E_INTERNAL, status,
                                 {text.c_str(), "that the test asked for", "NCCL_DEBUG=INFO"});
                    EXPECT_EQ(rank.fault.keeps_memory, 1u);
                    expect_fails(YOKE_E_STATE, run(rank, call), {"an earlier call"});
                    EXPECT_EQ(rank.fault.keeps_memory, 0u) << "NCCL did not see it";
                } else {
                    EXPECT_EQ(status, YOKE_OK) << failure().message;
                }
                EXPECT_EQ(engine().abort(rank.comm), YOKE_OK);
                rank.sync();
                rank.wait();
            });
            expect_none_held();
        }
    });
}

TEST(NcclFaults, ResultsBecomeTheStatusThatTellsWhatToDo)
{
    in_fresh_process([] {
        set_devices();
        const std::pair<int, yoke_status> statuses[] = {{1, YOKE_E_INTERNAL}, {2, YOKE_E_COMM},
                                                        {3, YOKE_E_INTERNAL}, {4, YOKE_E_VALUE},
                                                        {5, YOKE_E_VALUE},    {6, YOKE_E_COMM}};
        for (const auto &[result, expected] : statuses) {
            fail_in("ncclAllReduce", result);
            with_ranks({.size = 2}, [&, result = result, expected = expected](Rank &rank) {
                const yoke_status status = run(rank, kCalls[0]);
                EXPECT_EQ(status, rank.rank ? expected : YOKE_OK);
                EXPECT_EQ(rank.fault.kind,
                          rank.rank && result == 6 ? YOKE_COMM_FAULT_DIED : YOKE_COMM_FAULT_NONE);
                engine().abort(rank.comm);
                rank.sync();
            });
            expect_none_held();  // now no thread reads the fault, which changes next
        }
    });
}

TEST(NcclFaults, AGroupFailsForAllOfItsCalls)
{
    for (const char *function : {"ncclSend#1=3", "ncclGroupStart=3", "ncclGroupEnd=3"})
        in_fresh_process([function] {
            set_devices();
            with_ranks({.size = 2}, [&](Rank &rank) {
                rank.wait();
                if (rank.rank == 0) setenv("FAKE_NCCL_FAIL", function, 1);
                rank.wait();
                yoke_comm_fault faults[2]{};
                const yoke_status status = exchange(rank, faults);
                if (rank.rank == 1) {
                    expect_fails(YOKE_E_INTERNAL, status, {"cuda:1, rank 1 of 2: nccl", "(3)"});
                    for (const yoke_comm_fault &fault : faults) EXPECT_EQ(fault.keeps_memory, 1u);
                }
                rank.wait();
                engine().abort(rank.comm);
                rank.sync();
            });
            expect_none_held();
        });
}

TEST(NcclFaults, WhatTheEngineDoesNotTakeIsRefusedBeforeNcclIsCalled)
{
    in_fresh_process([] {
        with_ranks({.size = 1}, [](Rank &rank) {
            void *x = rank.room(64);
            expect_fails(YOKE_E_UNSUPPORTED, rank.run(YOKE_COMM_BARRIER, 0, 0, nullptr, nullptr),
                         {"barrier: cuda:0, rank 0 of 1", "the cpu engine"});
            expect_fails(YOKE_E_UNSUPPORTED, rank.run(99, YOKE_F32, 1, x, x), {"number 99"});
            expect_fails(YOKE_E_TYPE,
                         rank.run(YOKE_COMM_ALL_REDUCE, YOKE_BOOL, 1, x, x, -1, YOKE_REDUCE_SUM),
                         {"not defined for bool"});
            expect_fails(YOKE_E_VALUE, rank.run(YOKE_COMM_BROADCAST, YOKE_F32, 1, x, x, 3),
                         {"no peer 3"});
            expect_fails(YOKE_E_STATE, engine().group_end(rank.comm), {"without group_begin"});
            EXPECT_EQ(run(rank, kCalls[0]), YOKE_OK) << "all of that changed nothing";
            rank.sync();
        });
        expect_none_held();
    });
}

TEST(NcclFaults, AnAsynchronousErrorIsToldToWhoAsks)
{
    in_fresh_process([] {
        set_devices();
        setenv("FAKE_NCCL_ASYNC", "1@1=6", 1);
        with_ranks({.size = 2}, [](Rank &rank) {
            EXPECT_EQ(engine().async_error(rank.comm, &rank.fault), YOKE_OK);
            ASSERT_EQ(run(rank, kCalls[0]), YOKE_OK) << failure().message;
            rank.sync();
            if (rank.rank == 1) {
                expect_fails(YOKE_E_COMM, engine().async_error(rank.comm, &rank.fault),
                             {"cuda:1, rank 1 of 2", "ncclRemoteError (6)", "the other ranks"});
                EXPECT_EQ(rank.fault.kind, YOKE_COMM_FAULT_DIED);
                EXPECT_EQ(rank.fault.rank, -1);
            } else {
                EXPECT_EQ(engine().async_error(rank.comm, &rank.fault), YOKE_OK);
            }
            rank.wait();
            engine().abort(rank.comm);
        });
        expect_none_held();
    });
}

TEST(NcclFaults, ALostDeviceIsToldAsThat)
{
    in_fresh_process([] {
        set_devices();
        fail_in("ncclAllReduce", 1);
        with_ranks({.size = 2}, [&](Rank &rank) {
            rank.wait();
            if (rank.rank == 1) setenv("FAKE_CUDA_FAIL", "cudaStreamQuery=700", 1);
            rank.wait();
            if (rank.rank == 1)
                expect_fails(
                    YOKE_E_DEVICE_LOST, run(rank, kCalls[0]),
                    {"ncclAllReduce failed with ncclUnhandledCudaError (1)", "CUDA reports"});
            rank.wait();
            if (rank.rank == 1) unsetenv("FAKE_CUDA_FAIL");
            rank.wait();
            engine().abort(rank.comm);
        });
        EXPECT_EQ(held_after_a_while(), 0);
    });
}

}  // namespace yoke::test
