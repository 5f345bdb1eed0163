/*
 * Signals that come amid products. A handler without SA_ONSTACK runs below the stack pointer, so that pointer must be
 * in the thread's stack. A timer sends a signal each tenth of a millisecond, by turns to this thread and the process.
 */
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "tests/capi/check.h"

enum { kProducts = 150 };

static atomic_int g_handled, g_astray;

/* Each thread's stack, found before the thread's first signal. */
static _Thread_local uintptr_t t_begin, t_end;

static void find_stack(void)
{
    pthread_attr_t attributes;
    void *begin = NULL;
    size_t bytes = 0;
    if (pthread_getattr_np(pthread_self(), &attributes)) _exit(1);
    pthread_attr_getstack(&attributes, &begin, &bytes);
    pthread_attr_destroy(&attributes);
    t_begin = (uintptr_t)begin;
    t_end = t_begin + bytes;
}

/* Counts signals outside the thread's stack. A thread of the library has no bounds here; its products show whether
 * the thread went on correctly. */
static void note_stack(int signal)
{
    (void)signal;
    const uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    atomic_fetch_add(&g_handled, 1);
    if (t_end && (here < t_begin || here >= t_end)) atomic_fetch_add(&g_astray, 1);
}

static yoke_tensor *ones(int64_t rows, int64_t columns)
{
    yoke_tensor *x = NULL;
    const int64_t shape[] = {rows, columns};
    OK(yoke_ones(shape, 2, YOKE_F32, NULL, &x));
    return x;
}

static void start_timer(void)
{
    struct sigevent event;
    memset(&event, 0, sizeof event);
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SIGUSR1;
    event._sigev_un._tid = gettid();
    timer_t timer;
    const struct itimerspec each = {{0, 100000}, {0, 100000}};
    const struct itimerval process = {{0, 130}, {0, 130}};
    CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    CHECK(timer_settime(timer, 0, &each, NULL) == 0);
    CHECK(setitimer(ITIMER_REAL, &process, NULL) == 0);
}

static void multiply(int64_t rows, int64_t inner, int64_t columns)
{
    yoke_tensor *left = ones(rows, inner), *right = ones(inner, columns);
    for (int i = 0; i < kProducts; ++i) {
        yoke_tensor *product = NULL, *least = NULL, *most = NULL;
        double low = 0, high = 0;
        OK(yoke_matmul(left, right, &product));
        OK(yoke_amin(product, NULL, 0, 0, &least));
        OK(yoke_amax(product, NULL, 0, 0, &most));
        OK(yoke_tensor_item_f64(least, &low));
        OK(yoke_tensor_item_f64(most, &high));
        CHECK(low == (double)inner && high == (double)inner);
        yoke_tensor_release(product);
        yoke_tensor_release(least);
        yoke_tensor_release(most);
    }
    yoke_tensor_release(left);
    yoke_tensor_release(right);
}

static void handlers_run_on_the_threads_stack_and_products_stay_right(void)
{
    for (int threads = 1; threads <= 2; ++threads) {
        OK(yoke_set_num_threads(threads));
        multiply(512, 100, 784);
        multiply(100, 784, 512);
        multiply(784, 512, 100);
    }
    CHECK(g_handled > 0);
    printf("%d signals, %d of them off the thread's stack\n", g_handled, g_astray);
    CHECK(g_astray == 0);
}

int main(void)
{
    find_stack();
    signal(SIGUSR1, note_stack);
    signal(SIGALRM, note_stack);
    multiply(8, 8, 8);
    start_timer();
    RUN(handlers_run_on_the_threads_stack_and_products_stay_right);
    return report();
}
