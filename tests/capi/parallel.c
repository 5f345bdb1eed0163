/* Gradients that ranks reduce, from C. */
#include "check.h"

#include <pthread.h>

enum { RANKS = 3, COUNT = 5 };

static yoke_tensor *parameter(int64_t count)
{
    yoke_tensor *made = NULL;
    OK(yoke_ones(&count, 1, YOKE_F32, NULL, &made));
    OK(yoke_tensor_set_requires_grad(made, 1));
    return made;
}

/* The gradient of `p` is `factor` in each element. */
static yoke_status go_back(yoke_tensor *p, double factor)
{
    yoke_tensor *scaled = NULL, *loss = NULL;
    const yoke_scalar by = {.kind = YOKE_ARG_FLOAT, .v.f = factor};
    OK(yoke_mul_scalar(p, &by, &scaled));
    OK(yoke_sum(scaled, NULL, 0, 0, YOKE_NONE, &loss));
    const yoke_status status = yoke_backward(loss, NULL, 0);
    yoke_tensor_release(scaled);
    yoke_tensor_release(loss);
    return status;
}

static float gradient(yoke_tensor *p)
{
    yoke_tensor *grad = NULL;
    float values[COUNT] = {0};
    OK(yoke_tensor_grad(p, &grad));
    if (!grad) return -1;
    OK(yoke_tensor_copy_to_host(grad, values, sizeof values));
    yoke_tensor_release(grad);
    return values[COUNT - 1];
}

/* ---- Ranks that are threads -------------------------------------------------------------------------------------- */

typedef struct Rank {
    yoke_group *group;
    int rank;
    void (*body)(struct Rank *);
} Rank;

static void *run_rank(void *rank)
{
    Rank *own = rank;
    own->body(own);
    return NULL;
}

static void on_ranks(void (*body)(Rank *))
{
    yoke_group *groups[RANKS];
    pthread_t threads[RANKS];
    Rank ranks[RANKS];
    OK(yoke_comm_init_threads(RANKS, 0, groups));
    for (int i = 0; i < RANKS; ++i) {
        ranks[i] = (Rank){groups[i], i, body};
        CHECK(pthread_create(&threads[i], NULL, run_rank, &ranks[i]) == 0);
    }
    for (int i = 0; i < RANKS; ++i) pthread_join(threads[i], NULL);
    for (int i = 0; i < RANKS; ++i) yoke_group_release(groups[i]);
}

static yoke_reducer *reducer_of(yoke_group *group, yoke_tensor *p,
                                const yoke_reducer_options *options)
{
    static const char *const names[] = {"p"};
    yoke_reducer *made = NULL;
    OK(yoke_reducer_create(group, &p, names, 1, NULL, NULL, 0, options, &made));
    return made;
}

static void reduce(Rank *own)
{
    yoke_tensor *p = parameter(COUNT);
    yoke_reducer *reducer = reducer_of(own->group, p, NULL);
    OK(go_back(p, own->rank));
    CHECK(gradient(p) == 1);
    CHECK(yoke_reducer_get_sync(reducer) == 1);
    OK(yoke_reducer_set_sync(reducer, 0));
    OK(go_back(p, own->rank));
    CHECK(gradient(p) == 1 + (float)own->rank);
    OK(yoke_reducer_set_sync(reducer, 1));
    OK(yoke_tensor_set_grad(p, NULL));
    OK(yoke_reducer_set_weight(reducer, own->rank == 2 ? 2 : 1));
    OK(go_back(p, own->rank));
    CHECK(gradient(p) == 1.25F);
    OK(yoke_reducer_check(reducer, NULL));
    yoke_reducer_release(reducer);
    OK(yoke_tensor_set_grad(p, NULL));
    OK(go_back(p, own->rank));
    CHECK(gradient(p) == (float)own->rank);
    yoke_tensor_release(p);
}

/* Ties outputs: rank 0 uses the parameter, the others pass on their inputs. */
static void tie(Rank *own)
{
    yoke_tensor *p = parameter(COUNT), *given = parameter(COUNT), *tied[2] = {NULL, NULL};
    yoke_reducer *reducer = reducer_of(own->group, p, NULL);
    yoke_tensor *outputs[] = {own->rank ? given : p, given};
    FAILS(yoke_reducer_tie(reducer, 0, outputs, 1, NULL), YOKE_E_VALUE, "'outs'");
    OK(yoke_reducer_tie(reducer, 0, outputs, 2, tied));
    CHECK(tied[0] && tied[1] && yoke_tensor_data(tied[1]) == yoke_tensor_data(given));
    OK(go_back(tied[0], 2));
    CHECK(gradient(p) == 2.F / 3);
    yoke_tensor_release(tied[0]);
    yoke_tensor_release(tied[1]);
    yoke_reducer_release(reducer);
    yoke_tensor_release(given);
    yoke_tensor_release(p);
}

/* Tensors made within a forward are tied, even if other forwards have begun since; earlier tensors are not. */
static void tie_made(Rank *own)
{
    yoke_tensor *p = parameter(COUNT), *made = NULL, *tied = NULL;
    yoke_reducer *reducer = reducer_of(own->group, p, NULL);
    uint64_t outer = 0, inner = 0;
    OK(yoke_reducer_check(reducer, &outer));
    OK(yoke_mul(p, p, &made));
    OK(yoke_reducer_check(reducer, &inner));
    OK(yoke_reducer_tie(reducer, inner, &made, 1, &tied));
    CHECK(tied != NULL);
    yoke_tensor_release(tied);
    OK(yoke_reducer_tie(reducer, outer, &made, 1, &tied));
    CHECK(tied == NULL);
    yoke_tensor_release(made);
    yoke_reducer_release(reducer);
    yoke_tensor_release(p);
}

static void a_rank_that_used_no_parameter_takes_part(void)
{
    on_ranks(tie);
    on_ranks(tie_made);
    FAILS(yoke_reducer_tie(NULL, 0, NULL, 0, NULL), YOKE_E_VALUE, "'reducer'");
}

static void ranks_share_the_mean_of_their_gradients(void)
{
    on_ranks(reduce);
}

static void join(Rank *own)
{
    FAILS(yoke_group_join_begin(own->group), YOKE_E_STATE, "has no DistributedDataParallel");
    yoke_tensor *p = parameter(COUNT);
    yoke_reducer *reducer = reducer_of(own->group, p, NULL);
    FAILS(yoke_group_join_end(own->group, NULL, NULL), YOKE_E_STATE, "not in a join");
    OK(yoke_group_join_begin(own->group));
    FAILS(yoke_group_join_end(own->group, NULL, NULL), YOKE_E_STATE, "out of data");
    OK(yoke_group_join_begin(own->group));
    for (int step = 0; step <= own->rank; ++step) {
        OK(yoke_tensor_set_grad(p, NULL));
        OK(go_back(p, own->rank));
        CHECK(gradient(p) == (2 + (float)step) / 2);
    }
    OK(yoke_group_join_end(own->group, NULL, NULL));
    yoke_reducer_release(reducer);
    yoke_tensor_release(p);
}

static void ranks_without_data_answer_the_others(void)
{
    on_ranks(join);
    FAILS(yoke_group_join_begin(NULL), YOKE_E_VALUE, "'group'");
    FAILS(yoke_group_join_end(NULL, NULL, NULL), YOKE_E_VALUE, "'group'");
}

/* Rank 2 is a step ahead of rank 0, and rank 1 is lost. */
static void regroup(Rank *own)
{
    yoke_tensor *p = parameter(COUNT);
    yoke_reducer *reducer = reducer_of(own->group, p, NULL);
    OK(go_back(p, own->rank));
    if (own->rank == 2) {
        OK(yoke_tensor_set_requires_grad(p, 0));
        OK(yoke_fill_(p, &(yoke_scalar){.kind = YOKE_ARG_FLOAT, .v.f = 7}));
        OK(yoke_tensor_set_requires_grad(p, 1));
        OK(yoke_reducer_check(reducer, NULL));
    }
    yoke_group *smaller = NULL;
    OK(yoke_group_split(own->group, own->rank == 1 ? -1 : 0, 0, &smaller));
    if (smaller) {
        yoke_state *mine = NULL, *told = NULL;
        int64_t rank = 0;
        float values[COUNT] = {0};
        OK(yoke_state_create(&mine));
        OK(yoke_state_set_int(mine, "rank", own->rank));
        FAILS(yoke_reducer_regroup(reducer, smaller, mine, NULL), YOKE_E_VALUE, "'mine'");
        told = mine;
        FAILS(yoke_reducer_regroup(reducer, NULL, mine, &told), YOKE_E_VALUE, "'group'");
        CHECK(told == NULL);
        FAILS(yoke_reducer_regroup(NULL, smaller, mine, &told), YOKE_E_VALUE, "'reducer'");
        OK(yoke_reducer_regroup(reducer, smaller, mine, &told));
        OK(yoke_state_get_int(told, "rank", &rank));
        CHECK(rank == 2);
        CHECK(gradient(p) == -1);
        OK(yoke_tensor_copy_to_host(p, values, sizeof values));
        CHECK(values[0] == 7);
        OK(go_back(p, own->rank));
        CHECK(gradient(p) == 1); /* the mean of 0 and 2 */
        yoke_state_release(mine);
        yoke_state_release(told);
        mine = told;
        OK(yoke_reducer_regroup(reducer, smaller, NULL, &mine));
        CHECK(mine == NULL);
        OK(yoke_reducer_regroup(reducer, smaller, NULL, NULL));
        yoke_group_release(smaller);
    }
    yoke_reducer_release(reducer);
    yoke_tensor_release(p);
}

static void those_that_live_go_on_from_the_one_that_is_furthest(void)
{
    on_ranks(regroup);
}

/* ---- Hooks ------------------------------------------------------------------------------------------------------- */

typedef struct Counts {
    int ran, dropped;
} Counts;

static yoke_status sum_up(void *user, yoke_tensor *bucket, int32_t index, int32_t is_last,
                          yoke_group *group, yoke_work **work)
{
    CHECK(index == 0 && is_last == 1);
    ++((Counts *)user)->ran;
    return yoke_group_all_reduce(group, bucket, YOKE_REDUCE_SUM, work);
}

static yoke_status give_up(void *user, yoke_tensor *bucket, int32_t index, int32_t is_last,
                           yoke_group *group, yoke_work **work)
{
    (void)user, (void)bucket, (void)index, (void)is_last, (void)group, (void)work;
    return YOKE_E_VALUE;
}

static const char *why(void *user)
{
    (void)user;
    return "it does not like this bucket";
}

static void drop(void *user)
{
    ++((Counts *)user)->dropped;
}

static void hook(Rank *own)
{
    Counts counts = {0, 0};
    yoke_tensor *p = parameter(COUNT);
    const yoke_bucket_hook sums = {sizeof sums, 0, &counts, sum_up, NULL, drop};
    const yoke_reducer_options options = {.struct_size = sizeof options, .hook = &sums};
    yoke_reducer *reducer = reducer_of(own->group, p, &options);
    OK(go_back(p, own->rank));
    CHECK(gradient(p) == 3);
    CHECK(counts.ran == 1 && counts.dropped == 0);
    yoke_reducer_release(reducer);
    CHECK(counts.dropped == 1);
    OK(yoke_tensor_set_grad(p, NULL));

    const yoke_bucket_hook fails = {sizeof fails, 0, NULL, give_up, why, NULL};
    const yoke_reducer_options failing = {.struct_size = sizeof failing, .hook = &fails};
    reducer = reducer_of(own->group, p, &failing);
    OK(yoke_group_monitored_barrier(own->group, 30)); /* each rank has a reducer before any fails */
    CHECK(go_back(p, 1) != YOKE_OK);
    CHECK(strstr(yoke_last_error()->message, "it does not like this bucket") != NULL);
    FAILS(yoke_reducer_check(reducer, NULL), YOKE_E_CANCELLED, "its backward failed");
    yoke_reducer_release(reducer);
    OK(go_back(p, 2)); /* affects this rank alone */
    yoke_tensor_release(p);
}

static void a_hook_does_what_it_likes_with_a_bucket(void)
{
    on_ranks(hook);
}

/* ---- A state ----------------------------------------------------------------------------------------------------- */

static void compress(Rank *own)
{
    yoke_tensor *p = parameter(COUNT);
    const yoke_reducer_options options = {.struct_size = sizeof options,
                                          .compression = "powersgd:rank=1,start=2"};
    yoke_reducer *reducer = reducer_of(own->group, p, &options);
    for (int step = 0; step < 3; ++step) OK(go_back(p, own->rank));
    yoke_state *state = NULL;
    int64_t steps = 0;
    OK(yoke_reducer_state(reducer, &state));
    OK(yoke_state_get_int(state, "steps", &steps));
    CHECK(steps == 3);
    OK(yoke_reducer_load_state(reducer, state));
    OK(yoke_state_set_int(state, "steps", -1));
    FAILS(yoke_reducer_load_state(reducer, state), YOKE_E_VALUE, "comm_state");
    yoke_state_release(state);
    yoke_reducer_release(reducer);
    yoke_tensor_release(p);
}

static void a_compression_has_a_state(void)
{
    on_ranks(compress);
}

static void what_cannot_be_reduced_is_refused(void)
{
    yoke_group *group = NULL;
    OK(yoke_comm_init_threads(1, 0, &group));
    yoke_tensor *p = parameter(COUNT), *plain = NULL;
    const int64_t count = COUNT;
    OK(yoke_ones(&count, 1, YOKE_F32, NULL, &plain));
    yoke_tensor *twice[] = {p, p};
    const char *const names[] = {"one", "two"};
    yoke_reducer *out = NULL;
    FAILS(yoke_reducer_create(group, twice, names, 2, NULL, NULL, 0, NULL, &out), YOKE_E_VALUE,
          "'one' and 'two' are the same tensor");
    FAILS(yoke_reducer_create(group, &plain, names, 1, NULL, NULL, 0, NULL, &out), YOKE_E_VALUE,
          "no parameter that requires a gradient");
    FAILS(yoke_reducer_create(group, NULL, NULL, 0, NULL, NULL, 0, NULL, &out), YOKE_E_VALUE,
          "no parameter");
    yoke_reducer_options options = {.struct_size = sizeof options, .bucket_mb = -1};
    FAILS(yoke_reducer_create(group, &p, names, 1, NULL, NULL, 0, &options, &out), YOKE_E_VALUE,
          "'bucket_mb' is -1");
    options = (yoke_reducer_options){.struct_size = sizeof options, .compression = "fp8"};
    FAILS(yoke_reducer_create(group, &p, names, 1, NULL, NULL, 0, &options, &out), YOKE_E_VALUE,
          "fp8");
    yoke_tensor_release(p);
    yoke_tensor_release(plain);
    yoke_group_release(group);
}

int main(void)
{
    RUN(ranks_share_the_mean_of_their_gradients);
    RUN(a_rank_that_used_no_parameter_takes_part);
    RUN(ranks_without_data_answer_the_others);
    RUN(those_that_live_go_on_from_the_one_that_is_furthest);
    RUN(a_hook_does_what_it_likes_with_a_bucket);
    RUN(a_compression_has_a_state);
    RUN(what_cannot_be_reduced_is_refused);
    return report();
}
