// fresh_process.h: runs a part of a test in a fresh process, in which the library is still unused. Tests of first
// uses and of forks need this.
#pragma once

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>
#include <cstdio>
#include <cstdlib>

namespace yoke::test {

// Ends a process in which a part of a test ran. If a check failed, prints the failures and ends with 1. Skips the
// exit handlers, because the test program was stopped half-way.
[[noreturn]] inline void end_process()
{
    const testing::TestInfo *test = testing::UnitTest::GetInstance()->current_test_info();
    const testing::TestResult &result = *test->result();
    for (int i = 0; i < result.total_part_count(); ++i) {
        const testing::TestPartResult &part = result.GetTestPartResult(i);
        if (part.failed())
            fprintf(stderr, "%s:%d: %s\n", part.file_name(), part.line_number(), part.message());
    }
    _exit(result.Failed() ? 1 : 0);
}

template <class Body>
void in_fresh_process(const Body &body)
{
    // The thread-safe style starts the program anew and comes back to this line.
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(
        {
            body();
            end_process();
        },
        testing::ExitedWithCode(0), "");
}

// A fork may be tried here. It takes every lock of the core, and ThreadSanitizer's search for deadlocks ends at
// 64.
#ifdef __SANITIZE_THREAD__
inline constexpr bool kMayFork = false;
#else
inline constexpr bool kMayFork = true;
#endif

// Runs `body` in a forked child; true if it found no failure there.
template <class Body>
bool passes_in_child(const Body &body)
{
    const pid_t child = fork();
    if (child == 0) {
        alarm(20);  // makes a hung child fail
        body();
        end_process();
    }
    int status = 0;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace yoke::test
