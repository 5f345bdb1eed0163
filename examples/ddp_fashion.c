/*
 * Trains the network of fashion_mnist on any number of ranks, each with different pictures.
 *
 *     yoke run -n 2 -- ddp_fashion [--device auto] [--amp off|bf16|f16] [--epochs 3] [--threads N] [--seed 0]
 *                                  [--limit N] [--losses] [--save FOLDER] [--every 100]
 *
 * By "auto" each rank of a machine trains on a separate GPU, or all on the CPU. ddp_fashion.py and ddp_fashion.lua do
 * the same, and give the same losses bit for bit. With --save each program continues a run of the others from the
 * folder; all ranks must see the folder.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fashion.h"
#include "options.h"
#include "saved_run.h"

#define BATCH 64 /* per rank */

/* ---- Choice of pictures ----------------------------------------------------------------------------- */

static yoke_sampler *make_sampler(yoke_group *group, int64_t count, int64_t seed,
                                  int32_t is_training)
{
    const yoke_sampler_options options = {.struct_size = sizeof options,
                                          .rank = yoke->group_rank(group),
                                          .world_size = yoke->group_size(group),
                                          .no_shuffle = !is_training,
                                          .no_pad = !is_training,
                                          .count = count,
                                          .seed = seed};
    yoke_sampler *sampler;
    check(yoke->sampler_create(&options, &sampler));
    return sampler;
}

/* Returns the next pictures of a pass, at most `most`; NULL at its end. */
static yoke_tensor *take(yoke_sampler *sampler, int64_t most)
{
    int64_t rows[1000], count = 0;
    yoke_tensor *out;
    while (count < most) {
        check(yoke->sampler_next(sampler, &rows[count]));
        if (rows[count] < 0) break;
        count++;
    }
    if (count == 0) return NULL;
    check(yoke->zeros(&count, 1, YOKE_I64, NULL, &out));
    check(yoke->tensor_copy_from_host(out, rows, (size_t)count * sizeof *rows));
    return out;
}

/* ---- Training --------------------------------------------------------------------------------------- */

typedef struct {
    const Net *net;
    const Part *part;
    const char *amp;
    yoke_group *group;
    int64_t batches, steps; /* per epoch, and in all */
    yoke_reducer *reducer;  /* makes gradients the mean over all ranks */
    yoke_sampler *sampler;
    yoke_optimizer *optimizer;
    yoke_grad_scaler *scaler;
    yoke_state *schedule;
    yoke_tensor *losses; /* [steps], the mean over all ranks */
} Training;

/* As nn.Sequential has them in Python and Lua. */
static const char *const kNames[2 * LAYERS] = {"0.weight", "0.bias",   "2.weight",
                                               "2.bias",   "4.weight", "4.bias"};

static Training start_training(const Net *net, const Part *part, yoke_group *group,
                               const Options *o)
{
    const yoke_sgd_options options = {.struct_size = sizeof options, .lr = 0.1, .momentum = 0.9};
    const yoke_grad_scaler_options scaling = {
        sizeof scaling, strcmp(o->amp, "f16") != 0, 65536.0, 2.0, 0.5, 2000, 0};
    Training t = {.net = net, .part = part, .amp = o->amp, .group = group};
    check(yoke->reducer_create(group, net->params, kNames, 2 * LAYERS, NULL, NULL, 0, NULL,
                               &t.reducer));
    t.sampler = make_sampler(group, part->count, o->seed, 1);
    t.batches = (yoke->sampler_length(t.sampler) + BATCH - 1) / BATCH;
    t.steps = o->epochs * t.batches;
    check(yoke->sgd_create(&options, &t.optimizer));
    check(yoke->sgd_add_group(t.optimizer, net->params, 2 * LAYERS, NULL));
    check(yoke->grad_scaler_create(&scaling, &t.scaler));
    t.schedule = make_schedule(t.steps);
    check(yoke->schedule_apply(t.schedule, t.optimizer, 0));
    check(yoke->zeros(&t.steps, 1, YOKE_F32, NULL, &t.losses));
    return t;
}

static void end_training(const Training *t)
{
    yoke->tensor_release(t->losses);
    yoke->state_release(t->schedule);
    yoke->grad_scaler_release(t->scaler);
    yoke->optimizer_release(t->optimizer);
    yoke->sampler_release(t->sampler);
    yoke->reducer_release(t->reducer);
}

/* The mean of all ranks' losses. */
static void note_loss(const Training *t, int64_t step, yoke_tensor *loss)
{
    yoke_tensor *plain, *place = rows_of(t->losses, step, step + 1);
    check(yoke->tensor_detach(loss, &plain));
    check(yoke->copy_(place, plain));
    check(yoke->group_all_reduce(t->group, place, YOKE_REDUCE_AVG, NULL));
    yoke->tensor_release(plain);
    yoke->tensor_release(place);
}

static void train_step(const Training *t, int64_t step)
{
    if (step % t->batches == 0) {
        check(yoke->sampler_set_epoch(t->sampler, step / t->batches));
        check(yoke->sampler_begin(t->sampler));
    }
    yoke_tensor *rows = take(t->sampler, BATCH), *x, *target, *scaled;
    check(yoke->index_select(t->part->images, 0, rows, &x));
    check(yoke->index_select(t->part->labels, 0, rows, &target));
    yoke_tensor *loss = loss_of(t->net, t->amp, x, target);
    check(yoke->optimizer_zero_grad(t->optimizer, 1));
    check(yoke->grad_scaler_scale(t->scaler, loss, &scaled));
    check(yoke->backward(scaled, NULL, 0));
    check(yoke->grad_scaler_step(t->scaler, t->optimizer));
    check(yoke->grad_scaler_update(t->scaler));
    check(yoke->schedule_apply(t->schedule, t->optimizer, step + 1));
    note_loss(t, step, loss);
    yoke->tensor_release(rows);
    yoke->tensor_release(target);
    yoke->tensor_release(scaled);
    yoke->tensor_release(loss);
}

/* ---- State for another process ------------------------------------------------------------------------ */

static yoke_state *tensors_of(const Training *t)
{
    yoke_state *state;
    check(yoke->state_create(&state));
    for (int i = 0; i < 2 * LAYERS; i++) {
        char path[32];
        snprintf(path, sizeof path, "net/%s", kNames[i]);
        check(yoke->state_set_tensor(state, path, t->net->params[i]));
    }
    check(yoke->state_set_tensor(state, "losses", t->losses));
    return state;
}

static yoke_state *state_of(const Training *t)
{
    yoke_state *state = tensors_of(t), *optimizer, *scaler, *sampler;
    yoke_sampler_state at = {.struct_size = sizeof at};
    check(yoke->optimizer_state(t->optimizer, &optimizer));
    check(yoke->grad_scaler_state(t->scaler, &scaler));
    check(yoke->sampler_get_state(t->sampler, &at));
    check(yoke->state_create(&sampler));
    check(yoke->state_set_int(sampler, "epoch", at.epoch));
    check(yoke->state_set_int(sampler, "consumed", at.consumed));
    check(yoke->state_set(state, "sampler", sampler));
    check(yoke->state_set(state, "optimizer", optimizer));
    check(yoke->state_set(state, "scaler", scaler));
    check(yoke->state_set(state, "schedule", t->schedule));
    yoke->state_release(sampler);
    yoke->state_release(optimizer);
    yoke->state_release(scaler);
    return state;
}

/* Puts a training to the place of the state, and releases the state. */
static void go_on_from(Training *t, yoke_state *state)
{
    yoke_state *tensors = tensors_of(t), *optimizer, *scaler;
    yoke_sampler_state at = {.struct_size = sizeof at};
    check(yoke->state_copy_into(state, tensors));
    check(yoke->state_get(state, "optimizer", &optimizer));
    check(yoke->optimizer_load_state(t->optimizer, optimizer));
    check(yoke->state_get(state, "scaler", &scaler));
    check(yoke->grad_scaler_load_state(t->scaler, scaler));
    check(yoke->state_get_int(state, "sampler/epoch", &at.epoch));
    check(yoke->state_get_int(state, "sampler/consumed", &at.consumed));
    check(yoke->sampler_load(t->sampler, &at));
    check(yoke->sampler_begin(t->sampler));
    yoke->state_release(t->schedule);
    check(yoke->state_get(state, "schedule", &t->schedule));
    yoke->state_release(tensors);
    yoke->state_release(optimizer);
    yoke->state_release(scaler);
    yoke->state_release(state);
}

/* The loss of each step. */
static float *train(const Net *net, const Part *part, yoke_group *group, const Options *o,
                    SavedRun *saved, int64_t *steps)
{
    Training t = start_training(net, part, group, o);
    yoke_state *state = saved_run_load(saved, t.steps);
    if (state) go_on_from(&t, state);
    for (int64_t step = saved->first;; step++) {
        if (saved_run_is_due(saved, step)) saved_run_save(saved, step, state_of(&t));
        if (step == t.steps) break;
        train_step(&t, step);
        if (yoke->group_rank(group) == 0) show_progress(step + 1, t.steps);
    }
    float *losses = malloc((size_t)t.steps * sizeof *losses);
    check(yoke->tensor_copy_to_host(t.losses, losses, yoke->tensor_nbytes(t.losses)));
    *steps = t.steps;
    end_training(&t);
    return losses;
}

/* ---- How good it is --------------------------------------------------------------------------------- */

static int64_t count_right(const Net *net, const Part *part, yoke_tensor *rows)
{
    yoke_tensor *x, *target, *guess;
    int64_t right = 0, labels[1000], guesses[1000];
    check(yoke->index_select(part->images, 0, rows, &x));
    check(yoke->index_select(part->labels, 0, rows, &target));
    yoke_tensor *logits = forward(net, x);
    check(yoke->argmax(logits, &(int64_t){1}, 0, &guess));
    check(yoke->tensor_copy_to_host(target, labels, yoke->tensor_nbytes(target)));
    check(yoke->tensor_copy_to_host(guess, guesses, yoke->tensor_nbytes(guess)));
    for (int64_t i = 0; i < yoke->tensor_numel(guess); i++) right += guesses[i] == labels[i];
    yoke->tensor_release(target);
    yoke->tensor_release(logits);
    yoke->tensor_release(guess);
    yoke->tensor_release(rows);
    return right;
}

/* Returns the share of correctly classified pictures: each rank looks at some of them. */
static double accuracy(const Net *net, const Part *part, yoke_group *group)
{
    yoke_sampler *sampler = make_sampler(group, part->count, 0, 0);
    int64_t right = 0;
    yoke_tensor *rows, *all;
    const int32_t recorded = yoke->set_grad_enabled(0);
    check(yoke->sampler_begin(sampler));
    while ((rows = take(sampler, 1000))) right += count_right(net, part, rows);
    check(yoke->zeros(&(int64_t){1}, 1, YOKE_I64, NULL, &all));
    check(yoke->tensor_copy_from_host(all, &right, sizeof right));
    check(yoke->group_all_reduce(group, all, YOKE_REDUCE_SUM, NULL));
    check(yoke->tensor_copy_to_host(all, &right, sizeof right));
    yoke->set_grad_enabled(recorded);
    yoke->tensor_release(all);
    yoke->sampler_release(sampler);
    return (double)right / (double)part->count;
}

/* ---- Together --------------------------------------------------------------------------------------- */

/* If the device is a GPU, NCCL sums its gradients if possible. */
static yoke_group *join(void)
{
    yoke_group *group;
    check(yoke->comm_init(NULL, &group));
    return group;
}

static void take_device(const Options *o)
{
    yoke_device *device;
    check(yoke->device_open(o->device, &device));
    check(yoke->set_device(device));
    yoke->device_release(device);
    check(yoke->set_num_threads((int32_t)o->threads));
    check(yoke->manual_seed((uint64_t)o->seed));
}

/* Options that must not change while the run goes on. */
static yoke_state *begun_with(const Options *o, int64_t count, int32_t ranks)
{
    yoke_state *options;
    check(yoke->state_create(&options));
    check(yoke->state_set_string(options, "amp", o->amp, -1));
    check(yoke->state_set_int(options, "epochs", o->epochs));
    check(yoke->state_set_int(options, "seed", o->seed));
    check(yoke->state_set_int(options, "limit", count));
    check(yoke->state_set_int(options, "ranks", ranks));
    return options;
}

static void report(const Options *o, int32_t ranks, double speed, double share, const float *losses,
                   int64_t steps)
{
    yoke_device *device;
    check(yoke->current_device(&device));
    printf("ranks: %d, device: %s, %d threads each, amp %s\n", ranks, yoke->device_spec(device),
           yoke->get_num_threads(), o->amp);
    printf("images/s: %.0f\n", speed);
    printf("loss: %.4f to %.4f in %" PRId64 " steps\n", (double)losses[0],
           (double)losses[steps - 1], steps);
    printf("test accuracy: %.4f\n", share);
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
    yoke_group *group = join();
    const int32_t ranks = yoke->group_size(group);
    take_device(&o);
    Part training =
        load_part(o.data, "train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz", o.limit);
    Part test =
        load_part(o.data, "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz", LONG_MAX);
    if (training.count == 0) fail("the data set has no pictures to train with");
    Net net = make_net();

    SavedRun saved = saved_run_open("ddp_fashion", o.save, o.every,
                                    begun_with(&o, training.count, ranks), group);
    int64_t steps;
    const double start = now();
    float *losses = train(&net, &training, group, &o, &saved, &steps);
    const double seconds = now() - start, part = (double)(steps - saved.first) / (double)steps;
    const double share = accuracy(&net, &test, group);
    if (yoke->group_rank(group) == 0)
        report(&o, ranks, part * (double)(training.count * o.epochs) / seconds, share, losses,
               steps);

    free(losses);
    saved_run_close(&saved);
    release_net(&net);
    release_part(training);
    release_part(test);
    yoke->group_release(group);
    check(yoke->comm_finalize());
    return 0;
}
