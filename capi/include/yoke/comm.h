/*
 * yoke/comm.h: groups of ranks that work on one thing together, and their collectives.
 *
 *     yoke_comm_init(NULL, &group);                 whatever launched the processes tells who they are
 *     yoke_group_all_reduce(group, gradient, YOKE_REDUCE_SUM, NULL);
 *     yoke_group_release(group);
 *
 * Ranks are processes, or threads of one. All ranks of a group make the same calls in the same order; ranks that do not
 * agree get an error which shows both calls, and nothing wrong is returned. The first failure of any rank, be it a call
 * that differs, a process that has died, or a deadline, is the error that every rank gets, from the call in which it is
 * and from each later one: such a group is left, and another one made.
 *
 * A call reads and writes tensors of one device in row-major order, whatever their strides. `work` NULL: it returns
 * when its tensors are written, or, those of a GPU, when the calling thread's current stream comes behind that. Else it
 * returns at once with the work (yoke/work.h), which tells when they are; until it was waited for nobody writes them.
 * Calls that wait end at the group's deadline, and those that yoke_set_interrupt_hook names where a host ends them.
 *
 * Errors of every call, beside those that it names: COMM with the culprit's rank, host and process; TIMEOUT with the
 * first rank that did not come; CANCELLED after an abort; VALUE and TYPE for tensors that do not fit, and OOM where
 * those of a GPU find no pinned memory, of which the other ranks learn nothing; DEVICE_LOST with the rank whose device
 * it was; FORKED in a forked child; STATE while a graph is captured. What nobody was told of a call on a GPU, the next
 * wait for the device tells.
 */
#ifndef YOKE_COMM_H
#define YOKE_COMM_H

#include "yoke/state.h"
#include "yoke/tensor.h"
#include "yoke/work.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct yoke_group yoke_group;

/* ---- Making one ------------------------------------------------------------------------------------------ */

/* A table of texts that all ranks of a job reach, of the host's own: rank 0 sets in it where it listens, and the others
 * get that. init calls these in its own thread, and nobody does after it. What is no YOKE_OK ends init with it. Keys
 * begin with "yoke/"; a store that several jobs share wants a start of the host's own in front of them. */
typedef struct yoke_store_functions {
    uint32_t struct_size;
    uint32_t reserved; /* 0 */
    void *user;
    /* Puts `bytes` in the place of what is there. */
    yoke_status (*set)(void *user, const char *key, const void *data, int64_t bytes);
    /* Waits until the key is there, `timeout` seconds at most: then TIMEOUT. Writes the first `capacity` bytes of the
     * value, and how many it has. */
    yoke_status (*get)(void *user, const char *key, double timeout, void *data, int64_t capacity,
                       int64_t *bytes);
    /* What the last call of this thread failed with, for people; may be NULL. Borrowed until the next one. */
    const char *(*problem)(void *user);
} yoke_store_functions;

/* Zeros and NULLs stand for what the environment tells, and for the defaults. */
typedef struct yoke_comm_options {
    uint32_t struct_size;
    int32_t has_rank; /* 1: `rank` and `world_size` count, not those of the environment */
    int32_t rank;
    int32_t world_size;
    /* NULL: the host's engine, and NCCL for tensors of GPUs if it can serve all ranks; else they pass through the
     * host's memory, and a warning says why. "nccl": NCCL must serve. "cpu", also called "gloo": the host's engine for
     * all. "mpi": MPI for all. */
    const char *backend;
    const char *init_method; /* NULL: "env://"; "tcp://HOST:PORT", "file:///PATH" */
    double timeout;          /* seconds that a call may take; 0: 600 */
    double init_timeout;     /* seconds until all ranks must be there; 0: 300 */
    const yoke_store_functions
        *store; /* by which ranks find rank 0, in place of its address; else NULL */
    /* Of the collectives, on all ranks or on none: their communicator is made at once. NULL: it is made at the first
     * collective with a tensor of a GPU, on that GPU. */
    yoke_device *device;
} yoke_comm_options;

/* The group of all ranks; each of them calls it. The first one of a process is its default group, and where that has
 * failed the next. Which rank this is, of how many, and where rank 0 is, torchrun, mpirun, srun, Kubeflow and indexed
 * Jobs tell in the environment; RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT suffice. Errors: VALUE for what is
 * missing, or told twice in different ways; TIMEOUT with the ranks that did not come; COMM where they are not of one
 * version; UNAVAILABLE where the module of the backend is missing or does not load. [any-thread] */
YOKE_API yoke_status yoke_comm_init(const yoke_comm_options *options, yoke_group **out);

/* `size` groups of one process, whose ranks are threads: each is to be used by one of its own. All places of `groups`
 * are NULL on failure. `timeout` as in yoke_comm_options. Errors: VALUE for a size below 1 or above 1024; OOM where the
 * system gives no threads. [any-thread] */
YOKE_API yoke_status yoke_comm_init_threads(int32_t size, double timeout, yoke_group **groups);

/* `count` groups of one process, of which each is the rank of one device, all of one kind. Calls of several of them
 * that one thread makes stand in one coalesce: else each would wait for those that come later, so that a call outside
 * is STATE. What waits for all ranks by itself, as split and shrink, is called by a thread for each group. All places
 * of `groups` are NULL on failure. `timeout` as in yoke_comm_options. Errors: VALUE for a device that stands twice, for
 * devices of two kinds, and for the host's; OOM where the system gives no threads. [any-thread] */
YOKE_API yoke_status yoke_comm_init_devices(yoke_device *const *devices, int32_t count,
                                            double timeout, yoke_group **groups);

/* One more reference to the default group. Errors: STATE where there is none. [any-thread] */
YOKE_API yoke_status yoke_comm_group(yoke_group **out);

/* Lets the default group go; it is for who has no reference left. [any-thread] */
YOKE_API yoke_status yoke_comm_finalize(void);

/* For hosts that run scripts: what the script has raised and nobody caught, such as "ValueError: bad", told when it
 * ends and before its groups are let go of; NULL takes it back. Ranks that miss this one are told so. An exit code
 * other than 0 they are told without it, as far as a group lives until the process exits. [any-thread] */
YOKE_API yoke_status yoke_comm_note_raised(const char *what);

/* One more reference; returns its argument, which may be NULL. [any-thread] */
YOKE_API yoke_group *yoke_group_retain(yoke_group *group);

/* One reference less. With the last one the rank leaves, when what was begun is done: no failure, but who calls it
 * later is told. Behind yoke_comm_note_raised, and at an exit with another code than 0, what was begun ends, and the
 * group fails with that. Rank 0 waits for the others to leave, at most 5 s, as it does at the end of the process. NULL
 * is ignored. [any-thread] */
YOKE_API void yoke_group_release(yoke_group *group);

/* ---- What it is ------------------------------------------------------------------------------------------ */

/* From 0 on; -1 on NULL. [any-thread] */
YOKE_API int32_t yoke_group_rank(yoke_group *group);
YOKE_API int32_t yoke_group_size(yoke_group *group);
/* Among the ranks on its host. */
YOKE_API int32_t yoke_group_local_rank(yoke_group *group);

/* How its ranks reach each other, in a line for people. Borrowed until this thread's next call of it; "" on failure.
 * [any-thread] */
YOKE_API const char *yoke_group_describe(yoke_group *group);

/* The ranks that give the same `color`, in the order of their keys, then of their ranks, are a group of their own; all
 * ranks call it. NULL for a negative color: that rank is in none of them. [any-thread] */
YOKE_API yoke_status yoke_group_split(yoke_group *group, int32_t color, int64_t key,
                                      yoke_group **out);

/* The ranks that call it within `timeout` seconds, the last quarter of which is for the making, in their order, are a
 * new group, whatever has become of the others, of rank 0, and of whoever launched them; it returns early where each
 * rank has come, or its process has ended. The former group ends, on all ranks, and where it was the default group the
 * new one is. A rank that comes when the others have gone on gets COMM, and makes no group of its own. Errors: STATE
 * for a second time. [any-thread] */
YOKE_API yoke_status yoke_group_shrink(yoke_group *group, double timeout, yoke_group **out);

/* A tensor of the host in memory that peers reach without a copy; all ranks call it alike. Values are not set. It may
 * outlive the group. [any-thread] */
YOKE_API yoke_status yoke_group_empty(yoke_group *group, const int64_t *shape, int64_t ndim,
                                      yoke_dtype dtype, yoke_tensor **out);

/* The same on a device; NULL is the host. Where NCCL serves the device the memory is NCCL's, else the allocator's. A
 * device's memory may outlive the group too. Errors: OOM, alike on all ranks, if it does not fit on one of them.
 * [any-thread] */
YOKE_API yoke_status yoke_group_empty_on(yoke_group *group, const int64_t *shape, int64_t ndim,
                                         yoke_dtype dtype, yoke_device *device, yoke_tensor **out);

/* For bindings: `call`, "all_reduce", was refused for `why` before it came to the library. A rank that waits for this
 * one in its place is told at its deadline, as of what the library refuses. Returns at once. [any-thread] */
YOKE_API yoke_status yoke_group_note_refused(yoke_group *group, const char *call, const char *why);

/* Ends the group, on all ranks: what is under way and what is called later fails as CANCELLED with this reason, which
 * may be NULL. Returns at once. Errors: FORKED in a forked child. [any-thread] */
YOKE_API yoke_status yoke_group_abort(yoke_group *group, const char *reason);

/* ---- Collectives ----------------------------------------------------------------------------------------- */

/* `t` of all ranks, reduced, is in `t` of each; of reduce, in that of `root` alone. `reduction` is a YOKE_REDUCE_*: avg
 * is for what floats, min and max for every dtype, sum and prod for all but bool and float8. Sums of 16-bit floats are
 * formed in float32 and rounded once on the host; NCCL rounds them at each step. [any-thread] */
YOKE_API yoke_status yoke_group_all_reduce(yoke_group *group, yoke_tensor *t, int32_t reduction,
                                           yoke_work **work);
/* The same, which NCCL too forms in `reduce_dtype`: FLOAT32 for 16-bit floats; NONE leaves it to the engine. Errors:
 * TYPE for another dtype. [any-thread] */
YOKE_API yoke_status yoke_group_all_reduce_in(yoke_group *group, yoke_tensor *t, int32_t reduction,
                                              yoke_dtype reduce_dtype, yoke_work **work);
YOKE_API yoke_status yoke_group_reduce(yoke_group *group, yoke_tensor *t, int32_t root,
                                       int32_t reduction, yoke_work **work);

/* `t` of `root` is in `t` of each rank. [any-thread] */
YOKE_API yoke_status yoke_group_broadcast(yoke_group *group, yoke_tensor *t, int32_t root,
                                          yoke_work **work);

/* `out` has `t` of every rank, in their order, and so `size` times its elements; of gather, that of `root` alone, NULL
 * on the others. [any-thread] */
YOKE_API yoke_status yoke_group_all_gather(yoke_group *group, yoke_tensor *out, yoke_tensor *t,
                                           yoke_work **work);
YOKE_API yoke_status yoke_group_gather(yoke_group *group, yoke_tensor *out, yoke_tensor *t,
                                       int32_t root, yoke_work **work);

/* `out` is this rank's part of `t` of `root`, which is NULL on the others. [any-thread] */
YOKE_API yoke_status yoke_group_scatter(yoke_group *group, yoke_tensor *out, yoke_tensor *t,
                                        int32_t root, yoke_work **work);

/* `out` is this rank's part of `t` of all ranks, reduced. [any-thread] */
YOKE_API yoke_status yoke_group_reduce_scatter(yoke_group *group, yoke_tensor *out, yoke_tensor *t,
                                               int32_t reduction, yoke_work **work);

/* Part i of `out` is this rank's part of rank i's `t`. [any-thread] */
YOKE_API yoke_status yoke_group_all_to_all(yoke_group *group, yoke_tensor *out, yoke_tensor *t,
                                           yoke_work **work);

/* From this rank to rank `dst`, which receives it. [any-thread] */
YOKE_API yoke_status yoke_group_send(yoke_group *group, yoke_tensor *t, int32_t dst,
                                     yoke_work **work);
YOKE_API yoke_status yoke_group_recv(yoke_group *group, yoke_tensor *t, int32_t src,
                                     yoke_work **work);

/* No rank returns before all have called it. [any-thread] */
YOKE_API yoke_status yoke_group_barrier(yoke_group *group, yoke_work **work);

/* The same within `timeout` seconds. Errors: TIMEOUT with all ranks that did not come; COMM, at once, with those that
 * have died and those that are not there yet; the group goes on. [any-thread] */
YOKE_API yoke_status yoke_group_monitored_barrier(yoke_group *group, double timeout);

/* ---- Several at once ------------------------------------------------------------------------------------- */

/* Between these two the calling thread's collectives are kept, whatever their groups, and then issued together: no send
 * or receive among them waits for another one, so that two ranks may send to each other. What blocks returns at once,
 * and its tensors are written when end returns; works are waited for behind it. Pairs may be nested: the outermost one
 * counts. drop stands in the place of an end, and forgets all that is kept to the outermost one's; works then fail as
 * CANCELLED, and the other ranks wait in vain. Errors of end and drop: STATE without a begin, and of the outermost end
 * where an inner pair was dropped; of end those of the calls. What gives more than works, as split, empty, shrink,
 * monitored_barrier, and what data parallel does together, is STATE between them. [any-thread] */
YOKE_API yoke_status yoke_comm_coalesce_begin(void);
YOKE_API yoke_status yoke_comm_coalesce_end(void);
YOKE_API yoke_status yoke_comm_coalesce_drop(void);

/* ---- What a group is at --------------------------------------------------------------------------------- */

/* Writes to a file what this rank knows of the group: its ranks, its last 2,000 calls with their times and the lines of
 * the script (yoke_set_stack_provider), and why it failed, as JSON (core/comm/dump.h). Any thread may call it while
 * another one hangs in a call; so may a failed group. The file at `path` is the former one or the new one, whole. With
 * YOKE_COMM_DUMP a group that fails does it by itself. Errors: IO with the path; FORKED; UNSUPPORTED in a build without
 * nlohmann-json. [any-thread] */
YOKE_API yoke_status yoke_group_dump(yoke_group *group, const char *path);

/* Who keeps groups from going on, by dumps of some or all of their ranks: `count` paths, each of a file or of a folder
 * whose files end in ".json". A dict: "hangs" (bool); "groups", each a dict of "group", "size", "hangs", "blamed"
 * (ranks), "finished" (calls that all dumped ranks have finished), "findings" (dicts of "kind", "ranks" and "text"),
 * "ranks" (dicts of "rank", "host", "process", "dump", "time", "state", "seconds" and "call") and "older" (dumps that
 * newer ones replace); "problems", dicts of "path" and "text", of what is no dump. Errors: VALUE without a path; IO
 * where nothing is a dump; UNSUPPORTED as above. [any-thread] */
YOKE_API yoke_status yoke_comm_hang(const char *const *paths, int64_t count, yoke_state **out);

/* ---- Variables of NCCL, Gloo and PyTorch ------------------------------------------------------------------ */

/* What such a variable does here. */
#define YOKE_VARIABLE_NOTHING 0   /* it has no effect; `text` says why, or what has */
#define YOKE_VARIABLE_SETS 1      /* it decides `setting` */
#define YOKE_VARIABLE_OVERRULED 2 /* it would, but another variable or the program does */
#define YOKE_VARIABLE_ALWAYS 3    /* what it asks for is so in any case */
#define YOKE_VARIABLE_UNKNOWN 4 /* no such name is known; it has no effect, unless NCCL knows it */
#define YOKE_VARIABLE_UNREADABLE 5 /* the first use of `setting` is an error */
#define YOKE_VARIABLE_PASSED 6     /* NCCL reads it, where NCCL serves tensors of GPUs */

typedef struct yoke_comm_variable {
    uint32_t struct_size;
    int32_t effect; /* YOKE_VARIABLE_* */
    const char *name;
    const char *value;   /* as it stands in the environment */
    const char *setting; /* of ours, "YOKE_COMM_SHM=0"; "": none */
    const char *text;    /* for people */
    const char *
        word; /* the effect's name: "nothing", "sets", "overruled", "always", "unknown", "unreadable", "passed" */
} yoke_comm_variable;

/* How many variables of the environment begin with NCCL_, GLOO_ or TORCH_NCCL_, or are known otherwise. It looks at the
 * environment anew; get tells what this thread's last count found. [any-thread] */
YOKE_API int32_t yoke_comm_variable_count(void);

/* Variable `index`, by their names. Its texts are borrowed until this thread's next count. Errors: INDEX out of range.
 * [any-thread] */
YOKE_API yoke_status yoke_comm_variable_get(int32_t index, yoke_comm_variable *variable);

/* ---- Starting ranks -------------------------------------------------------------------------------------- */

/* Zeros and NULLs stand for defaults. */
typedef struct yoke_run_options {
    uint32_t struct_size;
    int32_t ranks; /* of this node: 1 to 1024 */
    const char *const
        *command;  /* a program, looked for on PATH, and its arguments; NULL ends them */
    int32_t nodes; /* that run the same, with as many ranks each; 0: 1 */
    int32_t node;  /* this one, from 0 on */
    const char
        *master; /* "HOST:PORT" of rank 0; NULL: a free port of this node, which is the only one */
    int32_t restarts; /* how often all are started again when one has failed */
    int32_t no_stdin; /* 1: rank 0 does not read this process's standard input */
    double grace;     /* seconds from TERM to KILL; 0: 10 */
    const void
        *input; /* what each rank reads as its standard input; NULL: rank 0 reads this process's */
    uint64_t input_bytes;
} yoke_run_options;

typedef struct yoke_run_result {
    uint32_t struct_size;
    int32_t
        exit_code; /* 0: all ended well; of the first rank that failed, 128 + N where signal N ended it; 127, 126:
                        * there is no such program, or it cannot be run; 74: its output cannot be written, as on a full
                        * disk */
    int32_t rank;   /* the first that failed; -1: none */
    int32_t signal; /* that ended it; 0: none */
    int64_t process;
    const char
        *text; /* of what failed, for people, with the cause that the rank told; "": nothing */
    const char *
        trace; /* what the rank left in the file of TORCHELASTIC_ERROR_FILE's name with ".trace" behind it */
} yoke_run_result;

/* Starts ranks of this node as processes, with the variables by which yoke_comm_init() knows them, and returns when all
 * have ended. Each line that one writes has its rank in front, "[3] ". When one fails the others are ended. INT, TERM,
 * HUP, QUIT, USR1, USR2, TSTP and CONT that come to this process meanwhile go on to them, and, when all have ended, to
 * the former handlers of this process; a second INT, or the grace's end after the first INT or TERM, kills them.
 * However this process ends, its ranks end with it. Texts of the result are borrowed until this thread's next call.
 * Errors: VALUE; IO where the system refuses pipes or processes; STATE where SIGCHLD is ignored, or another part of
 * the process waits for any child. [any-thread] */
YOKE_API yoke_status yoke_run(const yoke_run_options *options, yoke_run_result *out);

#ifdef __cplusplus
}
#endif
#endif /* YOKE_COMM_H */
