/*
 * Forks beside threads that multiply ever new shapes, and beside a thread that takes inventories, which load a
 * library. If a child is made while another thread loads, the child's loader is half changed. So the fork waits for
 * the load, or the child does without the library.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/capi/check.h"

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Held while this program unloads, and while it forks: only the library's own loading meets a fork. */
static pthread_mutex_t g_unloading = PTHREAD_MUTEX_INITIALIZER;

static void *take_one(void *unused)
{
    const char *path = getenv("YOKE_NVML_PATH");
    yoke_inventory *inventory = NULL;
    OK(yoke_inventory_take(&inventory));
    yoke_inventory_release(inventory);
    /* Unloads the library, so that the next inventory loads it again. */
    pthread_mutex_lock(&g_unloading);
    void *library = dlopen(path, RTLD_NOLOAD | RTLD_LAZY);
    CHECK(library && !dlclose(library) && !dlclose(library));
    CHECK(!dlopen(path, RTLD_NOLOAD | RTLD_LAZY));
    pthread_mutex_unlock(&g_unloading);
    return unused;
}

static pid_t fork_here(void)
{
    pthread_mutex_lock(&g_unloading);
    const pid_t child = fork();
    pthread_mutex_unlock(&g_unloading);
    return child;
}

/* Returns the child's report about the management library: 0 no problem, 1 invalid library, 2 not loaded after a
 * fork. */
static int library_in_child(void)
{
    yoke_inventory *inventory = NULL;
    const char *problem = NULL;
    alarm(60);
    if (yoke_inventory_take(&inventory)) _exit(10);
    if (yoke_inventory_fact(inventory, "nvml_problem", &problem)) _exit(11);
    _exit(!*problem ? 0 : strstr(problem, "was forked while a library was being loaded") ? 2 : 1);
}

/* Forks once the library is being loaded, for so long. Gives what the child says. */
static int fork_amid_load(const char *ms, double *waited)
{
    int told[2];
    char text[16], letter;
    pthread_t thread;
    if (pipe(told)) return -1;
    snprintf(text, sizeof text, "%d", told[1]);
    setenv("YOKE_TEST_TELL", text, 1);
    setenv("YOKE_TEST_LOADS_FOR", ms, 1);
    CHECK(pthread_create(&thread, NULL, take_one, NULL) == 0);
    CHECK(read(told[0], &letter, 1) == 1);
    const double from = seconds_now();
    setenv("YOKE_TEST_LOADS_FOR", "0", 1);
    const pid_t child = fork_here();
    if (child == 0) library_in_child();
    *waited = seconds_now() - from;
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    pthread_join(thread, NULL);
    close(told[0]);
    close(told[1]);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void a_fork_waits_for_a_library_that_is_being_loaded(void)
{
    double waited = 0;
    CHECK(fork_amid_load("300", &waited) == 1);
    CHECK(waited > 0.2 && waited < 2.5);
}

static void a_fork_does_not_wait_for_ever(void)
{
    double waited = 0;
    CHECK(fork_amid_load("6000", &waited) == 2);
    CHECK(waited > 1.5 && waited < 5.0);
}

static volatile int g_stop;

static void *take_many(void *unused)
{
    while (!g_stop) take_one(NULL);
    return unused;
}

static void children_take_inventories_of_their_own(void)
{
    const int forks = getenv("YOKE_SOAK") ? 2000 : 60;
    pthread_t thread;
    int good = 0;
    setenv("YOKE_TEST_LOADS_FOR", "1", 1);
    unsetenv("YOKE_TEST_TELL");
    CHECK(pthread_create(&thread, NULL, take_many, NULL) == 0);
    for (int i = 0; i < forks; ++i) {
        const pid_t child = fork_here();
        if (child == 0) library_in_child();
        int status = 0;
        CHECK(waitpid(child, &status, 0) == child);
        good += WIFEXITED(status) && WEXITSTATUS(status) == 1;
    }
    CHECK(good == forks);
    g_stop = 1;
    pthread_join(thread, NULL);
}

static int multiply(int64_t rows, int64_t inner, int64_t columns)
{
    const int64_t left_shape[] = {rows, inner}, right_shape[] = {inner, columns};
    yoke_tensor *left = NULL, *right = NULL, *product = NULL;
    OK(yoke_ones(left_shape, 2, YOKE_F32, NULL, &left));
    OK(yoke_ones(right_shape, 2, YOKE_F32, NULL, &right));
    const yoke_status status = yoke_matmul(left, right, &product);
    yoke_tensor_release(left);
    yoke_tensor_release(right);
    yoke_tensor_release(product);
    return status;
}

/* Multiplies ever new shapes, so a kernel is made and registered for each shape. */
static void *multiply_anew(void *number)
{
    const int64_t own = *(const int *)number;
    for (int64_t i = 0; !g_stop; ++i) CHECK(multiply(32 + i % 4096, 64 + own, 32 + i / 4096) == 0);
    return NULL;
}

static void children_of_a_process_that_multiplies_end_and_multiply(void)
{
    enum { kThreads = 2 };
    const int forks = getenv("YOKE_SOAK") ? 2000 : 60, numbers[kThreads] = {0, 1};
    pthread_t threads[kThreads];
    int good = 0;
    g_stop = 0;
    CHECK(multiply(20, 30, 40) ==
          0); /* a fork amid a first start is another matter: FORKED, whatever is called */
    for (int i = 0; i < kThreads; ++i)
        CHECK(!pthread_create(&threads[i], NULL, multiply_anew, (void *)&numbers[i]));
    for (int i = 0; i < forks; ++i) {
        const pid_t child = fork();
        if (child == 0) {
            alarm(20);
            if (i % 2) exit(0);
            const int status = multiply(20, 30, 40);
            _exit(status == YOKE_OK || status == YOKE_E_FORKED ? 0 : 1);
        }
        int status = 0;
        CHECK(waitpid(child, &status, 0) == child);
        good += WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
    CHECK(good == forks);
    g_stop = 1;
    for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
}

int main(void)
{
    setenv("YOKE_NVML_PATH", getenv("YOKE_TEST_SLOW_LIBRARY"), 1);
    setenv("YOKE_NVML_TIMEOUT", "20", 1);
    RUN(a_fork_waits_for_a_library_that_is_being_loaded);
    RUN(a_fork_does_not_wait_for_ever);
    RUN(children_take_inventories_of_their_own);
    RUN(children_of_a_process_that_multiplies_end_and_multiply);
    return report();
}
