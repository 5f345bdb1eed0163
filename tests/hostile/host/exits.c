/*
 * Programs that end amid work. Each program is this program again, by fork and exec, with the name of an action and a
 * seed:
 *   threads   multiply while main returns
 *   held      a thread is amid a long product when main returns
 *   fresh     threads begin their first products when main returns
 *   before    a handler of atexit(), registered before the first product, multiplies
 *   after     a handler, registered after the first product, multiplies
 *   signal    a handler of a signal calls exit() on a thread that multiplies
 * The process must end with status 0 in time, and each product must be right or give the error with the reason.
 *
 * Without arguments the program runs all actions, each a few times, or with YOKE_SOAK=1 2000 exits in all.
 */
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/capi/check.h"

enum { kThreads = 4, kWrong = 3, kRefusedByWhat = 4 };

static unsigned g_seed;

static yoke_tensor *ones(int64_t rows, int64_t columns)
{
    yoke_tensor *x = NULL;
    const int64_t shape[] = {rows, columns};
    OK(yoke_ones(shape, 2, YOKE_F32, NULL, &x));
    return x;
}

/* Returns whether the product of ones came out right. Returns 0 if the product was refused because the process ends.
 * In any other case, ends the process with a status of its own. */
static int multiply(int64_t rows, int64_t inner, int64_t columns)
{
    const int64_t left_shape[] = {rows, inner}, right_shape[] = {inner, columns};
    yoke_tensor *left = NULL, *right = NULL, *product = NULL, *sum = NULL;
    double value = 0;
    if (yoke_ones(left_shape, 2, YOKE_F32, NULL, &left) ||
        yoke_ones(right_shape, 2, YOKE_F32, NULL, &right))
        _exit(kWrong);
    const yoke_status status = yoke_matmul(left, right, &product);
    if (status == YOKE_E_STATE && !strstr(yoke_last_error()->message, "process is exiting"))
        _exit(kRefusedByWhat);
    if (status && status != YOKE_E_STATE) _exit(kWrong);
    if (!status) {
        if (yoke_mean(product, NULL, 0, 0, YOKE_NONE, &sum) || yoke_tensor_item_f64(sum, &value) ||
            fabs(value - (double)inner) > 1e-3)
            _exit(kWrong);
    }
    yoke_tensor_release(left);
    yoke_tensor_release(right);
    yoke_tensor_release(product);
    yoke_tensor_release(sum);
    return !status;
}

static unsigned next_number(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static void *multiply_for_ever(void *number)
{
    unsigned state = g_seed * 31u + (unsigned)(size_t)number;
    for (;;) {
        const int64_t rows = 1 + next_number(&state) % 150, inner = 1 + next_number(&state) % 150;
        multiply(rows, inner, 1 + next_number(&state) % 150);
    }
    return NULL;
}

static void start_threads(void *(*work)(void *), int count)
{
    for (int i = 0; i < count; ++i) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work, (void *)(size_t)i)) _exit(kWrong);
        pthread_detach(thread);
    }
}

static void pause_ms(unsigned ms)
{
    const struct timespec pause = {ms / 1000, (long)(ms % 1000) * 1000000};
    nanosleep(&pause, NULL);
}

/* ---- the programs ------------------------------------------------------------------------------------------------ */

/* While the CPU is being opened, for the first millisecond, a process must not end; so it is open before. */
static void end_amid_threads(void)
{
    yoke_tensor_release(ones(1, 1));
    start_threads(multiply_for_ever, kThreads);
    pause_ms(g_seed % 40);
}

static atomic_int g_begun;

static void *multiply_long(void *unused)
{
    (void)unused;
    yoke_tensor *x = ones(1500, 1500), *y = NULL;
    g_begun = 1;
    for (;;) {
        if (yoke_matmul(x, x, &y)) break;
        yoke_tensor_release(y);
    }
    return NULL;
}

static void end_amid_a_product(void)
{
    yoke_set_num_threads(1);
    start_threads(multiply_long, 1);
    while (!g_begun) pause_ms(1);
    pause_ms(10 + g_seed % 40);
}

static pthread_barrier_t g_barrier;

static void *begin_at_barrier(void *number)
{
    yoke_device *device = NULL;
    if (yoke_device_get("cpu", 0, &device)) _exit(kWrong);
    pthread_barrier_wait(&g_barrier);
    return multiply_for_ever(number);
}

static void end_amid_beginnings(void)
{
    pthread_barrier_init(&g_barrier, NULL, kThreads + 1);
    start_threads(begin_at_barrier, kThreads);
    pthread_barrier_wait(&g_barrier);
}

/* Multiplies shapes without cached kernels, so that more work is done. */
static void multiply_at_exit(void)
{
    int right = 0;
    for (int64_t size = 20; size < 200; size += 13) right += multiply(size, size + 1, size + 2);
    /* A handler registered later runs earlier, while the library is still whole. */
    const char *must = getenv("YOKE_TEST_MUST_WORK");
    if (must && right == 0) _exit(kWrong);
}

static void multiply_and_handle_before(void)
{
    atexit(multiply_at_exit);
    multiply(10, 20, 30);
}

static void multiply_and_handle_after(void)
{
    setenv("YOKE_TEST_MUST_WORK", "1", 1);
    multiply(10, 20, 30);
    atexit(multiply_at_exit);
}

static void exit_by_signal(int signal)
{
    (void)signal;
    exit(0);
}

static void *multiply_until_signal(void *unused)
{
    (void)unused;
    signal(SIGUSR1, exit_by_signal);
    return multiply_long(NULL);
}

static void end_by_a_signal(void)
{
    pthread_t thread;
    yoke_set_num_threads(1);
    if (pthread_create(&thread, NULL, multiply_until_signal, NULL)) _exit(kWrong);
    while (!g_begun) pause_ms(1);
    pause_ms(10 + g_seed % 40);
    pthread_kill(thread, SIGUSR1);
    pthread_join(thread, NULL);
}

static const struct {
    const char *name;
    void (*run)(void);
    int share; /* share of the runs, in hundredths */
} kPrograms[] = {
    {"threads", end_amid_threads, 30},        {"held", end_amid_a_product, 10},
    {"fresh", end_amid_beginnings, 30},       {"before", multiply_and_handle_before, 10},
    {"after", multiply_and_handle_after, 10}, {"signal", end_by_a_signal, 10},
};
enum { kProgramCount = sizeof kPrograms / sizeof kPrograms[0], kMostSeconds = 60 };

/* ---- running the programs ---------------------------------------------------------------------------------------- */

static int run_again(const char *self, const char *name, unsigned seed)
{
    char text[16];
    snprintf(text, sizeof text, "%u", seed);
    const pid_t child = fork();
    if (child == 0) {
        alarm(kMostSeconds);
        execl(self, self, name, text, (char *)NULL);
        _exit(127);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) return 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return 1;
    fprintf(stderr, "%s %s %u: %s %d%s\n", self, name, seed,
            WIFSIGNALED(status) ? "signal" : "status",
            WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
            WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? ", it hung" : "");
    return 0;
}

int main(int count, char **words)
{
    if (count == 3) {
        g_seed = (unsigned)atoi(words[2]);
        for (int i = 0; i < kProgramCount; ++i)
            if (strcmp(words[1], kPrograms[i].name) == 0) kPrograms[i].run();
        return 0;
    }
    const int runs = getenv("YOKE_SOAK") ? 2000 : 60;
    int failed = 0;
    for (int i = 0; i < kProgramCount; ++i)
        for (int run = 0; run < runs * kPrograms[i].share / 100; ++run)
            failed += !run_again("/proc/self/exe", kPrograms[i].name, (unsigned)run);
    printf("%d passed, %d failed\n", failed == 0, failed != 0);
    return failed != 0;
}
