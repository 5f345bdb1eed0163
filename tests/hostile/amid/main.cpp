// amid: forks and exits amid work.
//
//     amid --forks N | --exits N [--seed S]
//
// With --forks, threads do all kinds of work while the process forks; every child does a piece of each kind and ends.
// With --exits, a fresh process ends by returning from main. Meanwhile its threads work, and exit handlers begin more
// work. Each process must end as intended, within a deadline; a failure is reported with the seed.
#include "work.h"

#include <yoke/yoke.h>

#include <sys/wait.h>
#include <unistd.h>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace hostile;

constexpr unsigned kDeadline = 60;  // seconds that a child may take
constexpr int kWrong = 3;

int expect_end(pid_t pid, const char *what, uint64_t seed, const std::string &kinds)
{
    int status = 0;
    if (waitpid(pid, &status, 0) != pid) std::abort();
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return 0;
    std::printf("amid: %s of seed %llu, amid %s: ", what, static_cast<unsigned long long>(seed),
                kinds.c_str());
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        std::printf("it was not over after %u s\n", kDeadline);
    else if (WIFSIGNALED(status))
        std::printf("it was ended by %s\n", strsignal(WTERMSIG(status)));
    else
        std::printf("%s\n", WEXITSTATUS(status) == kWrong ? "a call gave what it should not"
                                                          : "it ended with another status");
    return 1;
}

// ---- forks ----------------------------------------------------------------------------------------------------------

[[noreturn]] void forked_child(uint64_t seed)
{
    alarm(kDeadline);
    bool good = true;
    for (int i = 0; i < kKinds; ++i)
        good =
            do_piece(static_cast<int>((seed + static_cast<uint64_t>(i)) % kKinds), false) && good;
    if (!good) std::fprintf(stderr, "%s\n", yoke_last_error()->message);
    if (!good) _exit(kWrong);
    if (seed % 2) _exit(0);
    std::exit(0);
}

int forks(int64_t count, uint64_t first)
{
    // A process that forks while it starts the first device gets an error in the child. This program does not test
    // the error.
    for (int kind = 0; kind < kKinds; ++kind) do_piece(kind, false);
    std::atomic<bool> stop{false}, wrong{false};
    std::vector<std::thread> threads;
    for (int kind = 0; kind < kKinds; ++kind)
        if (kind % 2 == 0 || std::thread::hardware_concurrency() > 2)
            threads.emplace_back([kind, &stop, &wrong] {
                while (!stop) wrong = !do_piece(kind, false) || wrong;
            });
    int failed = 0;
    for (uint64_t seed = first; seed < first + static_cast<uint64_t>(count) && failed < 5; ++seed) {
        std::this_thread::sleep_for(std::chrono::microseconds(seed * 7919 % 3000));
        std::fflush(nullptr);
        const pid_t pid = fork();
        if (pid == 0) forked_child(seed);
        failed += expect_end(pid, "the child", seed, "all of them");
    }
    stop = true;
    for (std::thread &thread : threads) thread.join();
    if (wrong) std::printf("amid: a call of the parent gave what it should not\n");
    return failed + wrong;
}

// ---- exits ----------------------------------------------------------------------------------------------------------

std::atomic<bool> leaving{false};

void work_at_exit()
{
    for (int kind = 0; kind < kKinds; ++kind)
        if (!do_piece(kind, true)) _exit(kWrong);
}

std::string kinds_of(uint64_t seed)
{
    std::mt19937_64 dice(seed);
    std::string kinds;
    for (int i = 0; i < 3; ++i) kinds += (i ? ", " : "") + std::string(kKindNames[dice() % kKinds]);
    return kinds;
}

// Ends while three threads work. Some ends have an exit handler from before the first call, some from afterwards.
[[noreturn]] void ending_child(uint64_t seed)
{
    alarm(kDeadline);
    std::mt19937_64 dice(seed);
    int kinds[3];
    for (int &kind : kinds) kind = static_cast<int>(dice() % kKinds);
    if (dice() % 2) std::atexit(work_at_exit);
    do_piece(kinds[0], false);
    if (dice() % 2) std::atexit(work_at_exit);
    for (int kind : kinds)
        std::thread([kind] {
            for (;;)
                if (!do_piece(kind, leaving) && !leaving) _exit(kWrong);
        }).detach();
    std::this_thread::sleep_for(std::chrono::microseconds(dice() % 8000));
    leaving = true;
    std::exit(0);
}

int exits(int64_t count, uint64_t first)
{
    int failed = 0;
    for (uint64_t seed = first; seed < first + static_cast<uint64_t>(count) && failed < 5; ++seed) {
        std::fflush(nullptr);
        const pid_t pid = fork();
        if (pid == 0) ending_child(seed);
        failed += expect_end(pid, "the exit", seed, kinds_of(seed));
    }
    return failed;
}

}  // namespace

int main(int argc, char **argv)
{
    int64_t fork_count = 0, exit_count = 0;
    uint64_t seed = 1;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string name = argv[i];
        (name == "--forks"   ? fork_count
         : name == "--exits" ? exit_count
                             : reinterpret_cast<int64_t &>(seed)) =
            std::strtoll(argv[i + 1], nullptr, 10);
    }
    if (fork_count + exit_count == 0) {
        std::fprintf(stderr, "amid --forks N | --exits N [--seed S]\n");
        return 2;
    }
    const int failed = exit_count ? exits(exit_count, seed) : forks(fork_count, seed);
    std::printf("%lld %s from seed %llu: %s\n", static_cast<long long>(fork_count + exit_count),
                exit_count ? "exits" : "forks", static_cast<unsigned long long>(seed),
                failed ? "FAILED" : "nothing found");
    return failed ? 1 : 0;
}
