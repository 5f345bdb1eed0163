/*
 * Trains a small network on Fashion-MNIST: 60,000 pictures of clothes, ten kinds.
 *
 *     fashion_mnist [--device auto] [--amp off|bf16|f16] [--epochs 3] [--threads N] [--seed 0] [--limit N]
 *                   [--losses] [--save FOLDER] [--every 100]
 *
 * fashion_mnist.py and fashion_mnist.lua do the same, and give the same losses bit for bit. With --save each program
 * continues a run of the others from the folder, as if the run had never stopped. The program is not linked with
 * Yoke: library.c opens Yoke at run time.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fashion.h"
#include "options.h"
#include "saved_run.h"

#define BATCH 128

/* ---- Training --------------------------------------------------------------------------------------- */

typedef struct {
    const Net *net;
    const Part *part;
    const char *amp;
    int64_t batches, steps; /* per epoch, and in all */
    yoke_optimizer *optimizer;
    yoke_grad_scaler *scaler; /* gives the loss back as it is unless amp is f16 */
    yoke_state *schedule;
    yoke_tensor *order;  /* order of pictures, new in each epoch */
    yoke_tensor *losses; /* [steps], on the device, which a number would be waited for */
} Training;

static Training start_training(const Net *net, const Part *part, const Options *o)
{
    const yoke_sgd_options options = {.struct_size = sizeof options, .lr = 0.1, .momentum = 0.9};
    const yoke_grad_scaler_options scaling = {
        sizeof scaling, strcmp(o->amp, "f16") != 0, 65536.0, 2.0, 0.5, 2000, 0};
    Training t = {
        .net = net, .part = part, .amp = o->amp, .batches = (part->count + BATCH - 1) / BATCH};
    t.steps = o->epochs * t.batches;
    check(yoke->sgd_create(&options, &t.optimizer));
    check(yoke->sgd_add_group(t.optimizer, net->params, 2 * LAYERS, NULL));
    check(yoke->grad_scaler_create(&scaling, &t.scaler));
    t.schedule = make_schedule(t.steps);
    check(yoke->schedule_apply(t.schedule, t.optimizer, 0));
    check(yoke->zeros(&part->count, 1, YOKE_I64, NULL, &t.order));
    check(yoke->zeros(&t.steps, 1, YOKE_F32, NULL, &t.losses));
    return t;
}

static void end_training(const Training *t)
{
    yoke->tensor_release(t->losses);
    yoke->tensor_release(t->order);
    yoke->state_release(t->schedule);
    yoke->grad_scaler_release(t->scaler);
    yoke->optimizer_release(t->optimizer);
}

static yoke_tensor *draw_rows(const Training *t, int64_t step)
{
    const int64_t first = step % t->batches * BATCH;
    if (first == 0) {
        yoke_tensor *order;
        check(yoke->randperm(t->part->count, YOKE_NONE, NULL, NULL, &order));
        set_rows(t->order, 0, t->part->count, order);
        yoke->tensor_release(order);
    }
    return rows_of(t->order, first, first + BATCH);
}

static void train_step(const Training *t, int64_t step)
{
    yoke_tensor *rows = draw_rows(t, step), *x, *target, *scaled, *plain;
    check(yoke->index_select(t->part->images, 0, rows, &x));
    check(yoke->index_select(t->part->labels, 0, rows, &target));
    yoke_tensor *loss = loss_of(t->net, t->amp, x, target);
    check(yoke->optimizer_zero_grad(t->optimizer, 1));
    check(yoke->grad_scaler_scale(t->scaler, loss, &scaled));
    check(yoke->backward(scaled, NULL, 0));
    check(yoke->grad_scaler_step(t->scaler, t->optimizer));
    check(yoke->grad_scaler_update(t->scaler));
    check(yoke->schedule_apply(t->schedule, t->optimizer, step + 1));
    check(yoke->tensor_detach(loss, &plain));
    set_rows(t->losses, step, step + 1, plain);
    yoke->tensor_release(rows);
    yoke->tensor_release(target);
    yoke->tensor_release(scaled);
    yoke->tensor_release(loss);
    yoke->tensor_release(plain);
}

/* ---- State for another process ------------------------------------------------------------------------ */

/* The tensors of a training, under the names that nn.Sequential gives in Python and Lua. */
static yoke_state *tensors_of(const Training *t)
{
    yoke_state *state;
    check(yoke->state_create(&state));
    for (int i = 0; i < 2 * LAYERS; i++) {
        char path[32];
        snprintf(path, sizeof path, "net/%d.%s", i / 2 * 2, i % 2 ? "bias" : "weight");
        check(yoke->state_set_tensor(state, path, t->net->params[i]));
    }
    check(yoke->state_set_tensor(state, "order", t->order));
    check(yoke->state_set_tensor(state, "losses", t->losses));
    return state;
}

static yoke_state *state_of(const Training *t)
{
    yoke_state *state = tensors_of(t), *optimizer, *scaler;
    check(yoke->optimizer_state(t->optimizer, &optimizer));
    check(yoke->grad_scaler_state(t->scaler, &scaler));
    check(yoke->state_set(state, "optimizer", optimizer));
    check(yoke->state_set(state, "scaler", scaler));
    check(yoke->state_set(state, "schedule", t->schedule));
    yoke->state_release(optimizer);
    yoke->state_release(scaler);
    return state;
}

/* Puts a training to the place of the state, and releases the state. */
static void go_on_from(Training *t, yoke_state *state)
{
    yoke_state *tensors = tensors_of(t), *optimizer, *scaler;
    check(yoke->state_copy_into(state, tensors));
    check(yoke->state_get(state, "optimizer", &optimizer));
    check(yoke->optimizer_load_state(t->optimizer, optimizer));
    check(yoke->state_get(state, "scaler", &scaler));
    check(yoke->grad_scaler_load_state(t->scaler, scaler));
    yoke->state_release(t->schedule);
    check(yoke->state_get(state, "schedule", &t->schedule));
    yoke->state_release(tensors);
    yoke->state_release(optimizer);
    yoke->state_release(scaler);
    yoke->state_release(state);
}

/* The loss of each step. */
static float *train(const Net *net, const Part *part, const Options *o, SavedRun *saved,
                    int64_t *steps)
{
    Training t = start_training(net, part, o);
    yoke_state *state = saved_run_load(saved, t.steps);
    if (state) go_on_from(&t, state);
    for (int64_t step = saved->first;; step++) {
        if (saved_run_is_due(saved, step)) saved_run_save(saved, step, state_of(&t));
        if (step == t.steps) break;
        train_step(&t, step);
        show_progress(step + 1, t.steps);
    }
    float *losses = malloc((size_t)t.steps * sizeof *losses);
    check(yoke->tensor_copy_to_host(t.losses, losses, yoke->tensor_nbytes(t.losses)));
    *steps = t.steps;
    end_training(&t);
    return losses;
}

/* Returns the share of correctly classified pictures. */
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

/* Options that must not change while the run goes on. */
static yoke_state *begun_with(const Options *o, int64_t count)
{
    yoke_state *options;
    check(yoke->state_create(&options));
    check(yoke->state_set_string(options, "amp", o->amp, -1));
    check(yoke->state_set_int(options, "epochs", o->epochs));
    check(yoke->state_set_int(options, "seed", o->seed));
    check(yoke->state_set_int(options, "limit", count));
    return options;
}

static void report(const Options *o, double speed, double share, const float *losses, int64_t steps)
{
    yoke_device *device;
    int64_t peak;
    check(yoke->current_device(&device));
    check(yoke->max_memory_allocated(NULL, &peak));
    printf("device: %s (%s), %d threads, amp %s\n", yoke->device_spec(device),
           yoke->device_name(device), yoke->get_num_threads(), o->amp);
    printf("no GPU: %s\n", yoke->why_unavailable("cuda"));
    printf("images/s: %.0f\n", speed);
    printf("loss: %.4f to %.4f in %" PRId64 " steps\n", (double)losses[0],
           (double)losses[steps - 1], steps);
    printf("test accuracy: %.4f\n", share);
    printf("peak memory: %.1f MiB\n", (double)peak / 1048576);
    if (o->losses) {
        printf("losses:");
        for (int64_t i = 0; i < steps; i++) printf(" %a", (double)losses[i]);
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
    if (training.count == 0) fail("the data set has no pictures to train with");
    Net net = make_net();

    SavedRun saved =
        saved_run_open("fashion_mnist", o.save, o.every, begun_with(&o, training.count), NULL);
    int64_t steps;
    const double start = now();
    float *losses = train(&net, &training, &o, &saved, &steps);
    const double seconds = now() - start, share = (double)(steps - saved.first) / (double)steps;
    const double speed = share * (double)(training.count * o.epochs) / seconds;
    report(&o, speed, accuracy(&net, &test), losses, steps);

    free(losses);
    saved_run_close(&saved);
    release_net(&net);
    release_part(training);
    release_part(test);
    return 0;
}
