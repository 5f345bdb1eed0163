/* Worker of gpu.py: host seconds of a small op on a device, from C: `gpu_call DEVICE`. Its only case is "call". */
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "yoke/api.h"

enum { BURST = 256 }; /* launches that the driver queues without waiting */

static const yoke_api *yoke;
static yoke_device *device;
static yoke_tensor *a, *b;

static void check(yoke_status status)
{
    if (!status) return;
    fprintf(stderr, "gpu_call: %s\n", yoke->last_error()->message);
    exit(1);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void add(long count)
{
    while (count-- > 0) {
        yoke_tensor *out;
        check(yoke->add(a, b, &out));
        yoke->tensor_release(out);
    }
}

/* The host's part alone: what the device still works through is waited for outside the clock. */
static double call(long count)
{
    double seconds = 0;
    add(16);
    for (long done = 0; done < count; done += BURST) {
        check(yoke->device_synchronize(device));
        const double start = now();
        add(count - done < BURST ? count - done : BURST);
        seconds += now() - start;
    }
    check(yoke->device_synchronize(device));
    return seconds / (double)count;
}

int main(int count, char **arguments)
{
    const yoke_api *(*get_api)(uint32_t major, uint32_t min_minor);
    const char *spec = count > 1 ? arguments[1] : "cuda";
    const int64_t shape = 8;
    char line[128];
    void *library = dlopen("libyoke.so.0", RTLD_NOW);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    *(void **)&get_api = dlsym(library, "yoke_get_api");
    yoke = get_api(YOKE_VERSION_MAJOR, YOKE_VERSION_MINOR);
    check(yoke->device_open(spec, &device));
    check(yoke->zeros(&shape, 1, YOKE_F32, device, &a));
    check(yoke->zeros(&shape, 1, YOKE_F32, device, &b));

    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("Yoke %s, C, %s\n", yoke->version(), yoke->device_spec(device));
    while (fgets(line, sizeof line, stdin)) {
        if (strncmp(line, "call ", 5) == 0)
            printf("%.17g\n", call(strtol(line + 5, NULL, 10)));
        else
            printf("! unknown case %s", line);
    }
    yoke->tensor_release(a);
    yoke->tensor_release(b);
    yoke->device_release(device);
    return 0;
}
