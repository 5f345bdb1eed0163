/* Groups that meet in a store of the host's, and the variables of other libraries, from C. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Store for two ranks: a rank reads the other rank's values. */
typedef struct Pipe {
    int read, write;
    yoke_status status; /* if not YOKE_OK, status of every call */
    int64_t bytes;      /* if not 0, size of the value */
    int is_mute;
} Pipe;

static yoke_status set(void *user, const char *key, const void *data, int64_t bytes)
{
    const Pipe *store = user;
    CHECK(strncmp(key, "yoke/", 5) == 0);
    if (store->status) return store->status;
    return write(store->write, data, (size_t)bytes) == bytes ? YOKE_OK : YOKE_E_IO;
}

static yoke_status get(void *user, const char *key, double timeout, void *data, int64_t capacity,
                       int64_t *bytes)
{
    const Pipe *store = user;
    struct pollfd readable = {store->read, POLLIN, 0};
    CHECK(strncmp(key, "yoke/", 5) == 0 && timeout > 0);
    *bytes = store->bytes;
    if (store->status || store->bytes) return store->status;
    if (poll(&readable, 1, (int)(timeout * 1000)) != 1) return YOKE_E_TIMEOUT;
    *bytes = read(store->read, data, (size_t)capacity);
    return *bytes > 0 ? YOKE_OK : YOKE_E_IO;
}

static const char *problem(void *user)
{
    return ((const Pipe *)user)->is_mute ? NULL : "the store is closed on Sundays";
}

static yoke_status init(Pipe *pipe, int32_t rank, double seconds, yoke_group **group)
{
    const yoke_store_functions store = {
        .struct_size = sizeof store, .user = pipe, .set = set, .get = get, .problem = problem};
    const yoke_comm_options options = {.struct_size = sizeof options,
                                       .has_rank = 1,
                                       .rank = rank,
                                       .world_size = 2,
                                       .init_timeout = seconds,
                                       .store = &store};
    return yoke_comm_init(&options, group);
}

static double sum_as(Pipe *pipe, int32_t rank)
{
    yoke_group *group = NULL;
    yoke_tensor *t = NULL;
    const int64_t one = 1;
    double sum = 0;
    OK(init(pipe, rank, 60, &group));
    OK(yoke_ones(&one, 1, YOKE_F32, NULL, &t));
    OK(yoke_group_all_reduce(group, t, YOKE_REDUCE_SUM, NULL));
    OK(yoke_tensor_item_f64(t, &sum));
    OK(yoke_group_barrier(group, NULL));
    yoke_tensor_release(t);
    yoke_group_release(group);
    return sum;
}

static void two_processes_meet_in_a_pipe(void)
{
    int ends[2];
    CHECK(pipe(ends) == 0);
    Pipe store = {.read = ends[0], .write = ends[1]};
    const pid_t child = fork();
    if (child == 0) _exit(sum_as(&store, 1) == 2 && !checks_failed ? 0 : 1);
    CHECK(sum_as(&store, 0) == 2);
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    close(ends[0]);
    close(ends[1]);
}

static void a_store_that_fails_is_the_error_of_init(void)
{
    yoke_group *group = NULL;
    Pipe closed = {.status = YOKE_E_IO}, late = {.status = YOKE_E_TIMEOUT},
         wide = {.bytes = 1 << 20};
    FAILS(init(&closed, 0, 9, &group), YOKE_E_COMM, "') failed: the store is closed on Sundays");
    FAILS(init(&closed, 1, 9, &group), YOKE_E_COMM, "the store's get('yoke/");
    FAILS(init(&wide, 1, 9, &group), YOKE_E_COMM, "a value of 1048576 bytes");
    FAILS(init(&late, 1, 9, &group), YOKE_E_TIMEOUT, "no address of rank 0");
    closed.is_mute = 1;
    FAILS(init(&closed, 0, 9, &group), YOKE_E_COMM, "failed: YOKE_E_IO");
    CHECK(group == NULL);
}

static void a_store_without_a_function_is_refused(void)
{
    yoke_group *group = NULL;
    const yoke_store_functions lame = {.struct_size = sizeof lame, .set = set};
    const yoke_comm_options options = {.struct_size = sizeof options, .store = &lame};
    FAILS(yoke_comm_init(&options, &group), YOKE_E_VALUE, "'options->store' has no get");
}

static void variables_are_told_by_their_names(void)
{
    yoke_comm_variable told = {.struct_size = sizeof told};
    setenv("NCCL_IB_TIMEOUT", "22", 1);
    const int32_t count = yoke_comm_variable_count();
    CHECK(count >= 1);
    int32_t found = 0;
    for (int32_t i = 0; i < count; ++i) {
        OK(yoke_comm_variable_get(i, &told));
        if (strcmp(told.name, "NCCL_IB_TIMEOUT") != 0) continue;
        ++found;
        CHECK(told.effect == YOKE_VARIABLE_PASSED && !strcmp(told.word, "passed"));
        CHECK(!strcmp(told.value, "22") && !*told.setting && *told.text);
    }
    CHECK(found == 1);
    FAILS(yoke_comm_variable_get(count, &told), YOKE_E_INDEX, "'index' is");
    FAILS(yoke_comm_variable_get(-1, &told), YOKE_E_INDEX, "'index' is -1");
    FAILS(yoke_comm_variable_get(0, NULL), YOKE_E_VALUE, "'variable' is NULL");
}

int main(void)
{
    RUN(two_processes_meet_in_a_pipe);
    RUN(a_store_that_fails_is_the_error_of_init);
    RUN(a_store_without_a_function_is_refused);
    RUN(variables_are_told_by_their_names);
    return report();
}
