/* Groups from C; and a rank of a job whose other ranks are in other languages: comm rank. */
#include "check.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static yoke_group *alone(void)
{
    yoke_group *group = NULL;
    OK(yoke_comm_init_threads(1, 0, &group));
    return group;
}

static yoke_tensor *ones(int64_t count)
{
    yoke_tensor *made = NULL;
    OK(yoke_ones(&count, 1, YOKE_F32, NULL, &made));
    return made;
}

/* A size that ends within a pointer would give half of the pointer. */
static void options_of_any_size_are_read_or_refused(void)
{
    for (uint32_t size = 0; size < sizeof(yoke_comm_options); ++size) {
        yoke_comm_options options = {.struct_size = size,
                                     .has_rank = 1,
                                     .world_size = 1,
                                     .backend = "no engine",
                                     .init_method = "no method",
                                     .init_timeout = 1};
        yoke_group *group = NULL;
        (void)yoke_comm_init(&options, &group);
        yoke_group_release(group);
    }
}

static void a_group_of_one_runs_and_shrinks(void)
{
    yoke_group *group = alone(), *smaller = NULL;
    const int64_t shape[] = {2, 3};
    yoke_tensor *t = NULL;
    OK(yoke_group_empty(group, shape, 2, YOKE_F32, &t));
    OK(yoke_group_all_reduce(group, t, YOKE_REDUCE_AVG, NULL));
    FAILS(yoke_group_shrink(group, 0, &smaller), YOKE_E_VALUE, "'timeout' is 0");
    OK(yoke_group_shrink(group, 1, &smaller));
    CHECK(yoke_group_size(smaller) == 1);
    FAILS(yoke_group_barrier(group, NULL), YOKE_E_CANCELLED, "shrink()");
    OK(yoke_group_all_reduce(smaller, t, YOKE_REDUCE_SUM, NULL));
    yoke_group_release(group);
    yoke_group_release(smaller);
    yoke_tensor_release(t);
}

static void calls_are_kept_and_issued_together(void)
{
    yoke_group *group = alone();
    yoke_tensor *t = ones(4);
    yoke_work *work = NULL;
    FAILS(yoke_comm_coalesce_end(), YOKE_E_STATE, "begin a coalesce first");
    FAILS(yoke_comm_coalesce_drop(), YOKE_E_STATE, "begin a coalesce first");
    OK(yoke_comm_coalesce_begin());
    OK(yoke_group_all_reduce(group, t, YOKE_REDUCE_SUM, &work));
    OK(yoke_group_barrier(group, NULL));
    FAILS(yoke_work_wait(work, -1), YOKE_E_STATE, "end of its coalesce");
    OK(yoke_comm_coalesce_end());
    OK(yoke_work_wait(work, -1));
    OK(yoke_work_follow(work, 20));
    FAILS(yoke_work_follow(NULL, -1), YOKE_E_VALUE, "'work' is NULL");
    yoke_work_release(work);
    OK(yoke_comm_coalesce_begin());
    OK(yoke_group_all_reduce(group, t, YOKE_REDUCE_SUM, &work));
    OK(yoke_comm_coalesce_drop());
    FAILS(yoke_work_wait(work, -1), YOKE_E_CANCELLED, "dropped");
    yoke_work_release(work);
    yoke_tensor_release(t);
    yoke_group_release(group);
}

/* The outer pair stays open after the drop, so a call there is not done at once, and is dropped, too. */
static void an_inner_pair_that_is_dropped_takes_the_outer_one_along(void)
{
    yoke_group *group = alone();
    yoke_tensor *t = ones(4);
    yoke_work *works[3] = {NULL, NULL, NULL};
    OK(yoke_comm_coalesce_begin());
    OK(yoke_group_all_reduce(group, t, YOKE_REDUCE_SUM, &works[0]));
    OK(yoke_comm_coalesce_begin());
    OK(yoke_group_all_reduce(group, t, YOKE_REDUCE_SUM, &works[1]));
    OK(yoke_comm_coalesce_drop());
    OK(yoke_group_all_reduce(group, t, YOKE_REDUCE_SUM, &works[2]));
    FAILS(yoke_work_wait(works[2], -1), YOKE_E_STATE, "end of its coalesce");
    FAILS(yoke_comm_coalesce_end(), YOKE_E_STATE, "an error left an inner scope");
    for (int i = 0; i < 3; ++i) {
        FAILS(yoke_work_wait(works[i], -1), YOKE_E_CANCELLED, "dropped");
        yoke_work_release(works[i]);
    }
    FAILS(yoke_comm_coalesce_end(), YOKE_E_STATE, "begin a coalesce first");
    OK(yoke_group_all_reduce(group, t, YOKE_REDUCE_SUM, NULL));
    OK(yoke_comm_coalesce_begin());
    OK(yoke_comm_coalesce_begin());
    OK(yoke_comm_coalesce_drop());
    OK(yoke_comm_coalesce_drop());
    OK(yoke_comm_coalesce_begin());
    OK(yoke_comm_coalesce_end());
    yoke_tensor_release(t);
    yoke_group_release(group);
}

/* ---- Lines of scripts, and dumps --------------------------------------------------------------------------------- */

enum { kHosts = 100 };
static int32_t dropped[kHosts], over;

static int32_t tell(void *user, const char **file, int32_t *line, const char **function)
{
    const int32_t *const drops = user;
    CHECK(__atomic_load_n(drops, __ATOMIC_ACQUIRE) == 0);
    *file = "host.c";
    *line = (int32_t)(drops - dropped) + 1;
    *function = "f";
    return 1;
}

static void drop(void *user)
{
    __atomic_add_fetch((int32_t *)user, 1, __ATOMIC_ACQ_REL);
}

static void *call_again_and_again(void *group)
{
    while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE)) OK(yoke_group_barrier(group, NULL));
    return NULL;
}

static void providers_are_replaced_amid_calls_and_each_dropped_once(void)
{
    pthread_t threads[2];
    yoke_group *groups[2] = {alone(), alone()};
    for (int i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, call_again_and_again, groups[i]);
    for (int i = 0; i < kHosts; ++i) OK(yoke_set_stack_provider(tell, &dropped[i], drop));
    OK(yoke_set_stack_provider(NULL, NULL, NULL));
    __atomic_store_n(&over, 1, __ATOMIC_RELEASE);
    for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
    for (int i = 0; i < kHosts; ++i) CHECK(dropped[i] == 1);
    for (int i = 0; i < 2; ++i) yoke_group_release(groups[i]);
}

static void a_dump_has_the_lines_and_is_reported(void)
{
    char path[64], text[4096] = "";
    yoke_group *group = alone();
    yoke_state *report = NULL;
    int32_t hangs = 1;
    snprintf(path, sizeof path, "/tmp/yoke_comm_test.%d.json", (int)getpid());
    const char *const paths[] = {path};
    dropped[6] = 0;
    OK(yoke_set_stack_provider(tell, &dropped[6], NULL));
    OK(yoke_group_barrier(group, NULL));
    OK(yoke_set_stack_provider(NULL, NULL, NULL));
    OK(yoke_group_barrier(group, NULL));
    OK(yoke_group_dump(group, path));
    FILE *file = fopen(path, "rb");
    CHECK(file && fread(text, 1, sizeof text - 1, file) > 0);
    if (file) fclose(file);
    CHECK(strstr(text, "\"file\":\"host.c\",\"line\":7,\"function\":\"f\"") != NULL);
    CHECK(strstr(text, "\"file\":null,\"line\":null,\"function\":null") != NULL);
    OK(yoke_comm_hang(paths, 1, &report));
    OK(yoke_state_get_bool(report, "hangs", &hangs));
    CHECK(hangs == 0);
    yoke_state_release(report);
    remove(path);
    FAILS(yoke_comm_hang(paths, 1, &report), YOKE_E_IO, path);
    FAILS(yoke_comm_hang(NULL, 1, &report), YOKE_E_VALUE, "paths");
    FAILS(yoke_comm_hang(paths, 0, &report), YOKE_E_VALUE, "paths");
    FAILS(yoke_group_dump(group, NULL), YOKE_E_VALUE, "path");
    yoke_group_release(group);
}

/* Runs the calls that tests/python/test_comm.py expects from the ranks of all languages. */
static int be_a_rank(void)
{
    yoke_group *group = NULL;
    yoke_tensor *t = NULL, *more = NULL;
    yoke_work *work = NULL;
    const yoke_scalar hundred = {.kind = YOKE_ARG_FLOAT, .v.f = 100};
    const int64_t four = 4;
    double first = 0;
    if (yoke_comm_init(NULL, &group) != YOKE_OK) {
        printf("%s\n", yoke_last_error()->message);
        return 1;
    }
    OK(yoke_full(&four, 1, &hundred, YOKE_F32, NULL, &t));
    OK(yoke_group_all_reduce(group, t, YOKE_REDUCE_SUM, NULL));
    OK(yoke_group_broadcast(group, t, 0, &work));
    OK(yoke_work_wait(work, -1));
    OK(yoke_mean(t, NULL, 0, 0, YOKE_NONE, &more));
    OK(yoke_tensor_item_f64(more, &first));
    printf("%g %d %d\n", first, yoke_group_rank(group), yoke_group_size(group));
    OK(yoke_group_monitored_barrier(group, 60));
    yoke_tensor *five = ones(5);
    const yoke_status status = yoke_group_all_reduce(group, five, YOKE_REDUCE_MAX, NULL);
    printf("%s\n", status == YOKE_E_COMM ? yoke_last_error()->message : "no such error");
    yoke_tensor_release(five);
    yoke_tensor_release(more);
    yoke_tensor_release(t);
    yoke_work_release(work);
    yoke_group_release(group);
    return checks_failed != 0;
}

static int32_t hear(void *user)
{
    (void)user;
    return 1;
}

static void a_host_ends_a_wait(void)
{
    yoke_comm_options options = {.struct_size = sizeof options,
                                 .has_rank = 1,
                                 .rank = 1,
                                 .world_size = 2,
                                 .init_method = "tcp://127.0.0.1:1"};
    yoke_group *group = NULL;
    dropped[7] = 0;
    OK(yoke_set_interrupt_hook(hear, &dropped[7], drop));
    CHECK(yoke_comm_init(&options, &group) == YOKE_E_CANCELLED && !group);
    CHECK(strstr(yoke_last_error()->message, "interrupted"));
    CHECK(dropped[7] == 0);
    OK(yoke_set_interrupt_hook(NULL, NULL, NULL));
    CHECK(dropped[7] == 1);
}

int main(int count, char **words)
{
    if (count > 1 && !strcmp(words[1], "rank")) return be_a_rank();
    RUN(options_of_any_size_are_read_or_refused);
    RUN(a_group_of_one_runs_and_shrinks);
    RUN(calls_are_kept_and_issued_together);
    RUN(an_inner_pair_that_is_dropped_takes_the_outer_one_along);
    RUN(providers_are_replaced_amid_calls_and_each_dropped_once);
    RUN(a_dump_has_the_lines_and_is_reported);
    RUN(a_host_ends_a_wait);
    return report();
}
