// Failures of calls: the rank to blame and the call of this rank.
#include "ranks.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <thread>

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

namespace yoke::test {

using Faults = Collectives;
YOKE_ON_EVERY_BACKEND(Faults);

namespace {

constexpr int64_t kCount = 50'000;  // too many for one message

struct Sum {
    std::vector<float> in = std::vector<float>(kCount, 1), out = std::vector<float>(kCount, -7);

    yoke_status run(Rank &rank)
    {
        told() = {};
        return rank.run(YOKE_COMM_ALL_REDUCE, YOKE_F32, kCount, in.data(), out.data(), -1,
                        YOKE_REDUCE_SUM);
    }
    bool is_untouched() const { return out == std::vector<float>(kCount, -7); }
};

const std::vector<Ranks> &ways()
{
    static const std::vector<Ranks> all = {{2}, {2, false}, {2, true, {"a", "b"}}};
    return all;
}

}  // namespace

TEST_P(Faults, RanksThatCallDifferentlyAreToldWhatTheOtherCalled)
{
    using Lie = std::function<void(yoke_comm_signature &)>;
    const std::vector<Lie> lies = {
        [](auto &s) { s.group = 78; },         [](auto &s) { s.sequence = 9; },
        [](auto &s) { s.count = kCount - 1; }, [](auto &s) { s.op = YOKE_COMM_REDUCE; },
        [](auto &s) { s.dtype = YOKE_I32; },   [](auto &s) { s.reduction = YOKE_REDUCE_MAX; },
        [](auto &s) { s.root = 0; },
    };
    for (const Ranks &ranks : ways())
        for (const Lie &lie : lies)
            run(ranks, [&](Rank &r) {
                yoke_comm_signature true_one{}, false_one{};
                r.lie = [&](yoke_comm_signature &said) {
                    true_one = false_one = said;
                    lie(false_one);
                    if (r.rank == 1) said = false_one;
                };
                Sum sum;
                expect_failure(YOKE_E_COMM, sum.run(r), "all_reduce");
                EXPECT_EQ(r.fault.kind, YOKE_COMM_FAULT_MISMATCH);
                EXPECT_EQ(r.fault.rank, 1 - r.rank);
                const yoke_comm_signature &theirs = r.rank == 0 ? false_one : true_one;
                EXPECT_EQ(memcmp(&r.fault.theirs, &theirs, sizeof theirs), 0);
                EXPECT_TRUE(sum.is_untouched());
                expect_failure(YOKE_E_STATE, sum.run(r), "the next call");
            });
}

// The last rank names itself as the root, the others name rank 0. So some ranks only give, and some only take.
TEST_P(Faults, EveryRankIsToldInTheCallThatRootsDiffer)
{
    for (Ranks ranks : ways())
        for (const int32_t op :
             {YOKE_COMM_BROADCAST, YOKE_COMM_SCATTER, YOKE_COMM_GATHER, YOKE_COMM_REDUCE})
            for (const int64_t count : {int64_t{1}, kCount})
                for (const int size : {2, 4}) {
                    ranks.size = size;
                    if (!ranks.nodes.empty() && size == 4) ranks.nodes = {"a", "a", "b", "b"};
                    run(ranks, [&](Rank &r) {
                        const int root = r.rank == size - 1 ? r.rank : 0;
                        std::vector<float> a(static_cast<size_t>(count * size), 1), b = a;
                        const bool is_in_place = op == YOKE_COMM_BROADCAST && r.rank == root;
                        told() = {};
                        expect_failure(
                            YOKE_E_COMM,
                            r.run(op, YOKE_F32, count, a.data(), is_in_place ? a.data() : b.data(),
                                  root, op == YOKE_COMM_REDUCE ? YOKE_REDUCE_SUM : -1),
                            "two roots");
                        EXPECT_EQ(r.fault.kind, YOKE_COMM_FAULT_MISMATCH) << "op " << op;
                        EXPECT_EQ(r.fault.theirs.op, op);
                        EXPECT_EQ(r.fault.theirs.root, root ? 0 : size - 1);
                    });
                }
}

TEST_P(Faults, ARankThatSendsWhereAnotherReducesIsNamed)
{
    for (const Ranks &ranks : ways())
        run(ranks, [&](Rank &r) {
            Sum sum;
            if (r.rank == 1) {
                expect_failure(YOKE_E_COMM, sum.run(r), "all_reduce");
                EXPECT_EQ(r.fault.theirs.op, YOKE_COMM_SEND);
            } else {
                float one = 1;
                EXPECT_DONE(r.run(YOKE_COMM_SEND, YOKE_F32, 1, &one, nullptr, 1));
            }
        });
}

TEST_P(Faults, AbortEndsAPendingCallAndAllLaterOnes)
{
    for (const Ranks &ranks : ways())
        run(ranks, [&](Rank &r) {
            ASSERT_DONE(r.barrier());
            if (r.rank == 0) {
                std::thread other([&] {
                    std::this_thread::sleep_for(std::chrono::milliseconds(30));
                    EXPECT_DONE(r.engine.abort(r.comm));
                });
                for (int i = 0; i < 2; ++i) {
                    Sum sum;
                    expect_failure(YOKE_E_CANCELLED, sum.run(r), "all_reduce");
                    EXPECT_EQ(r.fault.kind, YOKE_COMM_FAULT_ABORTED);
                    EXPECT_EQ(r.fault.rank, -1);
                }
                other.join();
            }
            r.meet();
        });
}

TEST_P(Faults, ARankThatLeavesIsNamed)
{
    for (Ranks ranks : ways())
        for (const int size : {2, 3}) {
            ranks.size = size;
            if (!ranks.nodes.empty() && size == 3) ranks.nodes = {"a", "b", "b"};
            run(ranks, [&](Rank &r) {
                ASSERT_DONE(r.barrier());
                if (r.rank == 1) return r.destroy();
                r.find_gone = [](std::span<const int32_t> asked, bool died) {
                    return !died && std::ranges::count(asked, 1) ? 1 : -1;
                };
                Sum sum;
                expect_failure(YOKE_E_COMM, sum.run(r), "all_reduce");
                EXPECT_EQ(r.fault.kind, YOKE_COMM_FAULT_DIED);
                EXPECT_EQ(r.fault.rank, 1);
            });
        }
}

TEST_P(Faults, ARankThatHangsUpIsNamedAsOneThatLeaves)
{
    if (!table_->comm->hang_up) GTEST_SKIP() << "this engine has no hang_up";
    for (const Ranks &ranks : ways())
        run(ranks, [&](Rank &r) {
            ASSERT_DONE(r.barrier());
            if (r.rank == 1) {
                EXPECT_DONE(r.engine.abort(r.comm));
                r.engine.hang_up(r.comm);
            } else {
                Sum sum;
                expect_failure(YOKE_E_COMM, sum.run(r), "all_reduce");
                EXPECT_EQ(r.fault.kind, YOKE_COMM_FAULT_DIED);
                EXPECT_EQ(r.fault.rank, 1);
            }
            r.meet();
        });
}

TEST_P(Faults, TheLowestRankThatDoesNotComeInTimeIsNamed)
{
    for (Ranks ranks : ways()) {
        ranks.size = 4;
        if (!ranks.nodes.empty()) ranks.nodes = {"a", "a", "b", "b"};
        run(ranks, [&](Rank &r) {
            ASSERT_DONE(r.barrier());
            if (r.rank == 0 || r.rank == 2) {
                r.timeout_s = 0.15;
                Sum sum;
                const auto start = std::chrono::steady_clock::now();
                expect_failure(YOKE_E_TIMEOUT, sum.run(r), "all_reduce");
                EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(150));
                EXPECT_EQ(r.fault.kind, YOKE_COMM_FAULT_LATE);
                EXPECT_EQ(r.fault.rank, 1);
            }
            r.meet();
        });
    }
}

// The last rank announces a count like the others, but gives and takes no elements.
TEST_P(Faults, NobodyIsNamedWhereOneOfSeveralStopsAmidACall)
{
    if (!kEngineKnowsDeaths)
        GTEST_SKIP()
            << "the behaviour of this engine's library is undefined if a rank stops amid a call";
    for (Ranks ranks : ways())
        for (const int size : {2, 3}) {
            ranks.size = size;
            if (!ranks.nodes.empty() && size == 3) ranks.nodes = {"a", "b", "c"};
            run(ranks, [&](Rank &r) {
                const bool stops = r.rank == size - 1;
                std::vector<float> in(kCount), out(static_cast<size_t>(kCount * size));
                r.lie = [](yoke_comm_signature &said) { said.count = kCount; };
                if (!stops) r.timeout_s = 0.2;
                const yoke_status status = r.run(YOKE_COMM_ALL_GATHER, YOKE_F32, stops ? 0 : kCount,
                                                 in.data(), out.data());
                r.meet();
                if (stops) return;
                EXPECT_EQ(status, YOKE_E_TIMEOUT);
                EXPECT_EQ(r.fault.kind, YOKE_COMM_FAULT_LATE);
                EXPECT_EQ(r.fault.rank, size == 2 ? 1 : -1);
            });
        }
}

TEST_P(Faults, ARankThatDoesNotConnectIsNamed)
{
    if (!kEngineKnowsDeaths) GTEST_SKIP() << "this engine gets no reports of dead ranks";
    with_uninitialised_ranks(*table_->comm, device_, {2}, [&](Rank &r) {
        if (r.rank == 1) {  // sends no rank info, and does not come
            r.meet();
            r.meet();
            return;
        }
        told() = {};
        r.timeout_s = 0.1;
        expect_failure(YOKE_E_TIMEOUT, r.init(), "init");
        EXPECT_EQ(r.fault.kind, YOKE_COMM_FAULT_LATE);
        EXPECT_EQ(r.fault.rank, 1);
    });
}

// ---- processes ------------------------------------------------------------------------------------------------------

namespace {

// An all_gather of two processes over a pair of sockets.
struct Process {
    int rank, socket;

    static yoke_status gather(void *user, const void *mine, uint64_t bytes, void *all)
    {
        const Process &self = *static_cast<Process *>(user);
        char *to = static_cast<char *>(all),
             *theirs = to + static_cast<uint64_t>(1 - self.rank) * bytes;
        memcpy(to + static_cast<uint64_t>(self.rank) * bytes, mine, bytes);
        if (write(self.socket, mine, bytes) != static_cast<ssize_t>(bytes)) return YOKE_E_IO;
        for (uint64_t got = 0; got < bytes;) {
            const ssize_t now = read(self.socket, theirs + got, bytes - got);
            if (now <= 0) return YOKE_E_IO;
            got += static_cast<uint64_t>(now);
        }
        return YOKE_OK;
    }

    void *init(const yoke_backend_comm &engine, const char *id)
    {
        yoke_comm_member record{};
        record.struct_size = sizeof record;
        record.rank = rank;
        record.size = 2;
        record.id = id;
        record.address = "127.0.0.1";
        record.timeout_s = 20;
        record.all_gather = gather;
        record.user = this;
        void *comm = nullptr;
        EXPECT_DONE(engine.init(&record, &comm));
        return comm;
    }
};

yoke_status barrier(const yoke_backend_comm &engine, void *comm, yoke_comm_fault *fault)
{
    yoke_comm_signature signature{};
    yoke_collective record{};
    record.struct_size = sizeof record;
    record.op = YOKE_COMM_BARRIER;
    record.signature = &signature;
    record.peer = -1;
    record.timeout_s = 20;
    record.fault = fault;
    return engine.call(comm, &record);
}

// Forks rank 1, which does `then` after a barrier, and waits to be killed.
template <class Then>
pid_t fork_peer(const yoke_backend_comm &engine, int socket, const char *id, const Then &then)
{
    const pid_t peer = fork();
    if (peer != 0) return peer;
    alarm(20);
    void *comm = Process{1, socket}.init(engine, id);
    if (barrier(engine, comm, nullptr)) _exit(1);
    then();
    for (;;) pause();
}

}  // namespace

TEST_P(Faults, AProcessThatIsKilledIsNamedThoughItsChildLives)
{
    if (!kEngineKnowsDeaths) GTEST_SKIP() << "this engine gets no reports of dead ranks";
    const yoke_backend_comm &engine = *table_->comm;
    for (const char *shares : {"1", "0"}) {
        settings() = {{"YOKE_COMM_SHM", shares}};
        int sockets[2];
        char id[YOKE_COMM_ID_BYTES];
        ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
        ASSERT_DONE(engine.unique_id(id, 20));
        const pid_t killed = fork_peer(engine, sockets[1], id, [&] {
            if (fork() != 0) return;
            alarm(20);
            engine.after_fork();
            const pid_t self = getpid();
            if (write(sockets[1], &self, sizeof self) != sizeof self) _exit(1);
        });
        void *comm = Process{0, sockets[0]}.init(engine, id);
        ASSERT_NE(comm, nullptr);
        yoke_comm_fault fault{};
        EXPECT_DONE(barrier(engine, comm, &fault));
        pid_t grandchild = 0;
        ASSERT_EQ(read(sockets[0], &grandchild, sizeof grandchild), ssize_t{sizeof grandchild});
        kill(killed, SIGKILL);
        expect_failure(YOKE_E_COMM, barrier(engine, comm, &fault), "barrier");
        EXPECT_EQ(fault.kind, YOKE_COMM_FAULT_DIED);
        EXPECT_EQ(fault.rank, 1);
        engine.destroy(comm);
        waitpid(killed, nullptr, 0);
        kill(grandchild, SIGKILL);
        close(sockets[0]);
        close(sockets[1]);
    }
    settings().clear();
}

namespace {

// While it lives a signal comes every two milliseconds.
class Ticks {
public:
    Ticks()
    {
        struct sigaction action = {};
        action.sa_handler = [](int) {};
        action.sa_flags = SA_RESTART;
        sigaction(SIGALRM, &action, &before_);
        set(2000);
    }
    ~Ticks()
    {
        set(0);
        sigaction(SIGALRM, &before_, nullptr);
    }

private:
    static void set(suseconds_t each)
    {
        const itimerval timer = {{0, each}, {0, each}};
        setitimer(ITIMER_REAL, &timer, nullptr);
    }
    struct sigaction before_ = {};
};

}  // namespace

TEST_P(Faults, AProcessThatIsKilledIsNamedThoughSignalsEndEverySleep)
{
    if (!kEngineKnowsDeaths) GTEST_SKIP() << "this engine gets no reports of dead ranks";
    const yoke_backend_comm &engine = *table_->comm;
    settings().clear();
    int sockets[2];
    char id[YOKE_COMM_ID_BYTES];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
    ASSERT_DONE(engine.unique_id(id, 20));
    const pid_t killed = fork_peer(engine, sockets[1], id, [] {});
    void *comm = Process{0, sockets[0]}.init(engine, id);
    ASSERT_NE(comm, nullptr);
    yoke_comm_fault fault{};
    EXPECT_DONE(barrier(engine, comm, &fault));
    kill(killed, SIGKILL);
    waitpid(killed, nullptr, 0);
    {
        const Ticks ticks;
        expect_failure(YOKE_E_COMM, barrier(engine, comm, &fault), "barrier");
    }
    EXPECT_EQ(fault.kind, YOKE_COMM_FAULT_DIED);
    EXPECT_EQ(fault.rank, 1);
    engine.destroy(comm);
    close(sockets[0]);
    close(sockets[1]);
}

}  // namespace yoke::test
