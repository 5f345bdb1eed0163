/*
 * Trains a small network on Fashion-MNIST: 60,000 pictures of clothes, ten kinds.
 *
 *     fashion_mnist [--device auto] [--amp off|bf16|f16] [--epochs 3] [--threads N] [--seed 0] [--limit N]
 *                   [--losses]
 *
 * fashion_mnist.py and fashion_mnist.lua do the same, and give the same losses bit for bit. Nothing of
 * Yoke is linked: library.c opens it when the program runs.
 */
#define _POSIX_C_SOURCE 200809L
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "library.h"
#include "options.h"

#define BATCH 128
#define LAYERS 3

/* ---- Time --------------------------------------------------------------------------------------------- */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void show_progress(long done, long total)
{
    static const char bar[] = "########################################";
    if (!isatty(STDERR_FILENO)) return;
    fprintf(stderr, "\rC      [%-40.*s] %3ld %%%s", (int)(40 * done / total), bar,
            100 * done / total, done == total ? "\n" : "");
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

typedef struct {
    yoke_tensor *images; /* [N, 784], one byte a pixel */
    yoke_tensor *labels; /* [N] */
    int64_t count;
} Part;

static Part load_part(const char *folder, const char *images, const char *labels, long limit)
{
    Part part = {load(folder, images, limit, 28 * 28, YOKE_U8),
                 load(folder, labels, limit, 0, YOKE_I64), 0};
    part.count = yoke->tensor_shape(part.images)[0];
    return part;
}

static void release_part(Part part)
{
    yoke->tensor_release(part.images);
    yoke->tensor_release(part.labels);
}

/* ---- The network ------------------------------------------------------------------------------------ */

typedef struct {
    yoke_tensor *params[2 * LAYERS]; /* weight and bias of each layer */
} Net;

/* Uniform in ±bound, to be trained. */
static yoke_tensor *parameter(const int64_t *shape, int64_t ndim, double bound)
{
    const yoke_scalar width = {YOKE_ARG_FLOAT, 0, {.f = 2 * bound}};
    const yoke_scalar middle = {YOKE_ARG_FLOAT, 0, {.f = bound}};
    yoke_tensor *x, *next;
    check(yoke->rand(shape, ndim, YOKE_F32, NULL, &x));
    check(yoke->mul_scalar(x, &width, &next));
    replace(&x, next);
    check(yoke->sub_scalar(x, &middle, &next));
    replace(&x, next);
    check(yoke->tensor_set_requires_grad(x, 1));
    return x;
}

static Net make_net(void)
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

/* Pictures of one byte a pixel to ten numbers each. Takes over `x`. */
static yoke_tensor *forward(const Net *net, yoke_tensor *x)
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

/* What the steps of a run share. */
typedef struct {
    const char *amp;
    yoke_optimizer *optimizer;
    yoke_grad_scaler *scaler; /* gives the loss back as it is unless amp is f16 */
} Training;

/* The mean loss over some pictures, with mixed precision where it is asked for. Takes over `x`. */
static yoke_tensor *loss_of(const Net *net, const char *amp, yoke_tensor *x, yoke_tensor *target)
{
    yoke_autocast *region;
    yoke_tensor *loss;
    check(yoke->autocast_create(strcmp(amp, "off") != 0, strcmp(amp, "f16") ? YOKE_BF16 : YOKE_F16,
                                1, &region));
    yoke_autocast *outer = yoke->autocast_swap(region);
    yoke_tensor *logits = forward(net, x);
    check(yoke->cross_entropy(logits, target, "mean", -100, 0.0, &loss));
    yoke->autocast_swap(outer);
    yoke->autocast_release(region);
    yoke->tensor_release(logits);
    return loss;
}

static yoke_tensor *train_step(const Net *net, const Training *t, const Part *part,
                               yoke_tensor *rows)
{
    yoke_tensor *x, *target, *scaled, *plain;
    check(yoke->index_select(part->images, 0, rows, &x));
    check(yoke->index_select(part->labels, 0, rows, &target));
    yoke_tensor *loss = loss_of(net, t->amp, x, target);
    check(yoke->optimizer_zero_grad(t->optimizer, 1));
    check(yoke->grad_scaler_scale(t->scaler, loss, &scaled));
    check(yoke->backward(scaled, NULL, 0));
    check(yoke->grad_scaler_step(t->scaler, t->optimizer));
    check(yoke->grad_scaler_update(t->scaler));
    check(yoke->tensor_detach(loss, &plain));
    yoke->tensor_release(target);
    yoke->tensor_release(scaled);
    yoke->tensor_release(loss);
    return plain; /* not yet its value, for which the device would be waited for */
}

/* Fills losses[steps]. */
static void train(Net *net, const Part *part, const Options *o, double *losses, long steps)
{
    const yoke_sgd_options options = {.struct_size = sizeof options, .lr = 0.1, .momentum = 0.9};
    const yoke_grad_scaler_options scaling = {
        sizeof scaling, strcmp(o->amp, "f16") != 0, 65536.0, 2.0, 0.5, 2000, 0};
    Training t = {o->amp, NULL, NULL};
    check(yoke->sgd_create(&options, &t.optimizer));
    check(yoke->sgd_add_group(t.optimizer, net->params, 2 * LAYERS, NULL));
    check(yoke->grad_scaler_create(&scaling, &t.scaler));
    yoke_tensor **kept = malloc((size_t)steps * sizeof *kept);
    long step = 0;
    for (long epoch = 0; epoch < o->epochs; epoch++) {
        yoke_tensor *order;
        check(yoke->randperm(part->count, YOKE_NONE, NULL, &order));
        for (int64_t first = 0; first < part->count; first += BATCH, step++) {
            yoke_tensor *rows = rows_of(order, first, first + BATCH);
            check(yoke->optimizer_set_lr(t.optimizer, -1,
                                         yoke->schedule_linear(0.1, 0.0, steps, step)));
            kept[step] = train_step(net, &t, part, rows);
            yoke->tensor_release(rows);
            show_progress(step + 1, steps);
        }
        yoke->tensor_release(order);
    }
    for (step = 0; step < steps; step++) {
        check(yoke->tensor_item_f64(kept[step], &losses[step]));
        yoke->tensor_release(kept[step]);
    }
    free(kept);
    yoke->grad_scaler_release(t.scaler);
    yoke->optimizer_release(t.optimizer);
}

/* The share of pictures whose kind the network tells. */
static double accuracy(const Net *net, const Part *part)
{
    int64_t right = 0, labels[1000], guesses[1000];
    const int32_t recorded = yoke->set_grad_enabled(0);
    for (int64_t first = 0; first < part->count; first += 1000) {
        yoke_tensor *target = rows_of(part->labels, first, first + 1000), *guess;
        yoke_tensor *logits = forward(net, rows_of(part->images, first, first + 1000));
        check(yoke->argmax(logits, &(int64_t){1}, 0, &guess));
        check(yoke->tensor_copy_to_host(target, labels, yoke->tensor_nbytes(target)));
        check(yoke->tensor_copy_to_host(guess, guesses, yoke->tensor_nbytes(guess)));
        for (int64_t i = 0; i < yoke->tensor_numel(guess); i++) right += guesses[i] == labels[i];
        yoke->tensor_release(target);
        yoke->tensor_release(logits);
        yoke->tensor_release(guess);
    }
    yoke->set_grad_enabled(recorded);
    return (double)right / (double)part->count;
}

/* ---- Together --------------------------------------------------------------------------------------- */

static void report(const Options *o, double speed, double share, const double *losses, long steps)
{
    yoke_device *device;
    int64_t peak;
    check(yoke->current_device(&device));
    check(yoke->max_memory_allocated(NULL, &peak));
    printf("device: %s (%s), %d threads, amp %s\n", yoke->device_spec(device),
           yoke->device_name(device), yoke->get_num_threads(), o->amp);
    printf("no GPU: %s\n", yoke->why_unavailable("cuda"));
    printf("images/s: %.0f\n", speed);
    printf("loss: %.4f to %.4f in %ld steps\n", losses[0], losses[steps - 1], steps);
    printf("test accuracy: %.4f\n", share);
    printf("peak memory: %.1f MiB\n", (double)peak / 1048576);
    if (o->losses) {
        printf("losses:");
        for (long i = 0; i < steps; i++) printf(" %a", losses[i]);
        printf("\n");
    }
    yoke->device_release(device);
}

int main(int argc, char **argv)
{
    const Options o = read_options(argc, argv);
    open_library();
    yoke_device *device;
    check(yoke->device_open(o.device, &device));
    check(yoke->set_device(device));
    yoke->device_release(device);
    check(yoke->set_num_threads((int32_t)o.threads));
    check(yoke->manual_seed((uint64_t)o.seed));
    Part training =
        load_part(o.data, "train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz", o.limit);
    Part test =
        load_part(o.data, "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz", LONG_MAX);
    if (training.count == 0) fail("the data set holds no pictures to train with");
    Net net = make_net();

    const long steps = o.epochs * (long)((training.count + BATCH - 1) / BATCH);
    double *losses = malloc((size_t)steps * sizeof *losses);
    const double start = now();
    train(&net, &training, &o, losses, steps);
    const double speed = (double)(training.count * o.epochs) / (now() - start);
    report(&o, speed, accuracy(&net, &test), losses, steps);

    free(losses);
    for (int i = 0; i < 2 * LAYERS; i++) yoke->tensor_release(net.params[i]);
    release_part(training);
    release_part(test);
    return 0;
}
