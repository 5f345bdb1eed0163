// The thread team: every part runs once whatever the threads do. Also a process that forks, a process without
// permission for threads, and a process with a small stack.
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <iterator>
#include <string>
#include <thread>

#include "kernels/cpu/cpu.h"
#include "tests/core/fresh_process.h"
#include "tests/core/no_threads.h"
#include "tests/kernels/cpu_harness.h"

// Functions of oneDNN's OpenMP, whichever it is; null in a build without oneDNN.
extern "C" {
__attribute__((weak)) int omp_get_max_threads(void);
__attribute__((weak)) void omp_set_num_threads(int);
}

namespace {

using cpu_test::set_threads;
using yoke::cpu::run_chunks;
using yoke::cpu::team_size;
using yoke::test::forbid_threads;
using yoke::test::passes_in_child;

struct Counts {
    std::vector<std::atomic<int>> parts, slots;
    std::atomic<bool> alone{true};
    int units = 0;  // units of work in a part

    Counts(size_t count, size_t most_slots) : parts(count), slots(most_slots) {}
};

std::atomic<unsigned> g_sink;  // so that the work is done

void work(int units)
{
    unsigned sum = 0;
    for (int i = 0; i < units * 100; i++) sum = sum * 1664525u + 1013904223u;
    g_sink.store(sum, std::memory_order_relaxed);
}

void count_part(void *context, int64_t i, int slot)
{
    Counts &counts = *static_cast<Counts *>(context);
    counts.parts[(size_t)i]++;
    if (counts.slots[(size_t)slot]++) counts.alone = false;  // two at once with one slot
    work(counts.units);
    counts.slots[(size_t)slot]--;
}

void expect_each_once(size_t count, int units = 0)
{
    const size_t slots = (size_t)team_size();
    Counts counts(count, slots);
    counts.units = units;
    run_chunks((int64_t)count, count_part, &counts, (int)slots);
    for (size_t i = 0; i < count; i++)
        ASSERT_EQ(counts.parts[i], 1) << "part " << i << " of " << count;
    EXPECT_TRUE(counts.alone);
}

class CpuTeam : public testing::Test {
protected:
    static void SetUpTestSuite()
    {
        cpu_test::levels();
        pthread_atfork(nullptr, nullptr,
                       [] { cpu_test::backend().after_fork(); });  // as the core does
    }
    void TearDown() override { set_threads(2); }
};

// Compares a divided product with the right result. Any child and any thread can call this to check that the kernels
// work.
bool computes()
{
    using cpu_test::Array;
    Array x(YOKE_F32, {64, 256}, cpu_test::ramp(64 * 256)), y(YOKE_F32, {256, 128});
    y.set(std::vector<double>(256 * 128, 0.5));
    Array out(YOKE_F32, {64, 128});
    const cpu_test::Level &level = cpu_test::levels().back();
    if (cpu_test::launch(level, YOKE_OP_MATMUL, {x, y, out}, 2) != YOKE_OK) return false;
    const std::vector<double> rows = x.values(), got = out.values();
    for (size_t row = 0; row < 64; row++) {
        double sum = 0;
        for (size_t k = 0; k < 256; k++) sum += rows[row * 256 + k];
        for (size_t column = 0; column < 128; column++)
            if (got[row * 128 + column] != sum / 2) return false;
    }
    return true;
}

TEST_F(CpuTeam, RunsEveryPartOnceWhateverItsSize)
{
    for (int threads : {1, 2, 3, 8, 40, 5, 2}) {
        set_threads(threads);
        EXPECT_EQ(team_size(), threads);
        for (size_t count : {1, 2, 3, 7, 8, 64, 1000})
            for (int round = 0; round < 20; round++) expect_each_once(count);
    }
}

// Parts of unlike length, with pauses in between that let workers fall asleep at every point.
TEST_F(CpuTeam, RunsEveryPartOnceAfterPausesOfAnyLength)
{
    set_threads(3);
    for (int round = 0; round < 400; round++) {
        timespec pause{0, 1000L << (round % 10)};
        nanosleep(&pause, nullptr);
        expect_each_once(5, round % 7 * 10);
    }
}

TEST_F(CpuTeam, WhatAPartCallsRunsAlone)
{
    set_threads(4);
    std::atomic<int> inner{0}, larger{0};
    struct Context {
        std::atomic<int> &inner, &larger;
    } context{inner, larger};
    run_chunks(
        8,
        [](void *outer, int64_t, int) {
            Context &c = *static_cast<Context *>(outer);
            if (team_size() != 1) c.larger++;
            run_chunks(
                3,
                [](void *count, int64_t, int slot) {
                    *static_cast<std::atomic<int> *>(count) += slot == 0;
                },
                &c.inner, 1);
        },
        &context, 4);
    EXPECT_EQ(inner, 24);
    EXPECT_EQ(larger, 0);
    EXPECT_EQ(team_size(), 4);
}

TEST_F(CpuTeam, ServesSeveralThreadsThatComeAndGoWhileItsSizeChanges)
{
    set_threads(3);
    std::atomic<bool> stop{false};
    std::thread changes([&] {
        for (int i = 0; !stop; i++) {
            set_threads(1 + i % 5);
            std::this_thread::yield();
        }
    });
    for (int round = 0; round < 10; round++) {
        std::vector<std::thread> hosts;
        for (int i = 0; i < 4; i++)
            hosts.emplace_back([] {
                for (int job = 0; job < 50; job++) expect_each_once(1 + (size_t)job % 9, job % 3);
                EXPECT_TRUE(computes());
            });
        for (std::thread &host : hosts) host.join();  // the thread that made the team ends, too
    }
    stop = true;
    changes.join();
}

TEST_F(CpuTeam, LeavesSignalsToTheProgramsThreads)
{
    set_threads(3);
    expect_each_once(3);
    static pthread_t expected;
    static std::atomic<int> elsewhere;
    expected = pthread_self();
    struct sigaction action = {}, before;
    action.sa_handler = [](int) { elsewhere += !pthread_equal(pthread_self(), expected); };
    sigaction(SIGUSR1, &action, &before);
    for (int i = 0; i < 200; i++) {
        kill(getpid(), SIGUSR1);
        expect_each_once(6, 5);
    }
    sigaction(SIGUSR1, &before, nullptr);
    EXPECT_EQ(elsewhere, 0);
}

double cpu_seconds()
{
    timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec + (double)used.tv_nsec * 1e-9;
}

TEST_F(CpuTeam, UsesNoProcessorWhileNothingIsToBeDone)
{
    set_threads(4);
    for (int i = 0; i < 100; i++) expect_each_once(4, 2);
    // On a busy machine a worker may make its last poll late. A worker that goes on polling is seen in every window.
    double used = 1;
    for (int window = 0; window < 10 && used >= 0.003; window++) {
        const double before = cpu_seconds();
        const timespec pause{0, 300'000'000};
        nanosleep(&pause, nullptr);
        used = cpu_seconds() - before;
    }
    EXPECT_LT(used, 0.003);
}

long threads_of_process()
{
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return std::distance(begin(tasks), end(tasks));
}

// A thread that was joined may be listed for an instant more.
bool comes_to_threads(long wanted)
{
    for (int i = 0; i < 1000 && threads_of_process() != wanted; i++) usleep(1000);
    return threads_of_process() == wanted;
}

TEST_F(CpuTeam, EndsItsThreadsAndMakesThemAnew)
{
    set_threads(4);
    cpu_test::backend().rest();
    usleep(10'000);
    const long others = threads_of_process();
    for (int i = 0; i < 20; i++) {
        expect_each_once(8);
        EXPECT_TRUE(comes_to_threads(others + 3));
        cpu_test::backend().rest();
        EXPECT_TRUE(comes_to_threads(others));
    }
}

TEST_F(CpuTeam, LeavesTheProgramItsNumberOfOpenMpThreads)
{
    if (!omp_set_num_threads) GTEST_SKIP() << "this build has no OpenMP in it";
    const int before = omp_get_max_threads();
    for (int own : {1, 5}) {
        omp_set_num_threads(own);
        EXPECT_TRUE(computes());
        EXPECT_EQ(omp_get_max_threads(), own);
    }
    omp_set_num_threads(before);
}

// ---- forks ----------------------------------------------------------------------------------------------------------

// Some thread is in every state that a team knows when the process forks: making a primitive, taking parts, sleeping.
TEST_F(CpuTeam, ForksAmidItsWorkLeaveChildrenThatCompute)
{
#if defined(__SANITIZE_ADDRESS__)
    GTEST_SKIP() << "the sanitizer's own allocator hangs in a child of a fork beside a thread that "
                    "allocates";
#endif
    const int forks = getenv("YOKE_SOAK") ? 200 : 20;
    set_threads(3);
    ASSERT_TRUE(computes());
    std::atomic<bool> stop{false}, wrong{false};
    std::thread at_work([&] {
        while (!stop)
            if (!computes()) wrong = true;
    });
    for (int i = 0; i < forks; i++)
        ASSERT_TRUE(passes_in_child([] {
            EXPECT_EQ(team_size(), 3);
            EXPECT_TRUE(computes());
            expect_each_once(9);
        })) << "fork "
            << i;
    stop = true;
    at_work.join();
    EXPECT_FALSE(wrong);
    EXPECT_TRUE(computes());
}

TEST_F(CpuTeam, AChildOfAChildHasATeamToo)
{
    set_threads(2);
    expect_each_once(4);
    EXPECT_TRUE(passes_in_child([] {
        EXPECT_TRUE(computes());
        EXPECT_TRUE(passes_in_child([] { EXPECT_TRUE(computes()); }));
        EXPECT_TRUE(computes());
    }));
}

// ---- a system that gives little -------------------------------------------------------------------------------------

TEST_F(CpuTeam, GoesOnWithTheThreadsThatTheSystemGaveAndSaysSoOnce)
{
    if (!passes_in_child([] { EXPECT_TRUE(forbid_threads()); }))
        GTEST_SKIP() << "this system does not let a process filter its own system calls";
    set_threads(2);
    EXPECT_TRUE(passes_in_child([] {
        cpu_test::take_log();
        expect_each_once(4);  // a team of two
        forbid_threads();
        set_threads(6);
        expect_each_once(12);
        EXPECT_EQ(team_size(), 2);
        const std::string said = cpu_test::take_log();
        EXPECT_NE(said.find("2 threads work instead of 6"), std::string::npos) << said;
        EXPECT_TRUE(computes());
        set_threads(7);
        expect_each_once(12);
        EXPECT_EQ(cpu_test::take_log(), "");
    }));
    EXPECT_TRUE(passes_in_child([] {
        forbid_threads();
        expect_each_once(4);
        EXPECT_EQ(team_size(), 1);
        EXPECT_TRUE(computes());
    }));
}

TEST_F(CpuTeam, ComputesForAThreadWithAStackOf64KiB)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "a sanitizer needs more stack";
#endif
    set_threads(3);
    rlimit before, small;
    getrlimit(RLIMIT_STACK, &before);
    small = before;
    small.rlim_cur = 65536;
    cpu_test::backend().rest();
    setrlimit(RLIMIT_STACK, &small);  // the default of threads that are made now
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 65536);
    static std::atomic<bool> right;
    right = false;
    pthread_t thread;
    const int made = pthread_create(
        &thread, &attributes,
        [](void *) -> void * {
            expect_each_once(16);
            right = computes();
            return nullptr;
        },
        nullptr);
    ASSERT_EQ(made, 0);
    pthread_join(thread, nullptr);
    pthread_attr_destroy(&attributes);
    EXPECT_TRUE(right);
    EXPECT_TRUE(computes());  // the thread made the workers under the limit
    setrlimit(RLIMIT_STACK, &before);
}

}  // namespace
