/* Rank of faults.py: faults_yoke RANK SIZE URL TIMEOUT INIT_TIMEOUT DOING.
 *
 * DOING is init, all_reduce (25 MiB, again and again), barrier, monitored (a monitored barrier of TIMEOUT seconds in
 * a group of 600), idle (a barrier on command) or away (never joins). It prints "ready" when the group works; then,
 * for the failed call, "STATUS BEGAN ENDED MESSAGE", in seconds of CLOCK_MONOTONIC; and, on the command "shrink", the
 * same for the shrink, and the size of the new group. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "yoke/yoke.h"

enum { kElements = 25 << 18, kWarm = 3 };

typedef struct rank {
    yoke_group *group;
    yoke_tensor *tensor;
    double timeout;
    const char *doing;
} rank;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void check(yoke_status status)
{
    if (!status) return;
    fprintf(stderr, "%s\n", yoke_last_error()->message);
    exit(1);
}

static void tell(yoke_status status, double began)
{
    const double ended = now();
    const char *message = status ? yoke_last_error()->message : "";
    printf("%s %.9f %.9f %.*s\n", yoke_status_name(status), began, ended,
           (int)strcspn(message, "\n"), message);
    fflush(stdout);
}

/* Waits for a line of faults.py and returns whether the line is this word. */
static int is_told(const char *word)
{
    char line[32] = "";
    return fgets(line, sizeof line, stdin) && strncmp(line, word, strlen(word)) == 0;
}

static yoke_status call(const rank *self)
{
    if (strcmp(self->doing, "all_reduce") == 0)
        return yoke_group_all_reduce(self->group, self->tensor, YOKE_REDUCE_SUM, NULL);
    if (strcmp(self->doing, "monitored") == 0)
        return yoke_group_monitored_barrier(self->group, self->timeout);
    return yoke_group_barrier(self->group, NULL);
}

/* Makes the call that fails; earlier calls succeed. */
static void fail(const rank *self)
{
    yoke_status status;
    double began;
    if (strcmp(self->doing, "away") == 0) {
        is_told("end");
        return;
    }
    if (strcmp(self->doing, "idle") == 0 && !is_told("go")) return;
    do {
        began = now();
        status = call(self);
    } while (!status && strcmp(self->doing, "idle") != 0);
    tell(status, began);
}

static void shrink(const rank *self)
{
    yoke_group *left;
    const double began = now();
    const yoke_status status = yoke_group_shrink(self->group, 10, &left);
    tell(status, began);
    if (status) return;
    check(yoke_group_all_reduce(left, self->tensor, YOKE_REDUCE_SUM, NULL));
    printf("%d\n", yoke_group_size(left));
    yoke_group_release(left);
}

int main(int argc, char **argv)
{
    if (argc != 7) return 2;
    rank self = {NULL, NULL, atof(argv[4]), argv[6]};
    yoke_comm_options options = {.struct_size = sizeof options,
                                 .has_rank = 1,
                                 .rank = atoi(argv[1]),
                                 .world_size = atoi(argv[2]),
                                 .init_method = argv[3],
                                 .init_timeout = atof(argv[5])};
    options.timeout = strcmp(self.doing, "monitored") == 0 ? 600 : self.timeout;
    const int64_t shape = kElements;
    check(yoke_set_num_threads(1));
    check(yoke_zeros(&shape, 1, YOKE_F32, NULL, &self.tensor));
    const double began = now();
    const yoke_status status = yoke_comm_init(&options, &self.group);
    if (status) {
        tell(status, began);
        return 0;
    }
    for (int i = 0; i < kWarm; ++i)
        check(yoke_group_all_reduce(self.group, self.tensor, YOKE_REDUCE_SUM, NULL));
    printf("ready\n");
    fflush(stdout);
    fail(&self);
    if (is_told("shrink")) shrink(&self);
    fflush(stdout);
    _exit(0); /* rank 0 would wait for stopped ranks */
}
