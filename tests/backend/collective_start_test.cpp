// The beginning of a group, also among strangers. Afterwards no resources may be left.
#include "ranks.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <thread>

#include "kernels/cpu/comm/wire.h"

namespace yoke::test {

using Start = Collectives;
YOKE_ON_EVERY_BACKEND(Start);

namespace {

void expect_sum_of_ones(Rank &r)
{
    float one = 1, sum = 0;
    ASSERT_DONE(r.run(YOKE_COMM_ALL_REDUCE, YOKE_F32, 1, &one, &sum, -1, YOKE_REDUCE_SUM));
    EXPECT_EQ(sum, static_cast<float>(r.size));
}

// Strangers at every listening socket of this process: the first sends no byte, the second leaves at once, the others
// send an invalid proof.
class Strangers {
public:
    ~Strangers()
    {
        for (int fd : open_) close(fd);
    }

    void come()
    {
        for (int door = 3; door < 1024; ++door) {
            int listens = 0;
            socklen_t bytes = sizeof listens;
            if (getsockopt(door, SOL_SOCKET, SO_ACCEPTCONN, &listens, &bytes) || !listens) continue;
            visit(door, 0, true);
            visit(door, 0, false);
            visit(door, 48, true);
            visit(door, 48, false);
            visit(door, 4096, false);
            ++doors;
        }
    }
    int doors = 0;

private:
    void visit(int door, size_t bytes, bool stays)
    {
        sockaddr_storage name;
        socklen_t size = sizeof name;
        getsockname(door, reinterpret_cast<sockaddr *>(&name), &size);
        const int fd = socket(name.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        ASSERT_EQ(connect(fd, reinterpret_cast<sockaddr *>(&name), size), 0) << strerror(errno);
        const std::string garbage(bytes, 'g');
        EXPECT_EQ(send(fd, garbage.data(), bytes, MSG_NOSIGNAL), static_cast<ssize_t>(bytes));
        if (stays)
            open_.push_back(fd);
        else
            close(fd);
    }
    std::vector<int> open_;
};

size_t open_descriptors()
{
    size_t count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (readdir(folder)) ++count;
    closedir(folder);
    return count;
}

size_t shared_mappings()
{
    std::ifstream maps("/proc/self/maps");
    size_t count = 0;
    for (std::string line; std::getline(maps, line);) count += line.find("memfd:") != line.npos;
    return count;
}

// Descriptors in flight in a socket, more than a process may have.
class OnTheirWay {
public:
    explicit OnTheirWay(int count)
    {
        if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair_)) return;
        for (int i = 0; i < count; ++i) {
            char control[CMSG_SPACE(sizeof(int))] = {}, byte = 0;
            iovec part = {&byte, 1};
            msghdr message = {};
            message.msg_iov = &part;
            message.msg_iovlen = 1;
            message.msg_control = control;
            message.msg_controllen = sizeof control;
            cmsghdr *head = CMSG_FIRSTHDR(&message);
            head->cmsg_level = SOL_SOCKET;
            head->cmsg_type = SCM_RIGHTS;
            head->cmsg_len = CMSG_LEN(sizeof(int));
            memcpy(CMSG_DATA(head), &pair_[0], sizeof(int));
            is_full_ = sendmsg(pair_[0], &message, MSG_DONTWAIT) < 0;
            if (is_full_) return;
        }
    }
    bool is_full() const { return is_full_ && errno == ETOOMANYREFS; }
    void arrive()
    {
        close(pair_[0]);
        close(pair_[1]);
    }

private:
    int pair_[2] = {-1, -1};
    bool is_full_ = false;
};

// Returns the bytes of the memory shared by this process's ranks.
int64_t shared_bytes()
{
    int64_t bytes = 0;
    for (int fd = 3; fd < 4096; ++fd) {
        struct stat file;
        char name[64] = {};
        const std::string link = "/proc/self/fd/" + std::to_string(fd);
        if (readlink(link.c_str(), name, sizeof name - 1) > 0 && strstr(name, "memfd:yoke-comm") &&
            fstat(fd, &file) == 0)
            bytes = std::max<int64_t>(bytes, file.st_size);
    }
    return bytes;
}

}  // namespace

TEST_P(Start, ManyRanksOfAHostHaveSmallerRings)
{
    for (const auto &[size, most] : {std::pair{3, 2 * 530}, {20, 19 * 210}})
        run({size}, [&, most = most](Rank &r) {
            r.meet();
            const int64_t bytes = shared_bytes();
            EXPECT_LE(bytes, most << 10);
            EXPECT_GT(bytes, (most << 10) * 9 / 10);
            r.meet();
            std::vector<float> ones(300'000, 1), sum(ones.size());
            ASSERT_DONE(r.run(YOKE_COMM_ALL_REDUCE, YOKE_F32, static_cast<int64_t>(ones.size()),
                              ones.data(), sum.data(), -1, YOKE_REDUCE_SUM));
            EXPECT_EQ(sum, std::vector<float>(ones.size(), static_cast<float>(r.size)));
        });
}

TEST_P(Start, RanksForWhoseRingsMemoryIsShortSayWhatTheyWant)
{
    with_uninitialised_ranks(*table_->comm, device_, {3}, [&](Rank &r) {
        int gathers = 0;
        r.change_gathered = [&](void *all) {  // rank 1 has seen one MiB free
            if (++gathers == 1) static_cast<cpu::comm::Place *>(all)[1].free_mib = 1;
        };
        told() = {};
        const yoke_status status = r.init();
        for (const char *part : {"3 ranks", " 1048576 are free", "YOKE_COMM_SHM=0"})
            EXPECT_NE(told().message.find(part), std::string::npos) << told().message;
        expect_failure(YOKE_E_OOM, status, "init");
    });
}

TEST_P(Start, RanksWaitWhileTheUsersDescriptorsOnTheirWayAreTooMany)
{
    const pid_t child = fork();
    if (child == 0) {
        alarm(20);
        constexpr int kFew = 40;
        const rlimit few = {kFew, kFew};
        if (setrlimit(RLIMIT_NOFILE, &few) || (getuid() == 0 && (setgid(64321) || setuid(64321))))
            _exit(2);
        OnTheirWay many(2 * kFew);
        if (!many.is_full()) _exit(2);
        std::thread other([&] {
            usleep(300'000);
            many.arrive();
        });
        run({3}, expect_sum_of_ones);
        other.join();
        _exit(HasFailure() ? 1 : 0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFEXITED(status)) << status;
    if (WEXITSTATUS(status) == 2)
        GTEST_SKIP() << "this system does not limit descriptors in transit";
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

// A rank of two has no descriptors left when the ranks connect: either the listening rank, or the connecting rank.
TEST_P(Start, WhoHasNoDescriptorsLeftSaysSoAtOnce)
{
    for (const int victim : {0, 1}) {
        Strangers strangers;
        rlimit before;
        ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
        with_uninitialised_ranks(*table_->comm, device_, {2}, [&](Rank &r) {
            int gathers = 0;
            const auto take_all = [&] {
                if (victim == 0) strangers.come();
                const int lowest = dup(0);
                close(lowest);
                const rlimit none = {static_cast<rlim_t>(lowest), before.rlim_max};
                EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
            };
            r.after_gather = [&] {
                if (++gathers != 2) return;
                r.meet();
                if (r.rank == victim) take_all();
                if (r.rank != victim) r.meet();
            };
            r.is_over = [&] { return r.rank != victim; };
            told() = {};
            const yoke_status status = r.init();
            if (r.rank != victim) return expect_failure(YOKE_E_CANCELLED, status, "init");
            setrlimit(RLIMIT_NOFILE, &before);
            EXPECT_NE(told().message.find("ulimit -n"), std::string::npos) << told().message;
            EXPECT_EQ(r.fault.kind, YOKE_COMM_FAULT_NONE);
            expect_failure(YOKE_E_IO, status, "init");
            r.meet();
        });
    }
}

// Rank 1 stops after it has met rank 0, and before it shares its memory.
TEST_P(Start, ARankThatWaitsForAnothersMemoryHearsThatItIsOver)
{
    std::atomic<bool> has_ended{false};  // rank 0
    with_uninitialised_ranks(*table_->comm, device_, {3}, [&](Rank &r) {
        int gathers = 0, asked = 0;
        r.after_gather = [&] {
            if (++gathers != 2) return;
            if (r.rank == 2) usleep(100'000);  // the others ask while they wait for this rank
        };
        r.is_over = [&] {
            if (r.rank == 1 && ++asked == 1) r.meet();  // until rank 0 and rank 2 have given up
            return r.rank == 1 || has_ended || (r.rank == 0 && ++asked > 8);
        };
        told() = {};
        const auto start = std::chrono::steady_clock::now();
        expect_failure(YOKE_E_CANCELLED, r.init(), "init");
        has_ended = true;
        EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
        if (r.rank != 1) r.meet();
    });
}

TEST_P(Start, AbortEndsAWaitForAnothersMemory)
{
    run({2}, [&](Rank &r) {
        if (r.rank == 0) {
            std::thread other([&] {
                usleep(30'000);
                EXPECT_DONE(r.engine.abort(r.comm));
            });
            void *memory = nullptr;
            told() = {};
            expect_failure(YOKE_E_CANCELLED, r.engine.mem_alloc(r.comm, 5000, &memory, nullptr),
                           "mem_alloc");
            other.join();
        }
        r.meet();
    });
}

TEST_P(Start, StrangersAtTheDoorsAreDroppedAndLogged)
{
    for (bool shares_memory : {true, false}) {
        Strangers strangers;
        const int before = log_lines();
        Ranks ranks;
        ranks.size = 3;
        ranks.shares_memory = shares_memory;
        with_uninitialised_ranks(*table_->comm, device_, ranks, [&](Rank &r) {
            int gathers = 0;
            // The sockets listen when the second round begins, and the ranks connect after the round.
            r.after_gather = [&] {
                if (++gathers == 2 && r.rank == 0) strangers.come();
                if (gathers == 2) r.meet();
            };
            ASSERT_DONE(r.init());
            expect_sum_of_ones(r);
            r.meet();
        });
        EXPECT_GE(strangers.doors, 3);
        EXPECT_GE(log_lines() - before, 3);
    }
}

TEST_P(Start, RanksMeetOverIpv6)
{
    const int probe = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (probe < 0) GTEST_SKIP() << "this system has no IPv6";
    close(probe);
    run({3, false, {}, 20, "::1"}, expect_sum_of_ones);
}

TEST_P(Start, AnAddressThatIsNoneEndsTheStartOnEveryRank)
{
    with_uninitialised_ranks(*table_->comm, device_, {2, false, {}, 5, "nowhere"}, [&](Rank &r) {
        told() = {};
        expect_failure(YOKE_E_VALUE, r.init(), "init");
    });
}

TEST_P(Start, APartOfAGroupIsAGroup)
{
    char id[YOKE_COMM_ID_BYTES];
    ASSERT_DONE(table_->comm->unique_id(id, 20));
    Ranks few{2};
    ThreadRendezvous rendezvous(2);
    run({3}, [&](Rank &r) {
        if (r.rank == 1) return;
        Rank child(r.engine, device_, r.rank / 2, few, rendezvous, id);
        ASSERT_DONE(r.split(id, child));
        expect_sum_of_ones(child);
        char text[128] = "";
        child.engine.describe(child.comm, text, sizeof text);
        EXPECT_NE(std::string(text).find("of 2"), std::string::npos) << text;
        child.meet();
    });
}

TEST_P(Start, NothingIsLeftOpenOrMapped)
{
    size_t descriptors = 0, mappings = 0;
    for (int cycle = 0; cycle < 20; ++cycle) {
        for (const Ranks &ranks : {Ranks{3}, Ranks{2, false}})
            run(ranks, [&](Rank &r) {
                void *memory = nullptr;
                ASSERT_DONE(r.engine.mem_alloc(r.comm, 5000, &memory, nullptr));
                if (r.rank == 0) r.lie = [](yoke_comm_signature &said) { said.group = 5; };
                float one = 1, sum = 0;
                EXPECT_NE(r.run(YOKE_COMM_ALL_REDUCE, YOKE_F32, 1, &one, &sum, -1, YOKE_REDUCE_SUM),
                          YOKE_OK);
            });
        if (cycle == 0) {
            descriptors = open_descriptors();
            mappings = shared_mappings();
        }
    }
    EXPECT_EQ(open_descriptors(), descriptors);
    EXPECT_EQ(shared_mappings(), mappings);
    EXPECT_EQ(mappings, 0u);
}

TEST_P(Start, AForkedChildKeepsNothingOpen)
{
    const size_t before = open_descriptors();
    run({2}, [&](Rank &r) {
        ASSERT_DONE(r.barrier());
        if (r.rank == 0) {
            EXPECT_GT(open_descriptors(), before);
            const pid_t child = fork();
            if (child == 0) {
                r.engine.after_fork();
                const bool is_clean = open_descriptors() == before && shared_mappings() == 0;
                // The child releases its inherited communicator. This must not close a reused descriptor.
                const int reused = open("/dev/null", O_RDONLY | O_CLOEXEC);
                r.engine.destroy(r.comm);
                _exit(is_clean && fcntl(reused, F_GETFD) >= 0 ? 0 : 1);
            }
            int status = 1;
            waitpid(child, &status, 0);
            EXPECT_EQ(status, 0);
        }
        r.meet();
        expect_sum_of_ones(r);
    });
}

}  // namespace yoke::test
