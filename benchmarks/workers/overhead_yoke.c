/* Worker of overhead.py: the calls from C, through the table of yoke_get_api. */
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "yoke/api.h"

static const yoke_api *yoke;
static yoke_tensor *a, *b, *g;

static void check(yoke_status status)
{
    if (!status) return;
    fprintf(stderr, "%s\n", yoke->last_error()->message);
    exit(1);
}

static void add(long count, yoke_tensor *x)
{
    yoke_tensor *out;
    while (count-- > 0) {
        check(yoke->add(x, b, &out));
        yoke->tensor_release(out);
    }
}

/* Runs kChain products in a row; each keeps the product before for backward. */
enum { kChain = 64 };
static void chain(long count, int scoped)
{
    for (; count > 0; count -= kChain) {
        yoke_checkpoint *scope = NULL;
        yoke_tensor *x = g, *out;
        if (scoped) check(yoke->checkpoint_begin(NULL, &scope));
        for (int i = 0; i < kChain; ++i, x = out) {
            check(yoke->mul(x, b, &out));
            if (x != g) yoke->tensor_release(x);
        }
        if (scoped) check(yoke->checkpoint_end(scope));
        if (scoped) yoke->checkpoint_release(scope);
        yoke->tensor_release(x);
    }
}

static void forward_and_backward(long count)
{
    yoke_tensor *c, *sum;
    while (count-- > 0) {
        check(yoke->tensor_zero_grad(g, 1));
        check(yoke->add(g, b, &c));
        check(yoke->sum(c, NULL, 0, 0, YOKE_NONE, &sum));
        check(yoke->backward(sum, NULL, 0));
        yoke->tensor_release(c);
        yoke->tensor_release(sum);
    }
}

/* Seconds of this process: what else runs on the machine does not count. */
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(void)
{
    const yoke_api *(*get_api)(uint32_t major, uint32_t min_minor);
    void *library = dlopen("libyoke.so.0", RTLD_NOW);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    *(void **)&get_api = dlsym(library, "yoke_get_api");
    yoke = get_api(YOKE_VERSION_MAJOR, YOKE_VERSION_MINOR);

    const int64_t shape = 8;
    yoke_device *cpu;
    check(yoke->device_open("cpu", &cpu));
    check(yoke->set_num_threads(1));
    check(yoke->rand(&shape, 1, YOKE_F32, cpu, NULL, &a));
    check(yoke->rand(&shape, 1, YOKE_F32, cpu, NULL, &b));
    check(yoke->rand(&shape, 1, YOKE_F32, cpu, NULL, &g));
    check(yoke->tensor_set_requires_grad(g, 1));

    char line[128];
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("Yoke %s, C\n", yoke->version());
    while (fgets(line, sizeof line, stdin)) {
        char *last = strrchr(line, ' ');
        if (!last) return 1;
        *last = '\0';
        long count = strtol(last + 1, NULL, 10);
        const double start = now();
        if (strcmp(line, "add") == 0)
            add(count, a);
        else if (strcmp(line, "add with grad") == 0)
            add(count, g);
        else if (strcmp(line, "forward and backward") == 0)
            forward_and_backward(count);
        else if (strcmp(line, "chain") == 0 || strcmp(line, "chain in a scope") == 0)
            count = (count + kChain - 1) / kChain * kChain, chain(count, line[5] != '\0');
        else
            return 1;
        printf("%.17g\n", (now() - start) / (double)count);
    }
    yoke->tensor_release(a);
    yoke->tensor_release(b);
    yoke->tensor_release(g);
    yoke->device_release(cpu);
    return 0;
}
