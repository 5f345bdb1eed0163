/*
 * yoke-probe: measures a device, or a pair of devices, for the doctor.
 *
 *   yoke-probe [--deadline SECONDS] cuda:0           copies between host and device, a launch, a kernel whose result
 *   is
 *                                                    checked
 *   yoke-probe [--deadline SECONDS] cuda:0 cuda:1    a copy from the first to the second, checked
 *
 * Prints a line for each figure, "h2d 2.3e10" (bytes per second; seconds of a launch), "broken TEXT" for wrong bytes,
 * and "done" at the end. It is a separate program, because its probes may hang or crash: the doctor ends it at a
 * deadline, and if the doctor ends first, the program ends itself. Exit 1: a probe failed; the last line has the
 * reason. Exit 3: the probe was not possible for reasons that do not blame the device ("untried TEXT"): the device
 * cannot be opened, its memory is full, a library is missing.
 */
#define _POSIX_C_SOURCE 200809L
#include "yoke/yoke.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { kElements = 16 << 20 }; /* floats: 64 MiB, so that the start of a copy does not count */

enum { kFailed = 1, kUsage = 2, kUntried = 3 };

static int untried(const char *what)
{
    printf("untried %s: %s\n", what, yoke_last_error()->message);
    return kUntried;
}

static int failed(const char *what)
{
    switch (yoke_last_error()->status) {
        case YOKE_E_OOM:
        case YOKE_E_UNAVAILABLE:
        case YOKE_E_UNSUPPORTED:
            return untried(what);
        default:
            printf("%s: %s\n", what, yoke_last_error()->message);
            return kFailed;
    }
}

static int no_memory(void)
{
    printf("untried memory: the host has no memory for a copy\n");
    return kUntried;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Fills with values different by place, so a shifted or missing copy shows. */
static void fill(float *values, int64_t count)
{
    for (int64_t i = 0; i < count; ++i) values[i] = (float)(i % 8191);
}

static int same(const float *values, int64_t count)
{
    for (int64_t i = 0; i < count; ++i)
        if (values[i] != (float)(i % 8191)) return 0;
    return 1;
}

/* Returns the elements for probing a device of this size: at most an eighth of its free memory. */
static int64_t elements_for(yoke_device *device)
{
    int64_t free_bytes = 0, total = 0, count = kElements;
    if (yoke_device_memory(device, &free_bytes, &total)) return count;
    while (count > 1024 && count * 4 > free_bytes / 8) count /= 2;
    return count;
}

/* Returns the seconds of a copy from `from` to `to`, the best of five. Negative: failure. `pinned`: host memory is. */
static double time_copy(yoke_tensor *from, yoke_device *to, yoke_device *device, int32_t pinned)
{
    double best = -1;
    for (int i = 0; i < 5; ++i) {
        yoke_tensor *copy = NULL;
        const double start = now();
        if (yoke_tensor_to_v2(from, to, YOKE_NONE, pinned, &copy)) return -1;
        const yoke_status waited = yoke_device_synchronize(device);
        const double took = now() - start;
        yoke_tensor_release(copy);
        if (waited) return -1;
        if (i > 0 && (best < 0 || took < best)) best = took; /* the first copy allocates */
    }
    return best;
}

static int copies(yoke_device *device, yoke_device *cpu)
{
    const int64_t count = elements_for(device);
    float *values = malloc((size_t)count * sizeof *values);
    yoke_tensor *host = NULL, *pinned = NULL, *there = NULL;
    int status = 0;
    if (!values) return no_memory();
    fill(values, count);
    const double bytes = (double)count * sizeof *values;
    if (yoke_tensor_from_data(values, count * 4, &count, 1, YOKE_F32, cpu, &host) ||
        yoke_tensor_pin_memory(host, &pinned) || yoke_tensor_to(host, device, YOKE_NONE, &there)) {
        status = failed("copies");
        goto end;
    }
    const double to = time_copy(pinned, device, device, 1), from = time_copy(there, cpu, device, 1);
    const double pageable = time_copy(host, device, device, 0);
    memset(values, 0, (size_t)count * sizeof *values);
    if (to <= 0 || from <= 0 || pageable <= 0 ||
        yoke_tensor_copy_to_host(there, values, count * 4)) {
        status = failed("copies");
        goto end;
    }
    printf("h2d %.6g\nd2h %.6g\nh2d_pageable %.6g\n", bytes / to, bytes / from, bytes / pageable);
    if (!same(values, count)) printf("broken a copy to the device and back gave other bytes\n");
end:
    yoke_tensor_release(host);
    yoke_tensor_release(pinned);
    yoke_tensor_release(there);
    free(values);
    return status;
}

/* Measures the time per launch of many launches in sequence. */
static int launches(yoke_device *device)
{
    enum { kLaunches = 200 };
    const int64_t one = 8;
    const yoke_scalar zero = {YOKE_ARG_FLOAT, 0, {.f = 0}};
    yoke_tensor *x = NULL;
    if (yoke_full(&one, 1, &zero, YOKE_F32, device, &x)) return failed("launch");
    double best = 0;
    for (int round = 0; round < 3; ++round) {
        const double start = now();
        for (int i = 0; i < kLaunches; ++i) {
            yoke_tensor *y = NULL;
            if (yoke_add(x, x, &y)) {
                yoke_tensor_release(x);
                return failed("launch");
            }
            yoke_tensor_release(y);
        }
        if (yoke_device_synchronize(device)) {
            yoke_tensor_release(x);
            return failed("launch");
        }
        const double took = (now() - start) / kLaunches;
        if (round > 0 && (best <= 0 || took < best)) best = took;
    }
    yoke_tensor_release(x);
    printf("launch %.6g\n", best);
    return 0;
}

/* Computes a sum and a product of whole numbers exact in float32, so there is one correct result. */
static int smoke(yoke_device *device)
{
    enum { kRows = 64 };
    const int64_t shape[] = {kRows, kRows};
    const yoke_scalar two = {YOKE_ARG_FLOAT, 0, {.f = 2}}, three = {YOKE_ARG_FLOAT, 0, {.f = 3}};
    yoke_tensor *x = NULL, *y = NULL, *product = NULL, *sum = NULL;
    double value = 0;
    int status = 0;
    if (yoke_full(shape, 2, &two, YOKE_F32, device, &x) ||
        yoke_full(shape, 2, &three, YOKE_F32, device, &y) || yoke_matmul(x, y, &product) ||
        yoke_sum(product, NULL, 0, 0, YOKE_NONE, &sum) || yoke_tensor_item_f64(sum, &value)) {
        status = failed("smoke");
    } else if (value != 6.0 * kRows * kRows * kRows) {
        printf("smoke wrong: a product's sum is %.17g, it must be %.17g\n", value,
               6.0 * kRows * kRows * kRows);
    } else {
        printf("smoke ok\n");
    }
    yoke_tensor_release(x);
    yoke_tensor_release(y);
    yoke_tensor_release(product);
    yoke_tensor_release(sum);
    return status;
}

static int peers(yoke_device *from, yoke_device *to)
{
    const int64_t count = elements_for(to);
    float *values = malloc((size_t)count * sizeof *values);
    yoke_tensor *here = NULL, *there = NULL;
    int status = 0;
    if (!values) return no_memory();
    fill(values, count);
    if (yoke_tensor_from_data(values, count * 4, &count, 1, YOKE_F32, from, &here)) {
        status = failed("peer");
        goto end;
    }
    const double took = time_copy(here, to, to, 0);
    memset(values, 0, (size_t)count * sizeof *values);
    if (took <= 0 || yoke_tensor_to(here, to, YOKE_NONE, &there) ||
        yoke_tensor_copy_to_host(there, values, count * 4)) {
        status = failed("peer");
        goto end;
    }
    const double rate = same(values, count) ? (double)count * sizeof *values / took : 0;
    printf("peer.%d %.6g\n", yoke_device_index(to), rate);
end:
    yoke_tensor_release(here);
    yoke_tensor_release(there);
    free(values);
    return status;
}

/* Ends this process a second after the deadline, in any wait and even without a parent. */
static void end_after(const char *seconds)
{
    const int limit = atoi(seconds);
    signal(SIGALRM, SIG_DFL);
    alarm((unsigned)(limit > 0 ? limit : 1) + 1);
}

/* Probes the devices of the command line, independent of variables. */
static int tried(const char *one, const char *two)
{
    yoke_device *device = NULL, *other = NULL, *cpu = NULL;
    int status = 0;
    if (yoke_config_set("YOKE_PLATFORMS", "") || yoke_config_set("YOKE_DEVICE", "") ||
        yoke_device_open("cpu", &cpu) || yoke_device_open(one, &device) ||
        (two && yoke_device_open(two, &other)) || yoke_set_device(device))
        status = untried("device");
    else if (two)
        status = peers(device, other);
    else
        status = smoke(device);
    if (!status && !two) status = copies(device, cpu);
    if (!status && !two) status = launches(device);
    yoke_device_release(device);
    yoke_device_release(other);
    yoke_device_release(cpu);
    return status;
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "--deadline") == 0) {
        end_after(argv[2]);
        argc -= 2;
        argv += 2;
    }
    if (argc < 2 || argc > 3 || argv[1][0] == '-') {
        fprintf(stderr,
                "usage: yoke-probe [--deadline SECONDS] DEVICE [OTHER]\n"
                "Measures a device for `yoke doctor --probe`, or copies from it to another.\n");
        return kUsage;
    }
    setvbuf(stdout, NULL, _IOLBF, 0); /* keeps measured lines if a later probe hangs */
    const int status = tried(argv[1], argc == 3 ? argv[2] : NULL);
    if (!status) printf("done\n");
    return status;
}
