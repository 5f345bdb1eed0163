/*
 * The run of tests/python/parallel_ways.py, in C: the same ways of data parallel. The values are printed to the last
 * bit.
 *
 *     test_capi_parallel_run DEVICE WAY...
 *
 * DEVICE: "cuda" is the card of the local rank, "cpu" the host. Without arguments two ranks, which are threads, go all
 * ways on the host, and end with the same bits.
 */
#define _POSIX_C_SOURCE 200809L /* kill, open_memstream */

#include "check.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum { IN = 6, WIDTH = 16, OUT = 12, BATCH = 2, PARAMS = 4, MOST = WIDTH * OUT };
enum { LOST_AT = 3 }; /* steps that all ranks make */

static const int64_t kShapes[PARAMS][2] = {{WIDTH, IN}, {WIDTH}, {OUT, WIDTH}, {OUT}};
static const char *const kNames[PARAMS] = {"0.weight", "0.bias", "2.weight", "2.bias"};

typedef struct Run {
    yoke_group *group;
    yoke_tensor *params[PARAMS];
    yoke_reducer *reducer;
    yoke_optimizer *optimizer;
    FILE *out;
} Run;

/* ---- The training ------------------------------------------------------------------------------------------------ */

/* Makes a tensor of numbers that each language has to the last bit: C's sin of doubles. */
static yoke_tensor *wave(const int64_t *shape, int64_t ndim, double scale, double pitch,
                         double phase)
{
    float values[MOST];
    yoke_tensor *made = NULL;
    const int64_t count = shape[0] * (ndim > 1 ? shape[1] : 1);
    for (int64_t i = 0; i < count; ++i) values[i] = (float)(scale * sin(pitch * (double)i + phase));
    OK(yoke_tensor_from_data(values, count * 4, shape, ndim, YOKE_F32, NULL, &made));
    return made;
}

static Run begin(yoke_group *group, FILE *out, yoke_reducer_options options)
{
    const yoke_sgd_options sgd = {.struct_size = sizeof sgd, .lr = 0.1, .momentum = 0.9};
    Run run = {.group = group, .out = out};
    options.struct_size = sizeof options;
    options.bucket_mb = 0.0003;
    for (int i = 0; i < PARAMS; ++i) {
        run.params[i] = wave(kShapes[i], i % 2 ? 1 : 2, 0.3, 0.7, i);
        OK(yoke_tensor_set_requires_grad(run.params[i], 1));
    }
    OK(yoke_reducer_create(group, run.params, kNames, PARAMS, NULL, NULL, 0, &options,
                           &run.reducer));
    OK(yoke_sgd_create(&sgd, &run.optimizer));
    OK(yoke_sgd_add_group(run.optimizer, run.params, PARAMS, NULL));
    return run;
}

static yoke_tensor *loss_of(const Run *run, int step)
{
    const int64_t shape[] = {BATCH, IN};
    yoke_tensor *x = wave(shape, 2, 3, 1.7, yoke_group_rank(run->group) + 0.3 * step);
    yoke_tensor *first = NULL, *bent = NULL, *y = NULL, *squared = NULL, *loss = NULL;
    OK(yoke_linear(x, run->params[0], run->params[1], "none", &first));
    OK(yoke_tanh(first, &bent));
    OK(yoke_linear(bent, run->params[2], run->params[3], "none", &y));
    OK(yoke_mul(y, y, &squared));
    OK(yoke_mean(squared, NULL, 0, 0, YOKE_NONE, &loss));
    yoke_tensor *const made[] = {x, first, bent, y, squared};
    for (int i = 0; i < 5; ++i) yoke_tensor_release(made[i]);
    return loss;
}

/* Runs a backward; returns the group's failure if the group has failed. */
static yoke_status go_back(const Run *run, int step)
{
    yoke_status status = yoke_reducer_check(run->reducer, NULL);
    if (status != YOKE_OK) return status;
    yoke_tensor *loss = loss_of(run, step);
    status = yoke_backward(loss, NULL, 0);
    yoke_tensor_release(loss);
    return status;
}

static yoke_status steps(const Run *run, int first, int last)
{
    yoke_status status = YOKE_OK;
    for (int step = first; step <= last && status == YOKE_OK; ++step) {
        OK(yoke_optimizer_zero_grad(run->optimizer, 1));
        status = go_back(run, step);
        if (status == YOKE_OK) status = yoke_optimizer_step(run->optimizer);
    }
    return status;
}

static void tell_bits(FILE *out, yoke_tensor *tensor)
{
    unsigned char bytes[MOST * 4];
    const int64_t count = yoke_tensor_nbytes(tensor);
    OK(yoke_tensor_copy_to_host(tensor, bytes, count));
    for (int64_t i = 0; i < count; ++i) fprintf(out, "%02x", bytes[i]);
}

/* Writes parameters, then gradients. */
static void tell(const Run *run, const char *name)
{
    fprintf(run->out, "%s ", name);
    for (int i = 0; i < 2 * PARAMS; ++i) {
        yoke_tensor *grad = NULL;
        if (i >= PARAMS) OK(yoke_tensor_grad(run->params[i - PARAMS], &grad));
        if (i) fputc(',', run->out);
        if (i < PARAMS || grad) tell_bits(run->out, grad ? grad : run->params[i]);
        yoke_tensor_release(grad);
    }
    fputc('\n', run->out);
}

static void finish(Run *run, const char *name)
{
    OK(yoke_optimizer_zero_grad(run->optimizer, 1));
    OK(go_back(run, 4));
    tell(run, name);
    yoke_reducer_release(run->reducer);
    yoke_optimizer_release(run->optimizer);
    for (int i = 0; i < PARAMS; ++i) yoke_tensor_release(run->params[i]);
}

/* ---- The ways ---------------------------------------------------------------------------------------------------- */

static void compressed(yoke_group *group, FILE *out, const char *name)
{
    Run run = begin(group, out,
                    (yoke_reducer_options){.compression = strcmp(name, "plain") ? name : NULL});
    OK(steps(&run, 0, 3));
    finish(&run, name);
}

static void powersgd(yoke_group *group, FILE *out, const char *name)
{
    Run run = begin(group, out, (yoke_reducer_options){.compression = "powersgd:rank=2,start=2"});
    OK(steps(&run, 0, 3));
    finish(&run, name);
}

static yoke_status mean_of(void *user, yoke_tensor *bucket, int32_t index, int32_t is_last,
                           yoke_group *group, yoke_work **work)
{
    (void)index, (void)is_last;
    ++*(int *)user;
    return yoke_group_all_reduce(group, bucket, YOKE_REDUCE_AVG, work);
}

static void hook(yoke_group *group, FILE *out, const char *name)
{
    int ran = 0;
    const yoke_bucket_hook own = {.struct_size = sizeof own, .user = &ran, .run = mean_of};
    Run run = begin(group, out, (yoke_reducer_options){.hook = &own});
    OK(steps(&run, 0, 3));
    finish(&run, name);
    CHECK(ran >= 2 * 5); /* buckets of each backward */
}

static void no_sync(yoke_group *group, FILE *out, const char *name)
{
    Run run = begin(group, out, (yoke_reducer_options){0});
    OK(steps(&run, 0, 0));
    OK(yoke_optimizer_zero_grad(run.optimizer, 1));
    OK(yoke_reducer_set_sync(run.reducer, 0));
    OK(go_back(&run, 1));
    OK(yoke_reducer_set_sync(run.reducer, 1));
    OK(go_back(&run, 2));
    OK(yoke_optimizer_step(run.optimizer));
    finish(&run, name);
}

/* Gives the optimizer the state of another rank's. */
static void go_on_from(const Run *run, yoke_state *mine, yoke_state *told)
{
    CHECK(told != NULL);
    OK(yoke_optimizer_load_state(run->optimizer, told));
    yoke_state_release(mine);
    yoke_state_release(told);
}

/* Gives each rank two steps more than the one before. */
static void join(yoke_group *group, FILE *out, const char *name)
{
    Run run = begin(group, out, (yoke_reducer_options){0});
    yoke_state *mine = NULL, *last = NULL;
    OK(yoke_group_join_begin(group));
    OK(steps(&run, 0, 2 * yoke_group_rank(group)));
    OK(yoke_optimizer_state(run.optimizer, &mine));
    OK(yoke_group_join_end(group, mine, &last));
    go_on_from(&run, mine, last);
    OK(steps(&run, 2, 3)); /* with the momentum of the rank that came last */
    finish(&run, name);
}

/* Loses the last rank behind the backward of a step, which rank 1 alone has made whole. */
static void lost(yoke_group *group, FILE *out, const char *name)
{
    Run run = begin(group, out, (yoke_reducer_options){0});
    yoke_state *mine = NULL, *furthest = NULL;
    OK(steps(&run, 0, LOST_AT - 1));
    OK(yoke_optimizer_zero_grad(run.optimizer, 1));
    OK(go_back(&run, LOST_AT));
    yoke_status status = yoke_group_barrier(group, NULL); /* all have the gradients */
    if (yoke_group_rank(group) == yoke_group_size(group) - 1) kill(getpid(), SIGKILL);
    if (status == YOKE_OK) status = yoke_group_barrier(group, NULL);
    fprintf(out, "told %s\n", status == YOKE_OK ? "nothing" : yoke_last_error()->message);
    if (yoke_group_rank(group) == 1) OK(yoke_optimizer_step(run.optimizer));
    OK(yoke_group_shrink(group, 20, &run.group));
    OK(yoke_optimizer_state(run.optimizer, &mine));
    OK(yoke_reducer_regroup(run.reducer, run.group, mine, &furthest));
    go_on_from(&run, mine, furthest);
    OK(steps(&run, LOST_AT + 1, LOST_AT + 3));
    finish(&run, name);
    fprintf(out, "group %s\n", yoke_group_describe(run.group));
    yoke_group_release(run.group);
}

typedef struct Way {
    const char *name;
    void (*go)(yoke_group *group, FILE *out, const char *name);
} Way;

static const Way kWays[] = {{"plain", compressed},  {"bf16", compressed}, {"hook", hook},
                            {"powersgd", powersgd}, {"no_sync", no_sync}, {"join", join},
                            {"lost", lost}};

static void go(const char *name, yoke_group *group, FILE *out)
{
    for (size_t i = 0; i < sizeof kWays / sizeof *kWays; ++i)
        if (!strcmp(kWays[i].name, name)) kWays[i].go(group, out, name);
}

/* ---- A rank that is a process ------------------------------------------------------------------------------------ */

static void take_device(const char *name, yoke_group *group)
{
    char spec[32];
    yoke_device *device = NULL;
    snprintf(spec, sizeof spec, "cuda:%d", yoke_group_local_rank(group));
    OK(yoke_device_open(strcmp(name, "cuda") ? name : spec, &device));
    OK(yoke_set_device(device));
    yoke_device_release(device);
}

static int be_a_rank(int count, char **words)
{
    const yoke_comm_options options = {.struct_size = sizeof options, .timeout = 60};
    yoke_group *group = NULL;
    OK(yoke_comm_init(&options, &group));
    if (!group) return 1;
    take_device(words[1], group);
    for (int i = 2; i < count; ++i) go(words[i], group, stdout);
    printf("group %s\n", yoke_group_describe(group));
    yoke_group_release(group);
    OK(yoke_comm_finalize());
    return checks_failed != 0;
}

/* ---- Ranks that are threads -------------------------------------------------------------------------------------- */

typedef struct Rank {
    yoke_group *group;
    char *told;
    size_t length;
} Rank;

static void *run_rank(void *rank)
{
    Rank *own = rank;
    FILE *out = open_memstream(&own->told, &own->length);
    for (size_t i = 0; strcmp(kWays[i].name, "lost") != 0; ++i)
        kWays[i].go(own->group, out, kWays[i].name);
    fclose(out);
    return NULL;
}

static void ranks_that_are_threads_end_with_the_same_bits(void)
{
    yoke_group *groups[2];
    pthread_t threads[2];
    Rank ranks[2];
    OK(yoke_comm_init_threads(2, 0, groups));
    for (int i = 0; i < 2; ++i) {
        ranks[i] = (Rank){groups[i], NULL, 0};
        CHECK(pthread_create(&threads[i], NULL, run_rank, &ranks[i]) == 0);
    }
    for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
    CHECK(ranks[0].length > 6 * 4 * MOST && !strcmp(ranks[0].told, ranks[1].told));
    for (int i = 0; i < 2; ++i) {
        free(ranks[i].told);
        yoke_group_release(groups[i]);
    }
}

int main(int count, char **words)
{
    if (count > 2) return be_a_rank(count, words);
    RUN(ranks_that_are_threads_end_with_the_same_bits);
    return report();
}
