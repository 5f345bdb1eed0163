/* preempt.h: helpers for the tests of watched signals. Each test runs in a child process without watches. */
#ifndef YOKE_TESTS_PREEMPT_H
#define YOKE_TESTS_PREEMPT_H

#include "check.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kWentOn = 9 };

/* Runs a body in a child and returns the wait status; the child exits with 1 if a check failed. */
static inline int in_child(void (*body)(void))
{
    int status = 0;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        alarm(60); /* ends a child that hangs */
        body();
        fflush(stdout);
        _exit(checks_failed ? 1 : 0);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    return status;
}

static inline void passes(void (*body)(void))
{
    const int status = in_child(body);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static inline void dies_of(int signal, void (*body)(void))
{
    const int status = in_child(body);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == signal);
}

/* Before what should end a child: a failed check must not look like success. */
static inline void must_have_passed(void)
{
    fflush(stdout);
    if (checks_failed) _exit(1);
}

static inline void watch(const char *signal)
{
    OK(yoke_preempt_watch(&signal, 1));
}

static inline struct sigaction now(int signal)
{
    struct sigaction found;
    sigaction(signal, NULL, &found);
    return found;
}

/* Records of the host program's handler: its calls, the sender's process, and blocked signals. */
static volatile sig_atomic_t heard, heard_pid, heard_blocked;

static inline void on_info(int signal, siginfo_t *info, void *context)
{
    sigset_t blocked;
    (void)context;
    sigprocmask(SIG_BLOCK, NULL, &blocked);
    heard_blocked = sigismember(&blocked, SIGUSR2);
    heard_pid = info->si_signo == signal && info->si_pid == getpid();
    ++heard;
}

static inline void install(int signal, int flags)
{
    struct sigaction action = {0};
    action.sa_sigaction = on_info;
    action.sa_flags = SA_SIGINFO | flags;
    sigaddset(&action.sa_mask, SIGUSR2);
    sigaction(signal, &action, NULL);
}

#endif /* YOKE_TESTS_PREEMPT_H */
