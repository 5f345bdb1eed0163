/*
 * A process with little address space left (RLIMIT_AS): no stack for a thread, no addresses for an engine's code.
 * Products are right, or there is no memory for them; the process lives and prints nothing. When there is space again,
 * all works.
 */
#include <math.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/capi/check.h"

static yoke_status multiply(int64_t size, yoke_dtype dtype)
{
    const int64_t shape[] = {size, size};
    yoke_tensor *x = NULL, *y = NULL, *mean = NULL;
    double value = 0;
    yoke_status status = yoke_ones(shape, 2, dtype, NULL, &x);
    if (!status) status = yoke_matmul(x, x, &y);
    if (!status) status = yoke_mean(y, NULL, 0, 0, YOKE_F32, &mean);
    if (!status) status = yoke_tensor_item_f64(mean, &value);
    if (!status) CHECK(fabs(value - (double)size) <= (double)size / 128);
    yoke_tensor_release(mean);
    yoke_tensor_release(y);
    yoke_tensor_release(x);
    return status;
}

static rlim_t bytes_in_use(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file && fscanf(file, "%lu", &pages) == 1);
    if (file) fclose(file);
    return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

static void work_with(rlim_t left)
{
    struct rlimit limit;
    alarm(60);
    OK(yoke_set_num_threads(4));
    OK(multiply(2, YOKE_F32)); /* opens the device */
    CHECK(getrlimit(RLIMIT_AS, &limit) == 0);
    const rlim_t before = limit.rlim_cur;
    limit.rlim_cur = bytes_in_use() + left;
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    for (int64_t size = 3; size < 700; size = size * 2 + 1)
        for (int kind = 0; kind < 2; ++kind) {
            const yoke_status status = multiply(size, kind ? YOKE_BF16 : YOKE_F32);
            if (status && status != YOKE_E_OOM)
                printf("%lld: %s\n", (long long)size, yoke_last_error()->message);
            CHECK(status == YOKE_OK || status == YOKE_E_OOM);
        }
    limit.rlim_cur = before;
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    for (int64_t size = 3; size < 700; size = size * 2 + 1) OK(multiply(size, YOKE_F32));
}

int main(void)
{
    int failed = 0;
    const char *first = getenv("YOKE_TEST_FIRST"); /* a single run, for a debugger */
    if (first) return work_with((rlim_t)atol(first) * 1024), checks_failed != 0;
    for (unsigned kib = 0; kib <= 24 * 1024; kib += 768) {
        fflush(stdout);
        const pid_t child = fork();
        if (child == 0) {
            work_with((rlim_t)kib * 1024);
            fflush(stdout);
            _exit(checks_failed != 0);
        }
        int status = 0;
        if (child < 0 || waitpid(child, &status, 0) != child) return 1;
        if (status) printf("%u KiB: status %#x\n", kib, (unsigned)status);
        failed += status != 0;
    }
    printf("%d passed, %d failed\n", failed == 0, failed != 0);
    return failed != 0;
}
