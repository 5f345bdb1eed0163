/*
 * yoke/comm.h: groups of ranks that work together, and their collectives.
 *
 *     yoke_comm_init(NULL, &group);                 the launcher of the processes tells rank and size
 *     yoke_group_all_reduce(group, gradient, YOKE_REDUCE_SUM, NULL);
 *     yoke_group_release(group);
 *
 * Ranks are processes, or threads of a process. All ranks of a group make the same calls in the same order. If the
 * calls of two ranks differ, all ranks get an error with both calls, and no wrong result. The first failure of any
 * rank (a differing call, a dead process, a deadline) is the error of every rank. Each rank gets the error from its
 * current call and from each later call. Release such a group and make a new group.
 *
 * A call reads and writes tensors of one device in row-major order, whatever their strides. `work` NULL: the call
 * returns when its tensors are written. For tensors of a GPU, it returns when the calling thread's current stream is
 * ordered after the call. With `work` the call returns at once with the work (yoke/work.h); until a wait for the work
 * returns, no other code may write the tensors. Waiting calls end at the group's deadline. The calls named at
 * yoke_set_interrupt_hook also end if the host program interrupts them.
 *
 * Errors of every call, besides the errors of its own comment: COMM with the culprit's rank, host and process;
 * TIMEOUT with the first rank that did not arrive; CANCELLED after an abort; VALUE and TYPE for tensors that do not
 * fit; OOM if there is no pinned memory for tensors of a GPU (the other ranks get no report); DEVICE_LOST with the
 * rank of the lost device; FORKED in a forked child; STATE while a graph is captured. If no call has reported an
 * error of a call on a GPU, the next wait for the device reports it.
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

/* Store of texts, provided by the host program and reachable by all ranks of a job. Rank 0 sets the address where it
 * listens, and the other ranks get this address. init calls these functions in its own thread; there are no calls
 * after init. If a function returns other than YOKE_OK, init fails with this status. Keys begin with "yoke/". If
 * several jobs share a store, the host program puts a prefix in front of the keys. */
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
    /* Returns the reason of this thread's last failed call, for people; may be NULL. Borrowed until the next call. */
    const char *(*problem)(void *user);
} yoke_store_functions;

/* Zeros and NULLs stand for the environment's values, and for the defaults. */
typedef struct yoke_comm_options {
    uint32_t struct_size;
    int32_t has_rank; /* 1: `rank` and `world_size` count, not those of the environment */
    int32_t rank;
    int32_t world_size;
    /* NULL: the host's engine, and NCCL for tensors of GPUs if NCCL can serve all ranks; else these tensors pass
     * through host memory, and a warning says why. "nccl": NCCL must serve. "cpu", also called "gloo": the host's
     * engine for all. "mpi": MPI for all. */
    const char *backend;
    const char *init_method; /* NULL: "env://"; "tcp://HOST:PORT", "file:///PATH" */
    double timeout;          /* seconds that a call may take; 0: 600 */
    double init_timeout;     /* seconds until all ranks must be there; 0: 300 */
    const yoke_store_functions
        *store; /* store for finding rank 0, in place of its address; else NULL */
    /* Device of the collectives, on all ranks or on none: init makes their communicator at once. NULL: the first
     * collective with a tensor of a GPU makes the communicator on this GPU. */
    yoke_device *device;
} yoke_comm_options;

/* Makes the group of all ranks; each rank calls it. The first group of a process is its default group; after a
 * failure of the default group the next group is. torchrun, mpirun, srun, Kubeflow and indexed Jobs set rank, number
 * of ranks and rank 0's address in the environment; RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT suffice. Errors:
 * VALUE for missing or contradicting variables; TIMEOUT with the ranks that did not arrive; COMM if the ranks have
 * different versions; UNAVAILABLE if the module of the backend is missing or does not load. [any-thread] */
YOKE_API yoke_status yoke_comm_init(const yoke_comm_options *options, yoke_group **out);

/* Makes `size` groups of one process, whose ranks are threads: each group is used by a separate thread. All entries
 * of `groups` are NULL on failure. `timeout` as in yoke_comm_options. Errors: VALUE for a size below 1 or above 1024;
 * OOM if the system gives no threads. [any-thread] */
YOKE_API yoke_status yoke_comm_init_threads(int32_t size, double timeout, yoke_group **groups);

/* Makes `count` groups of one process. Each group is the rank of one device; all devices are of one kind. If a single
 * thread calls several of these groups, the calls must stand in a coalesce: else the first call would wait for the
 * later calls. So a call outside a coalesce is STATE. A call that waits for all ranks itself, such as split and
 * shrink, is made by a thread for each group. All entries of `groups` are NULL on failure. `timeout` as in
 * yoke_comm_options. Errors: VALUE for a repeated device, for devices of two kinds, and for the CPU; OOM if the
 * system gives no threads. [any-thread] */
YOKE_API yoke_status yoke_comm_init_devices(yoke_device *const *devices, int32_t count,
                                            double timeout, yoke_group **groups);

/* Returns a new reference to the default group. Errors: STATE if there is no default group. [any-thread] */
YOKE_API yoke_status yoke_comm_group(yoke_group **out);

/* Releases the default group, for programs without a reference to the group. [any-thread] */
YOKE_API yoke_status yoke_comm_finalize(void);

/* Notes the uncaught error of a script, such as "ValueError: bad"; for host programs that run scripts. Call it when
 * the script ends, before the release of the groups; NULL takes the note back. Ranks that miss this rank get the note
 * in their error. An exit code other than 0 is reported without a call, if a group lives until the process exits.
 * [any-thread] */
YOKE_API yoke_status yoke_comm_note_raised(const char *what);

/* Adds a reference and returns the argument, which may be NULL. [any-thread] */
YOKE_API yoke_group *yoke_group_retain(yoke_group *group);

/* Releases a reference. With the last reference the rank leaves the group after all begun calls are done. Leaving is
 * no failure, but ranks that later call the group get an error. After yoke_comm_note_raised, and at an exit with a
 * code other than 0, begun calls end, and the group fails with this cause. Rank 0 waits at most 5 s for the other
 * ranks to leave, as at the end of the process. NULL is ignored. [any-thread] */
YOKE_API void yoke_group_release(yoke_group *group);

/* ---- Properties ------------------------------------------------------------------------------------------ */

/* Returns the rank, from 0 on; -1 on NULL. [any-thread] */
YOKE_API int32_t yoke_group_rank(yoke_group *group);
YOKE_API int32_t yoke_group_size(yoke_group *group);
/* Returns the number among the ranks on its host. */
YOKE_API int32_t yoke_group_local_rank(yoke_group *group);

/* Returns a line for people about the connections between the ranks. Borrowed until this thread's next call of this
 * function; "" on failure. [any-thread] */
YOKE_API const char *yoke_group_describe(yoke_group *group);

/* Makes a group of the ranks with the same `color`, in the order of their keys, then of their ranks; all ranks call
 * it. A rank with a negative color gets NULL and is in no new group. [any-thread] */
YOKE_API yoke_status yoke_group_split(yoke_group *group, int32_t color, int64_t key,
                                      yoke_group **out);

/* Makes a new group of the ranks that call it within `timeout` seconds, in their order. The last quarter of the time
 * is for making the group. The call works whatever has happened to the other ranks, to rank 0, or to the launcher. It
 * returns early if each rank has joined or its process has ended. The former group ends on all ranks; if it was the
 * default group, the new group becomes the default. If a rank joins after the other ranks have gone on, it gets COMM
 * and makes no group. Errors: STATE for a second call. [any-thread] */
YOKE_API yoke_status yoke_group_shrink(yoke_group *group, double timeout, yoke_group **out);

/* Makes a CPU tensor in memory that peers reach without a copy; all ranks make the same call. Values are not set. The
 * tensor may outlive the group. [any-thread] */
YOKE_API yoke_status yoke_group_empty(yoke_group *group, const int64_t *shape, int64_t ndim,
                                      yoke_dtype dtype, yoke_tensor **out);

/* Makes such a tensor on a device; NULL is the CPU. If NCCL serves the device, the memory is NCCL's, else the
 * allocator's. A device's memory may outlive the group too. Errors: OOM on all ranks, if the tensor does not fit on
 * any of them. [any-thread] */
YOKE_API yoke_status yoke_group_empty_on(yoke_group *group, const int64_t *shape, int64_t ndim,
                                         yoke_dtype dtype, yoke_device *device, yoke_tensor **out);

/* Notes that a binding refused `call`, such as "all_reduce", for the reason `why` before the library saw the call. A
 * rank that waits for this rank in this call gets the reason at its deadline, as for a call refused by the library.
 * Returns at once. [any-thread] */
YOKE_API yoke_status yoke_group_note_refused(yoke_group *group, const char *call, const char *why);

/* Ends the group on all ranks: running and later calls fail as CANCELLED with this reason, which may be NULL. Returns
 * at once. Errors: FORKED in a forked child. [any-thread] */
YOKE_API yoke_status yoke_group_abort(yoke_group *group, const char *reason);

/* ---- Collectives ----------------------------------------------------------------------------------------- */

/* Reduces `t` of all ranks into `t` of each rank; reduce: into `t` of `root` alone. `reduction` is a YOKE_REDUCE_*:
 * avg is for floating dtypes, min and max for every dtype, sum and prod for all but bool and float8. The host's
 * engine forms sums of 16-bit floats in float32 and rounds once; NCCL rounds at each step. [any-thread] */
YOKE_API yoke_status yoke_group_all_reduce(yoke_group *group, yoke_tensor *t, int32_t reduction,
                                           yoke_work **work);
/* Reduces as all_reduce does, but NCCL too forms the sum in `reduce_dtype`: FLOAT32 for 16-bit floats; NONE leaves
 * the dtype to the engine. Errors: TYPE for another dtype. [any-thread] */
YOKE_API yoke_status yoke_group_all_reduce_in(yoke_group *group, yoke_tensor *t, int32_t reduction,
                                              yoke_dtype reduce_dtype, yoke_work **work);
YOKE_API yoke_status yoke_group_reduce(yoke_group *group, yoke_tensor *t, int32_t root,
                                       int32_t reduction, yoke_work **work);

/* Copies `t` of `root` to `t` of each rank. [any-thread] */
YOKE_API yoke_status yoke_group_broadcast(yoke_group *group, yoke_tensor *t, int32_t root,
                                          yoke_work **work);

/* Fills `out` with `t` of every rank, in rank order; so `out` has `size` times the elements of `t`. For gather, only
 * `out` of `root` is filled; `out` is NULL on the other ranks. [any-thread] */
YOKE_API yoke_status yoke_group_all_gather(yoke_group *group, yoke_tensor *out, yoke_tensor *t,
                                           yoke_work **work);
YOKE_API yoke_status yoke_group_gather(yoke_group *group, yoke_tensor *out, yoke_tensor *t,
                                       int32_t root, yoke_work **work);

/* Fills `out` with this rank's part of `t` of `root`; `t` is NULL on the other ranks. [any-thread] */
YOKE_API yoke_status yoke_group_scatter(yoke_group *group, yoke_tensor *out, yoke_tensor *t,
                                        int32_t root, yoke_work **work);

/* Writes this rank's part of `t` of all ranks, reduced, to `out`. [any-thread] */
YOKE_API yoke_status yoke_group_reduce_scatter(yoke_group *group, yoke_tensor *out, yoke_tensor *t,
                                               int32_t reduction, yoke_work **work);

/* Writes this rank's part of rank i's `t` to part i of `out`. [any-thread] */
YOKE_API yoke_status yoke_group_all_to_all(yoke_group *group, yoke_tensor *out, yoke_tensor *t,
                                           yoke_work **work);

/* Sends a tensor to rank `dst`, where recv receives the tensor. [any-thread] */
YOKE_API yoke_status yoke_group_send(yoke_group *group, yoke_tensor *t, int32_t dst,
                                     yoke_work **work);
YOKE_API yoke_status yoke_group_recv(yoke_group *group, yoke_tensor *t, int32_t src,
                                     yoke_work **work);

/* Waits for all ranks: no rank returns before all have called it. [any-thread] */
YOKE_API yoke_status yoke_group_barrier(yoke_group *group, yoke_work **work);

/* Waits as barrier does, at most `timeout` seconds. Errors: TIMEOUT with all ranks that did not arrive; COMM, at
 * once, with the dead ranks and the ranks that are not there yet. The group goes on after an error. [any-thread] */
YOKE_API yoke_status yoke_group_monitored_barrier(yoke_group *group, double timeout);

/* ---- Several at once ------------------------------------------------------------------------------------- */

/* Keeps the calling thread's collectives between begin and end, for all groups, and then issues them together. No send
 * or receive among them waits for another, so two ranks may send to each other. A blocking call returns at once, and
 * its tensors are written when end returns. Wait for works only after end. Pairs may be nested; the outermost pair
 * counts. drop replaces an end, and discards all kept calls up to the outermost end. Their works then fail as
 * CANCELLED, and the other ranks wait in vain. Errors of end and drop: STATE without a begin, and of the outermost
 * end if an inner pair was dropped; end also returns the errors of the calls. Calls with a result other than a work
 * (split, empty, shrink, monitored_barrier) and the joint calls of data parallel are STATE between begin and end.
 * [any-thread] */
YOKE_API yoke_status yoke_comm_coalesce_begin(void);
YOKE_API yoke_status yoke_comm_coalesce_end(void);
YOKE_API yoke_status yoke_comm_coalesce_drop(void);

/* ---- State of a group ----------------------------------------------------------------------------------- */

/* Writes to a file, as JSON (core/comm/dump.h), this rank's knowledge of the group: its ranks, its last 2,000 calls
 * with their times and script lines (yoke_set_stack_provider), and the reason of a failure. Any thread may call it
 * while another thread hangs in a call; a failed group may be dumped too. The file at `path` is always whole: the
 * former or the new file. With YOKE_COMM_DUMP a failing group does this itself. Errors: IO with the path; FORKED;
 * UNSUPPORTED in a build without nlohmann-json. [any-thread] */
YOKE_API yoke_status yoke_group_dump(yoke_group *group, const char *path);

/* Finds the ranks that block groups, from dumps of some or all of their ranks. Each of the `count` paths is a file,
 * or a folder whose files end in ".json". The result is a dict: "hangs" (bool); "groups", each a dict of "group",
 * "size", "hangs", "blamed" (ranks), "finished" (calls that all dumped ranks have finished), "findings" (dicts of
 * "kind", "ranks" and "text"), "ranks" (dicts of "rank", "host", "process", "dump", "time", "state", "seconds" and
 * "call") and "older" (dumps replaced by newer dumps); "problems", dicts of "path" and "text", for files that are no
 * dump. Errors: VALUE without a path; IO if no file is a dump; UNSUPPORTED as above. [any-thread] */
YOKE_API yoke_status yoke_comm_hang(const char *const *paths, int64_t count, yoke_state **out);

/* ---- Variables of NCCL, Gloo and PyTorch ------------------------------------------------------------------ */

/* Effect of such a variable. */
#define YOKE_VARIABLE_NOTHING 0 /* no effect; `text` gives the reason, or the variable in effect */
#define YOKE_VARIABLE_SETS 1    /* decides `setting` */
#define YOKE_VARIABLE_OVERRULED 2  /* would decide, but another variable or the program does */
#define YOKE_VARIABLE_ALWAYS 3     /* asks for behaviour that always holds */
#define YOKE_VARIABLE_UNKNOWN 4    /* unknown name; no effect, unless NCCL knows the name */
#define YOKE_VARIABLE_UNREADABLE 5 /* the first use of `setting` is an error */
#define YOKE_VARIABLE_PASSED 6     /* NCCL reads it, where NCCL serves tensors of GPUs */

typedef struct yoke_comm_variable {
    uint32_t struct_size;
    int32_t effect; /* YOKE_VARIABLE_* */
    const char *name;
    const char *value;   /* as it stands in the environment */
    const char *setting; /* Yoke's setting, "YOKE_COMM_SHM=0"; "": none */
    const char *text;    /* for people */
    const char *
        word; /* the effect's name: "nothing", "sets", "overruled", "always", "unknown", "unreadable", "passed" */
} yoke_comm_variable;

/* Counts the variables of the environment that begin with NCCL_, GLOO_ or TORCH_NCCL_, or are otherwise known. Reads
 * the environment anew; get returns the variables of this thread's last count. [any-thread] */
YOKE_API int32_t yoke_comm_variable_count(void);

/* Reads variable `index`, in the order of their names. Texts are borrowed until this thread's next count. Errors:
 * INDEX out of range. [any-thread] */
YOKE_API yoke_status yoke_comm_variable_get(int32_t index, yoke_comm_variable *variable);

/* ---- Starting ranks -------------------------------------------------------------------------------------- */

/* Zeros and NULLs stand for defaults. */
typedef struct yoke_run_options {
    uint32_t struct_size;
    int32_t ranks;              /* on this node: 1 to 1024 */
    const char *const *command; /* program, searched on PATH, and its arguments; ends with NULL */
    int32_t nodes;              /* nodes with the same command and number of ranks; 0: 1 */
    int32_t node;               /* this one, from 0 on */
    const char *master; /* "HOST:PORT" of rank 0; NULL: a free port of this node, the only node */
    int32_t restarts;   /* how often all are started again when one has failed */
    int32_t no_stdin;   /* 1: rank 0 does not read this process's standard input */
    double grace;       /* seconds from TERM to KILL; 0: 10 */
    const void *input;  /* standard input of each rank; NULL: rank 0 reads this process's */
    uint64_t input_bytes;
} yoke_run_options;

typedef struct yoke_run_result {
    uint32_t struct_size;
    int32_t
        exit_code; /* 0: all ended well; else of the first failed rank, 128 + N if signal N ended it; 127, 126: the
                    * program is missing, or cannot run; 74: its output cannot be written, as on a full disk */
    int32_t rank;   /* first failed rank; -1: none */
    int32_t signal; /* terminating signal; 0: none */
    int64_t process;
    const char *text;  /* reason for people, with the cause the rank reported; "": none */
    const char *trace; /* content of the file TORCHELASTIC_ERROR_FILE + ".trace" of the rank */
} yoke_run_result;

/* Starts ranks of this node as processes, with the variables that yoke_comm_init() reads, and returns when all have
 * ended. Each output line has its rank in front, "[3] ". If a rank fails, the other ranks are ended. Signals INT,
 * TERM, HUP, QUIT, USR1, USR2, TSTP and CONT to this process go on to the ranks, and, when all have ended, to the
 * former handlers of this process. A second INT kills the ranks, and so does the end of the grace time after the
 * first INT or TERM. However this process ends, its ranks end too. Texts of the result are borrowed until this
 * thread's next call. Errors: VALUE; IO if the system refuses pipes or processes; STATE if SIGCHLD is ignored, or
 * another part of the process waits for any child. [any-thread] */
YOKE_API yoke_status yoke_run(const yoke_run_options *options, yoke_run_result *out);

#ifdef __cplusplus
}
#endif
#endif /* YOKE_COMM_H */
