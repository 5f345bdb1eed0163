/* Worker of comm.py: all_reduce of a group of two processes, by the public C API.
 *
 * HOW is in_place (tensors of yoke_group_empty) or plain (those of yoke_zeros): staged in shared memory, or over TCP
 * where the environment has YOKE_COMM_SHM=0. */
#include "comm_pair.h"
#include "yoke/yoke.h"

static void check(yoke_status status)
{
    if (!status) return;
    fprintf(stderr, "%s\n", yoke_last_error()->message);
    exit(1);
}

/* The tensors of all cases so far, of one group. */
typedef struct tensors {
    yoke_group *group;
    int count;
    struct {
        char how[16];
        unsigned long long bytes;
        yoke_tensor *tensor;
    } of[16];
} tensors;

static yoke_tensor *find(tensors *all, const char *how, unsigned long long bytes)
{
    int i = 0;
    while (i < all->count && (strcmp(all->of[i].how, how) != 0 || all->of[i].bytes != bytes)) ++i;
    if (i < all->count) return all->of[i].tensor;
    pair_check(i < 16, "keeping more than 16 cases");
    const int64_t shape = (int64_t)(bytes / sizeof(float));
    const yoke_scalar zero = {.kind = YOKE_ARG_FLOAT, .v.f = 0};
    yoke_tensor **made = &all->of[all->count++].tensor;
    strcpy(all->of[i].how, how);
    all->of[i].bytes = bytes;
    if (strcmp(how, "in_place") == 0) {
        check(yoke_group_empty(all->group, &shape, 1, YOKE_F32, made));
        check(yoke_fill_(*made, &zero));
    } else {
        check(yoke_zeros(&shape, 1, YOKE_F32, NULL, made));
    }
    return *made;
}

static void run(void *user, const char *how, unsigned long long bytes, long count)
{
    tensors *all = user;
    yoke_tensor *t = find(all, how, bytes);
    for (; count > 0; --count) check(yoke_group_all_reduce(all->group, t, YOKE_REDUCE_SUM, NULL));
}

int main(void)
{
    char folder[] = "/tmp/bench-comm-XXXXXX", url[64], about[512];
    pair_check(mkdtemp(folder) != NULL, "mkdtemp");
    snprintf(url, sizeof url, "file://%s/met", folder);
    const pair_side side = pair_fork();
    yoke_comm_options options = {.struct_size = sizeof options,
                                 .has_rank = 1,
                                 .rank = side.rank,
                                 .world_size = 2,
                                 .init_method = url,
                                 .timeout = 60,
                                 .init_timeout = 60};
    tensors all = {0};
    check(yoke_set_num_threads(1));
    check(yoke_comm_init(&options, &all.group));
    snprintf(about, sizeof about, "Yoke %s: %s", yoke_version(), yoke_group_describe(all.group));
    pair_serve(&side, about, run, &all);
    for (int i = 0; i < all.count; ++i) yoke_tensor_release(all.of[i].tensor);
    yoke_group_release(all.group);
    yoke_comm_finalize();
    if (side.rank == 0) {
        unlink(url + strlen("file://"));
        rmdir(folder);
    }
    return 0;
}
