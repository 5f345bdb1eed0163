/* A rank under orders: comm_rank serve. Without arguments the program tests itself, in a group of one rank.
 *
 * RANK and WORLD_SIZE give the rank. Standard input has commands, a line each; each answer is a line
 * "STATUS SECONDS MESSAGE", such as "comm 0.013 all_reduce: rank 1 (host a, process 17) died: …":
 *
 *   init URL TIMEOUT INIT_TIMEOUT     "env" for a URL: settings from the environment
 *   call OP COUNT DTYPE REDUCTION ROOT, async …, loop …: once, by a work, again and again until a failure
 *   ragged OP                         a call with tensors of wrong sizes
 *   monitored SECONDS, split COLOR, shrink SECONDS, abort REASON, leave, exit CODE
 *   hog                               the next command gets no further memory
 *   count                             answers "THREADS FDS KIB LIVE"
 *
 * A wrong value ends a call as "wrong". DTYPE "float32/2" is a tensor of every other element. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include <dirent.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

typedef struct call {
    char op[24], dtype[16], reduction[8];
    long long count;
    int root;
} call;

static yoke_group *group;
static int is_hogged; /* the command that runs gets no further memory */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

static long pages(int which)
{
    long all = 0, resident = 0;
    FILE *const file = fopen("/proc/self/statm", "r");
    if (file && fscanf(file, "%ld %ld", &all, &resident) != 2) all = 0;
    if (file) fclose(file);
    return which ? resident : all;
}

/* As much as it has, or as much as there is. */
static void limit_memory(int is_limited)
{
    struct rlimit limit;
    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = is_limited ? (rlim_t)pages(0) * (rlim_t)sysconf(_SC_PAGESIZE) : limit.rlim_max;
    setrlimit(RLIMIT_AS, &limit);
}

/* ---- Inputs and results of calls --------------------------------------------------------------------------------- */

/* Returns element i of a rank's input; each rank gives `count` elements in a part. */
static double given(const call *what, int rank, long long i)
{
    return rank + 1 + 10.0 * (double)(i / what->count);
}

static double reduced(const call *what, long long i, int size)
{
    double all = given(what, 0, i);
    for (int rank = 1; rank < size; ++rank) {
        const double one = given(what, rank, i);
        if (!strcmp(what->reduction, "prod"))
            all *= one;
        else if (!strcmp(what->reduction, "min"))
            all = one < all ? one : all;
        else if (!strcmp(what->reduction, "max"))
            all = one > all ? one : all;
        else
            all += one;
    }
    return strcmp(what->reduction, "avg") ? all : all / size;
}

/* Returns the right element i of the result; parts are counted by `count`. */
static double wanted(const call *what, int rank, int size, long long i)
{
    const int part = (int)(i / what->count);
    const long long own = rank * what->count;
    if (!strcmp(what->op, "all_reduce") || !strcmp(what->op, "reduce"))
        return reduced(what, i, size);
    if (!strcmp(what->op, "reduce_scatter")) return reduced(what, own, size);
    if (!strcmp(what->op, "all_gather") || !strcmp(what->op, "gather")) return given(what, part, 0);
    if (!strcmp(what->op, "scatter")) return given(what, what->root, own);
    if (!strcmp(what->op, "all_to_all")) return given(what, part, own);
    if (!strcmp(what->op, "ring")) return given(what, (rank + size - 1) % size, 0);
    return given(what, what->root, 0); /* broadcast and send */
}

static yoke_tensor *filled(const call *what, int parts, int rank)
{
    char name[16];
    snprintf(name, sizeof name, "%s", what->dtype);
    const int is_strided = strstr(name, "/2") != NULL;
    if (is_strided) *strchr(name, '/') = 0;
    const int64_t count = what->count * parts;
    double *const values = malloc((size_t)(count * (1 + is_strided)) * sizeof *values + 1);
    yoke_tensor *all = NULL, *made = NULL, *view = NULL;
    yoke_dtype dtype = YOKE_F32;
    if (!values) return NULL;
    for (int64_t i = 0; i < count * (1 + is_strided); ++i)
        values[i] = given(what, rank, i / (1 + is_strided));
    const int64_t shape[] = {count * (1 + is_strided)};
    yoke_device *cpu = NULL;
    OK(yoke_dtype_from_name(name, &dtype));
    OK(yoke_device_open("cpu", &cpu));
    OK(yoke_tensor_from_data(values, shape[0] * 8, shape, 1, YOKE_F64, cpu, &all));
    OK(yoke_cast(all, dtype, &made));
    if (is_strided && !yoke_slice(made, 0, NULL, NULL, 2, &view)) {
        yoke_tensor_release(made);
        made = view;
    }
    yoke_tensor_release(all);
    yoke_device_release(cpu);
    free(values);
    return made;
}

/* Tells whether all elements are right. */
static int is_right(const call *what, yoke_tensor *out, int rank, int size)
{
    const int64_t count = yoke_tensor_numel(out);
    double *const values = malloc((size_t)count * sizeof *values + 1);
    yoke_tensor *wide = NULL, *dense = NULL;
    int right = values && !yoke_cast(out, YOKE_F64, &wide) && !yoke_contiguous(wide, &dense) &&
                !yoke_tensor_copy_to_host(dense, values, count * 8);
    for (int64_t i = 0; right && i < count; ++i) right = values[i] == wanted(what, rank, size, i);
    yoke_tensor_release(dense);
    yoke_tensor_release(wide);
    free(values);
    return right;
}

/* ---- Calls ------------------------------------------------------------------------------------------------------- */

static int reduction_of(const char *name)
{
    static const char *const names[] = {"sum", "prod", "min", "max", "avg"};
    for (int i = 0; i < 5; ++i)
        if (!strcmp(name, names[i])) return i;
    return atoi(name);
}

/* Sends from the root to each other rank, or from all ranks to the next rank at once. */
static yoke_status pass_on(const call *what, yoke_tensor *in, yoke_tensor *out, int rank, int size)
{
    yoke_status status = YOKE_OK;
    if (!strcmp(what->op, "ring") && size > 1) {
        status = yoke_comm_coalesce_begin();
        if (!status) status = yoke_group_send(group, in, (rank + 1) % size, NULL);
        if (!status) status = yoke_group_recv(group, out, (rank + size - 1) % size, NULL);
        return status ? yoke_comm_coalesce_drop() : yoke_comm_coalesce_end();
    }
    if (rank != what->root) return yoke_group_recv(group, out, what->root, NULL);
    for (int to = 0; to < size && !status; ++to)
        if (to != rank) status = yoke_group_send(group, in, to, NULL);
    return status;
}

/* Gets the number of parts in a call's tensors, 0 for no tensor. */
static void parts_of(const call *what, int rank, int size, int *in, int *out)
{
    const char *op = what->op;
    const int is_root = rank == what->root;
    *in = *out = 1;
    if (!strcmp(op, "all_gather") || !strcmp(op, "all_to_all")) *out = size;
    if (!strcmp(op, "gather")) *out = is_root ? size : 0;
    if (!strcmp(op, "scatter")) *in = is_root ? size : 0;
    if (!strcmp(op, "reduce_scatter") || !strcmp(op, "all_to_all")) *in = size;
    if (!strcmp(op, "send") && is_root) *out = 0;
    if (!strcmp(op, "barrier")) *in = *out = 0;
}

static yoke_status make(const call *what, yoke_tensor *in, yoke_tensor *out, yoke_work **work)
{
    const char *op = what->op;
    const int how = reduction_of(what->reduction), root = what->root;
    if (!strcmp(op, "all_reduce")) return yoke_group_all_reduce(group, in, how, work);
    if (!strcmp(op, "reduce")) return yoke_group_reduce(group, in, root, how, work);
    if (!strcmp(op, "broadcast")) return yoke_group_broadcast(group, in, root, work);
    if (!strcmp(op, "all_gather")) return yoke_group_all_gather(group, out, in, work);
    if (!strcmp(op, "gather")) return yoke_group_gather(group, out, in, root, work);
    if (!strcmp(op, "scatter")) return yoke_group_scatter(group, out, in, root, work);
    if (!strcmp(op, "reduce_scatter")) return yoke_group_reduce_scatter(group, out, in, how, work);
    if (!strcmp(op, "all_to_all")) return yoke_group_all_to_all(group, out, in, work);
    if (!strcmp(op, "barrier")) return yoke_group_barrier(group, work);
    return pass_on(what, in, out, yoke_group_rank(group), yoke_group_size(group));
}

static yoke_status finish(yoke_status status, yoke_work *work)
{
    if (!status && work) status = yoke_work_wait(work, -1);
    yoke_work_release(work);
    return status;
}

/* Runs a call. `seconds` gets the call's time; `problem` is set only after a wrong result, not after a failure. */
static yoke_status run(const call *what, int is_async, const char **problem, double *seconds)
{
    const int rank = yoke_group_rank(group), size = yoke_group_size(group);
    int ins, outs;
    parts_of(what, rank, size, &ins, &outs);
    yoke_tensor *in = ins ? filled(what, ins, rank) : NULL,
                *out = outs ? filled(what, outs, 90) : NULL;
    yoke_work *work = NULL;
    const double began = now();
    limit_memory(is_hogged);
    yoke_status status = make(what, in, out, is_async ? &work : NULL);
    status = finish(status, work);
    limit_memory(0);
    *seconds = now() - began;
    const int is_in_place = !strcmp(what->op, "all_reduce") || !strcmp(what->op, "reduce") ||
                            !strcmp(what->op, "broadcast");
    yoke_tensor *const result = is_in_place ? in : out;
    const int counts = result && (strcmp(what->op, "reduce") || rank == what->root);
    if (!status && counts && !is_right(what, result, rank, size)) *problem = "wrong";
    yoke_tensor_release(in);
    yoke_tensor_release(out);
    return status;
}

/* ---- Commands ---------------------------------------------------------------------------------------------------- */

static void answer(const char *status, double seconds, const char *message)
{
    printf("%s %.6f %.*s\n", status, seconds, (int)strcspn(message, "\n"), message);
    fflush(stdout);
}

static void tell(yoke_status status, double seconds)
{
    answer(yoke_status_name(status), seconds, status ? yoke_last_error()->message : "");
}

static void do_calls(const char *words, int is_async, int is_again)
{
    call what = {"", "float32", "sum", 4, 0};
    const char *problem = NULL;
    double seconds = 0;
    yoke_status status;
    sscanf(words, "%23s %lld %15s %7s %d", what.op, &what.count, what.dtype, what.reduction,
           &what.root);
    do status = run(&what, is_async, &problem, &seconds);
    while (is_again && !status && !problem);
    if (problem)
        answer(problem, seconds, words);
    else
        tell(status, seconds);
}

static yoke_status call_ragged(const char *op)
{
    call what = {"", "float32", "sum", 7, 0};
    yoke_tensor *const odd = filled(&what, 1, 0);
    what.count = 2;
    yoke_tensor *const part = filled(&what, 1, 0);
    snprintf(what.op, sizeof what.op, "%s", op);
    const int is_gather = !strcmp(op, "all_gather"), is_part = !strcmp(op, "reduce_scatter");
    const yoke_status status = make(&what, is_gather ? part : odd, is_part ? part : odd, NULL);
    yoke_tensor_release(odd);
    yoke_tensor_release(part);
    return status;
}

static void replace(yoke_group *made)
{
    yoke_group_release(group);
    group = made;
}

static yoke_status join(const char *words)
{
    char url[256] = "env";
    yoke_group *made = NULL;
    yoke_comm_options options = {.struct_size = sizeof options, .timeout = 60, .init_timeout = 60};
    sscanf(words, "%255s %lf %lf", url, &options.timeout, &options.init_timeout);
    if (strcmp(url, "env")) options.init_method = url;
    limit_memory(is_hogged);
    const yoke_status status = yoke_comm_init(&options, &made);
    limit_memory(0);
    if (!status) replace(made);
    return status;
}

static long entries(const char *folder)
{
    DIR *const open = opendir(folder);
    long found = -3; /* ".", "..", and for the folder of descriptors its own entry */
    while (open && readdir(open)) ++found;
    if (open) closedir(open);
    return found;
}

static void count(void)
{
    printf("%ld %ld %ld %lld\n", entries("/proc/self/task") + 1, entries("/proc/self/fd"),
           pages(1) * sysconf(_SC_PAGESIZE) / 1024, (long long)yoke_live_tensor_count());
    fflush(stdout);
}

static yoke_status leave(void)
{
    yoke_group_release(group);
    group = NULL;
    return yoke_comm_finalize();
}

/* Does a command other than a call. Returns whether there is such a command; `status` gets the outcome. */
static int do_other(const char *name, const char *words, yoke_status *status)
{
    yoke_group *made = NULL;
    if (!strcmp(name, "init"))
        *status = join(words);
    else if (!strcmp(name, "monitored"))
        *status = yoke_group_monitored_barrier(group, atof(words));
    else if (!strcmp(name, "ragged"))
        *status = call_ragged(words);
    else if (!strcmp(name, "split"))
        *status = yoke_group_split(group, atoi(words), 0, &made);
    else if (!strcmp(name, "shrink"))
        *status = yoke_group_shrink(group, atof(words), &made);
    else if (!strcmp(name, "abort"))
        *status = yoke_group_abort(group, words);
    else if (!strcmp(name, "leave"))
        *status = leave();
    else
        return 0;
    if (made) replace(made);
    return 1;
}

static void do_command(const char *name, const char *words)
{
    const double began = now();
    yoke_status status = YOKE_OK;
    if (!strcmp(name, "call") || !strcmp(name, "async") || !strcmp(name, "loop"))
        do_calls(words, !strcmp(name, "async"), !strcmp(name, "loop"));
    else if (!strcmp(name, "hog"))
        answer("ok", 0, "");
    else if (!strcmp(name, "count"))
        count();
    else if (!strcmp(name, "exit"))
        exit(atoi(words));
    else if (do_other(name, words, &status))
        tell(status, now() - began);
    else
        answer("unknown", 0, name);
    is_hogged = !strcmp(name, "hog");
}

static int serve(void)
{
    char line[512], name[32];
    OK(yoke_set_num_threads(1));
    mallopt(M_MMAP_THRESHOLD, 1 << 16); /* freed memory returns to the system */
    while (fgets(line, sizeof line, stdin)) {
        int length = 0;
        line[strcspn(line, "\n")] = 0;
        if (sscanf(line, "%31s%n", name, &length) == 1)
            do_command(name, line + length + (line[length] == ' '));
    }
    yoke_group_release(group);
    return checks_failed != 0;
}

static void every_call_is_right_in_a_group_of_one(void)
{
    static const char *const ops[] = {"all_reduce", "reduce",  "broadcast",      "all_gather",
                                      "gather",     "scatter", "reduce_scatter", "all_to_all",
                                      "barrier",    "send"};
    OK(yoke_comm_init_threads(1, 0, &group));
    for (size_t i = 0; i < sizeof ops / sizeof *ops; ++i)
        for (int is_async = 0; is_async < 2; ++is_async) {
            call what = {"", "bfloat16/2", "max", 5, 0};
            const char *problem = NULL;
            double seconds;
            snprintf(what.op, sizeof what.op, "%s", ops[i]);
            OK(run(&what, is_async, &problem, &seconds));
            CHECK(!problem);
        }
    yoke_group_release(group);
    group = NULL;
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "serve")) return serve();
    RUN(every_call_is_right_in_a_group_of_one);
    return report();
}
