#define _POSIX_C_SOURCE 200809L
#include "fashion.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- Time --------------------------------------------------------------------------------------------- */

double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void show_progress(int64_t done, int64_t total)
{
    static const char bar[] = "########################################";
    if (!isatty(STDERR_FILENO)) return;
    fprintf(stderr, "\rC      [%-40.*s] %3d %%%s", (int)(40 * done / total), bar,
            (int)(100 * done / total), done == total ? "\n" : "");
}

/* ---- Data ------------------------------------------------------------------------------------------ */

/* The first `limit` rows of a file as [N, width], or as [N], on the current device. */
static yoke_tensor *load(const char *folder, const char *file, long limit, int64_t width,
                         yoke_dtype dtype)
{
    char path[4096];
    yoke_device *device;
    yoke_tensor *x, *next;
    snprintf(path, sizeof path, "%s/%s", folder, file);
    if (yoke->read_idx(path, &x)) {
        fprintf(stderr, "%s\n", yoke->last_error()->message);
        fail(
            "The data set: apt-get install dataset-fashion-mnist, or name its folder with --data.");
    }
    replace(&x, rows_of(x, 0, limit));
    check(yoke->reshape(x, (int64_t[]){-1, width}, width ? 2 : 1, &next));
    replace(&x, next);
    check(yoke->current_device(&device));
    check(yoke->tensor_to(x, device, dtype, &next));
    replace(&x, next);
    yoke->device_release(device);
    return x;
}

Part load_part(const char *folder, const char *images, const char *labels, long limit)
{
    Part part = {load(folder, images, limit, 28 * 28, YOKE_U8),
                 load(folder, labels, limit, 0, YOKE_I64), 0};
    part.count = yoke->tensor_shape(part.images)[0];
    return part;
}

void release_part(Part part)
{
    yoke->tensor_release(part.images);
    yoke->tensor_release(part.labels);
}

/* ---- The network ------------------------------------------------------------------------------------ */

/* Uniform in ±bound, to be trained. */
static yoke_tensor *parameter(const int64_t *shape, int64_t ndim, double bound)
{
    const yoke_scalar width = {YOKE_ARG_FLOAT, 0, {.f = 2 * bound}};
    const yoke_scalar middle = {YOKE_ARG_FLOAT, 0, {.f = bound}};
    yoke_tensor *x, *next;
    check(yoke->rand(shape, ndim, YOKE_F32, NULL, NULL, &x));
    check(yoke->mul_scalar(x, &width, &next));
    replace(&x, next);
    check(yoke->sub_scalar(x, &middle, &next));
    replace(&x, next);
    check(yoke->tensor_set_requires_grad(x, 1));
    return x;
}

Net make_net(void)
{
    const int64_t widths[LAYERS + 1] = {784, 512, 512, 10};
    Net net;
    for (int i = 0; i < LAYERS; i++) {
        const double bound = 1 / sqrt((double)widths[i]);
        net.params[2 * i] = parameter((int64_t[]){widths[i + 1], widths[i]}, 2, bound);
        net.params[2 * i + 1] = parameter(&widths[i + 1], 1, bound);
    }
    return net;
}

yoke_tensor *forward(const Net *net, yoke_tensor *x)
{
    const yoke_scalar white = {YOKE_ARG_INT, 0, {.i = 255}};
    yoke_tensor *next;
    check(yoke->div_scalar(x, &white, &next));
    replace(&x, next);
    for (int i = 0; i < LAYERS; i++) {
        check(yoke->linear(x, net->params[2 * i], net->params[2 * i + 1], "none", &next));
        replace(&x, next);
        if (i + 1 == LAYERS) break;
        check(yoke->relu(x, &next));
        replace(&x, next);
    }
    return x;
}

yoke_tensor *loss_of(const Net *net, const char *amp, yoke_tensor *x, yoke_tensor *target)
{
    yoke_autocast *region;
    yoke_tensor *loss;
    check(yoke->autocast_create(strcmp(amp, "off") != 0, strcmp(amp, "f16") ? YOKE_BF16 : YOKE_F16,
                                1, &region));
    yoke_autocast *outer = yoke->autocast_swap(region);
    yoke_tensor *logits = forward(net, x);
    check(yoke->cross_entropy(logits, target, NULL, "mean", -100, 0.0, &loss));
    yoke->autocast_swap(outer);
    yoke->autocast_release(region);
    yoke->tensor_release(logits);
    return loss;
}

void release_net(Net *net)
{
    for (int i = 0; i < 2 * LAYERS; i++) yoke->tensor_release(net->params[i]);
}

yoke_state *make_schedule(int64_t steps)
{
    yoke_state *schedule;
    check(yoke->state_create(&schedule));
    check(yoke->state_set_string(schedule, "kind", "linear", -1));
    check(yoke->state_set_float(schedule, "start", 0.1));
    check(yoke->state_set_float(schedule, "end", 0.0));
    check(yoke->state_set_int(schedule, "total_steps", steps));
    check(yoke->state_set_int(schedule, "last_step", 0));
    check(yoke->state_set_list(schedule, "base_lrs", 0));
    check(yoke->state_set_float(schedule, "base_lrs/0", 0.1));
    return schedule;
}
