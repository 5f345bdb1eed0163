// Calls of NCCL, in turn, that fail or never return. Other calls must still work meanwhile.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "ranks.h"
#include "tests/core/fresh_process.h"

namespace yoke::test {

namespace {

constexpr uint64_t kBytes = 64;

yoke_status reduce(Rank &rank, void *memory)
{
    return rank.run(YOKE_COMM_ALL_REDUCE, YOKE_F32, 2, memory, memory, -1, YOKE_REDUCE_SUM);
}

yoke_status send(Rank &rank, void *memory)
{
    return rank.run(YOKE_COMM_SEND, YOKE_F32, 2, memory, nullptr, 1 - rank.rank);
}

yoke_status receive(Rank &rank, void *memory)
{
    return rank.run(YOKE_COMM_RECV, YOKE_F32, 2, nullptr, memory, 1 - rank.rank);
}

// A call alone is in no group of NCCL's.
yoke_status send_twice(Rank &rank, void *memory)
{
    EXPECT_EQ(engine().group_begin(rank.comm), YOKE_OK);
    for (int i = 0; i < 2; ++i) EXPECT_EQ(send(rank, memory), YOKE_OK);
    return engine().group_end(rank.comm);
}

yoke_status give_back(Rank &rank, void *memory)
{
    return engine().mem_free(rank.comm, memory, kBytes);
}

using Attempt = yoke_status (*)(Rank &rank, void *memory);

// Makes memory on two ranks, sets a fault, and has rank 0 run the body.
void with_fault(const std::string &fault, const std::function<void(Rank &, void *memory)> &body)
{
    set_devices();
    with_ranks({.size = 2}, [&](Rank &rank) {
        void *memory = nullptr;
        ASSERT_EQ(engine().mem_alloc(rank.comm, kBytes, &memory, nullptr), YOKE_OK)
            << failure().message;
        rank.wait();
        if (rank.rank == 0) {
            setenv("FAKE_NCCL_FAIL", fault.c_str(), 1);
            body(rank, memory);
        }
        rank.wait();
        if (rank.comm) {
            engine().abort(rank.comm);
            engine().mem_free(rank.comm, memory, kBytes);
        }
    });
}

}  // namespace

TEST(NcclHangs, KeepNeitherAbortNorDestroy)
{
    const std::pair<const char *, Attempt> cases[] = {
        {"ncclSend", send},
        {"ncclRecv", receive},
        {"ncclGroupEnd", send_twice},
        {"ncclCommGetAsyncError", reduce},
    };
    for (const auto &[call, run] : cases)
        in_fresh_process([call = call, run = run] {
            with_fault(std::string(call) + "=hang", [&](Rank &rank, void *memory) {
                static std::atomic<bool> has_returned{false};
                std::thread([&rank, run, memory] {
                    run(rank, memory);
                    has_returned = true;
                }).detach();
                usleep(100000);
                const double took = seconds_of([&] {
                    yoke_comm_fault fault{};
                    EXPECT_EQ(engine().async_error(rank.comm, &fault), YOKE_OK);
                    EXPECT_EQ(engine().abort(rank.comm), YOKE_OK);
                    rank.destroy();
                });
                EXPECT_LT(took, 0.5) << call;
                EXPECT_FALSE(has_returned) << call << " did not hang";
            });
        });
}

// If NCCL hangs in a rank's call, this rank is named in the rank's own error. A waiting rank names no rank.
TEST(NcclHangs, MemoryIsGivenUpAtTheDeadlineAndTheRankNamesItself)
{
    for (const char *function : {"ncclMemAlloc", "ncclCommWindowRegister", "ncclCommRegister"})
        in_fresh_process([function] {
            set_devices();
            const bool is_old = !strcmp(function, "ncclCommRegister");
            if (is_old) setenv("FAKE_NCCL_NO_WINDOWS", "1", 1);
            setenv("FAKE_NCCL_FAIL", (std::string(function) + "@1=hang").c_str(), 1);
            std::atomic<int> stuck{0};
            with_ranks({.size = 2, .timeout_s = 0.3}, [&](Rank &rank) {
                void *made = nullptr;
                yoke_comm_fault fault{};
                yoke_status status = YOKE_OK;
                rank.wait();
                const double took = seconds_of(
                    [&] { status = engine().mem_alloc(rank.comm, kBytes, &made, &fault); });
                EXPECT_LT(took, 1.3);
                if (status == YOKE_OK && is_old) return;  // a buffer waits for no rank
                EXPECT_GE(took, 0.3);
                EXPECT_EQ(fault.kind, YOKE_COMM_FAULT_LATE);
                if (fault.rank == rank.rank) {
                    ++stuck;
                    expect_fails(YOKE_E_TIMEOUT, status,
                                 {"mem_alloc: cuda:", function, "has not returned in time"});
                } else {
                    EXPECT_EQ(fault.rank, -1);
                    expect_fails(YOKE_E_TIMEOUT, status,
                                 {"ncclCommWindowRegister has not finished"});
                }
                EXPECT_EQ(engine().abort(rank.comm), YOKE_OK);
            });
            EXPECT_EQ(stuck, 1) << function;
        });
}

TEST(NcclHangs, MemoryIsGivenBackWithoutAWaitForNccl)
{
    for (const char *function : {"ncclMemFree", "ncclCommWindowDeregister", "ncclCommDeregister"})
        in_fresh_process([function] {
            set_devices();
            if (!strcmp(function, "ncclCommDeregister")) setenv("FAKE_NCCL_NO_WINDOWS", "1", 1);
            with_ranks({.size = 1, .timeout_s = 0.3}, [&](Rank &rank) {
                void *blocks[3] = {}, *x = rank.upload(encode(YOKE_F32, {1, 1}));
                for (void *&each : blocks)
                    ASSERT_EQ(engine().mem_alloc(rank.comm, kBytes, &each, nullptr), YOKE_OK);
                setenv("FAKE_NCCL_FAIL", (std::string(function) + "=hang").c_str(), 1);
                const double took = seconds_of([&] {
                    for (void *each : blocks)
                        EXPECT_EQ(engine().mem_free(rank.comm, each, kBytes), YOKE_OK);
                });
                EXPECT_LT(took, 0.5) << function;
                const yoke_status status = reduce(rank, x);
                if (strcmp(function, "ncclMemFree") == 0) {
                    EXPECT_EQ(status, YOKE_OK) << failure().message;
                    rank.sync();
                } else {  // NCCL has the communicator
                    expect_fails(YOKE_E_TIMEOUT, status, {function, "has not returned in time"});
                    EXPECT_EQ(rank.fault.rank, 0);
                }
                EXPECT_LT(seconds_of([&] { rank.destroy(); }), 0.5);
                void *orphan = blocks[0];
                EXPECT_EQ(engine().mem_free(nullptr, orphan, kBytes), YOKE_E_VALUE) << "once";
            });
        });
}

TEST(NcclHangs, AQuestionForTheStateOfACommunicatorHoldsNobodyUp)
{
    in_fresh_process([] {
        with_ranks({.size = 1}, [](Rank &rank) {
            setenv("FAKE_NCCL_FAIL", "ncclCommGetAsyncError=hang", 1);
            const double took = seconds_of([&] {
                for (int i = 0; i < 5; ++i)
                    EXPECT_EQ(engine().async_error(rank.comm, &rank.fault), YOKE_OK);
            });
            EXPECT_LT(took, 0.5);
        });
    });
}

TEST(NcclHangs, AnIdAndAVersionAreGivenUpAtTheDeadline)
{
    in_fresh_process([] {
        setenv("FAKE_NCCL_FAIL", "ncclGetUniqueId=hang", 1);
        open_module();
        char id[YOKE_COMM_ID_BYTES];
        const double took = seconds_of([&] {
            expect_fails(YOKE_E_TIMEOUT, engine().unique_id(id, 0.1),
                         {"ncclGetUniqueId has not returned within 0.1 s", "NCCL_SOCKET_IFNAME"});
        });
        EXPECT_LT(took, 1.1);
    });
    in_fresh_process([] {
        setenv("FAKE_NCCL_FAIL", "ncclGetVersion=hang", 1);
        open_module();
        char why[4096];
        const double took =
            seconds_of([&] { EXPECT_EQ(engine().version(0.1, why, sizeof why), 0); });
        EXPECT_LT(took, 1.1);
        EXPECT_NE(std::string(why).find("ncclGetVersion has not returned within 0.1 s"),
                  std::string::npos)
            << why;
    });
}

TEST(NcclHangs, CallsThatFailInsteadAreToldOnce)
{
    struct Case {
        const char *fault;
        Attempt run;
        yoke_status status;
        const char *told;  // by the call; if the call succeeds, by the log
        int held;
    };
    const Case cases[] = {
        {"ncclSend=3", send, YOKE_E_INTERNAL, "send: cuda:0, rank 0 of 2: ncclSend failed", 0},
        {"ncclRecv=3", receive, YOKE_E_INTERNAL, "recv: cuda:0, rank 0 of 2: ncclRecv failed", 0},
        {"ncclCommGetAsyncError@1=3", reduce, YOKE_E_INTERNAL, "ncclAllReduce failed with", 0},
        {"ncclCommWindowDeregister@1=3", give_back, YOKE_OK, "memory is not deregistered", 0},
        {"ncclMemFree@1=3", give_back, YOKE_OK, "ncclMemFree of 64 bytes failed with 3", 1},
    };
    for (const Case &one : cases)
        in_fresh_process([&one] {
            with_fault(one.fault, [&](Rank &rank, void *memory) {
                count_calls_anew();
                const yoke_status status = one.run(rank, memory);
                EXPECT_EQ(status, one.status) << one.fault;
                const std::string told = status ? failure().message : logged();
                EXPECT_NE(told.find(one.told), std::string::npos) << told;
            });
            EXPECT_EQ(held_after_a_while(one.held ? 300 : 5000), one.held) << one.fault;
        });
}

}  // namespace yoke::test
