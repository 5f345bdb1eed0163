/* comm.h: the contract between the core and an engine of collectives: a backend's own, or a module that has nothing
 * else. What both take of the rest of the contract stands in backend.h. */
#ifndef YOKE_CORE_BACKEND_COMM_H
#define YOKE_CORE_BACKEND_COMM_H

#include "core/backend/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

#define YOKE_COMM_BARRIER 0
#define YOKE_COMM_ALL_REDUCE 1
#define YOKE_COMM_REDUCE 2
#define YOKE_COMM_BROADCAST 3
#define YOKE_COMM_ALL_GATHER 4
#define YOKE_COMM_GATHER 5
#define YOKE_COMM_SCATTER 6
#define YOKE_COMM_REDUCE_SCATTER 7
#define YOKE_COMM_ALL_TO_ALL 8
#define YOKE_COMM_SEND 9
#define YOKE_COMM_RECV 10
#define YOKE_COMM_OP_COUNT 11

/* What all ranks of a call must say alike. An engine that moves the bytes itself sends it ahead of them, compares, and
 * writes nothing of another's data where they differ. Of send and recv both sides give that of the send. */
typedef struct yoke_comm_signature {
    uint64_t group; /* a number that all ranks of a group have, and no other group */
    uint64_t
        sequence; /* of the group's calls; of send and recv: of those from this rank to that one */
    int64_t count;
    int32_t op;
    int32_t dtype;
    int32_t reduction; /* -1 where nothing is reduced */
    int32_t root;      /* of send and recv the receiver; -1 where there is none */
    /* 1: the elements are a device's, and an engine that runs late moves them; 2: the same, and the ranks make its
     * communicator before the call; else 0 */
    int32_t on_device;
    uint32_t flags; /* of the call */
} yoke_comm_signature;

/* Why a call failed. */
#define YOKE_COMM_FAULT_NONE 0     /* for a reason of this rank's own, which set_error tells */
#define YOKE_COMM_FAULT_MISMATCH 1 /* rank `rank` called `theirs` (YOKE_E_COMM) */
/* The connection to it has ended (YOKE_E_COMM); -1 where an engine that runs late does not know to whom */
#define YOKE_COMM_FAULT_DIED 2
/* It did not come in time: the lowest such rank; -1 where all came, and were not done in time (YOKE_E_TIMEOUT). This
 * rank itself where a call that the engine makes of its library has not returned here: the other ranks wait for it. */
#define YOKE_COMM_FAULT_LATE 3
#define YOKE_COMM_FAULT_ABORTED 4 /* by `abort` (YOKE_E_CANCELLED) */

typedef struct yoke_comm_fault {
    uint32_t struct_size;
    int32_t kind; /* YOKE_COMM_FAULT_* */
    int32_t rank; /* -1 where no rank is to blame */
    /* Not 0 where what was begun cannot be taken back: the memory that the calls name may still be read and written,
     * for as long as the process lives, and the core keeps it for that long. */
    uint32_t keeps_memory;
    yoke_comm_signature theirs;
} yoke_comm_fault;

/* A flag of a call: 16-bit floats are reduced in f32 and rounded once. Other dtypes, and the host, ignore it. */
#define YOKE_COMM_IN_F32 1u

/*
 * One call of a collective. `count` is the elements of one part: of the whole tensor for all_reduce, reduce, broadcast,
 * send and recv; of what one rank gives to or takes from each other one for the others, where `in` (reduce_scatter,
 * all_to_all, and scatter at its root) or `out` (all_gather, all_to_all, and gather at its root) has `size` parts, in
 * the order of ranks. Elements lie row-major without gaps. `in` and `out` are the same address, or do not overlap,
 * except that all_gather's `in` may be this rank's part of `out`, and reduce_scatter's `out` its part of `in`. What a
 * rank does not give or take is NULL; broadcast's root gives in == out. A barrier has neither.
 *
 * A sum of 16-bit floats is formed in f32 and rounded once; of ranks of one node in their order, then of nodes in
 * theirs: the same bits on each rank and in each run. avg divides the sum by the size. Not reduced: sum, prod and avg
 * of bool and float8, avg of integers; the core refuses them.
 *
 * An engine that runs late puts the work on `stream`, where it reads and writes in the stream's order, and reduces in
 * an order of its library's choice: sums of 16-bit floats are rounded at each step there, unless YOKE_COMM_IN_F32 asks
 * for f32. min and max are NaN where one of the elements is, on any engine.
 */
typedef struct yoke_collective {
    uint32_t struct_size;
    int32_t op; /* YOKE_COMM_* */
    const yoke_comm_signature *signature;
    yoke_dtype dtype;
    int32_t reduction;
    int32_t peer;   /* the root, or the other rank of send and recv; else -1 */
    uint32_t flags; /* YOKE_COMM_IN_F32; alike on all ranks */
    int64_t count;
    const void *in;
    void *out;
    void *
        stream; /* of the engine's device, for one that runs late, and alive until destroy has returned; else NULL */
    double
        timeout_s; /* from now on; below 0: none. Of engines that run late the core watches the time. */
    yoke_comm_fault *fault; /* filled in where the call fails; of a call in a group, by group_end */
    /* For an engine that does not see by itself when a peer ends. Of `count` ranks one that has gone, or -1: it has let
     * the group go, or died; with `died` not 0 only one that has died. Asked in the thread of the call, now and then as
     * it waits, for it may take 0.1 s; what the rank sent before may come later than that. NULL where nobody knows. */
    int32_t (*find_gone)(void *user, const int32_t *ranks, int32_t count, int32_t died);
    void *user;
} yoke_collective;

/* What a rank brings to a new communicator. All of it is borrowed for the call. */
typedef struct yoke_comm_member {
    uint32_t struct_size;
    int32_t rank;
    int32_t size;
    uint32_t reserved;
    void *device;        /* of a backend's own engine; else NULL */
    const void *id;      /* 128 bytes that rank 0 made with unique_id, alike on every rank */
    const char *address; /* of this rank's host, as its peers reach it: "10.0.0.7", "::1" */
    double timeout_s;    /* of init */
    /* Gathers `bytes` of every rank, in the order of ranks, in `all`. Each rank calls it equally often. */
    yoke_status (*all_gather)(void *user, const void *mine, uint64_t bytes, void *all);
    /* Not 0 where it is of no use any more to wait for the other ranks: init then returns CANCELLED within 0.1 s. From
     * any thread; may be NULL. */
    int32_t (*is_over)(void *user);
    void *user;
    yoke_comm_fault *fault;
    double patience_s; /* of later calls that bring no time of their own; 0: timeout_s */
} yoke_comm_member;

#define YOKE_COMM_ID_BYTES 128

/*
 * An engine of collectives: a backend's own, or that of a module which has nothing else. The calls of one communicator
 * come one after the other, alike on all ranks but for send and recv. Several may be under way in a process, also those
 * of several ranks of one group, each in a thread of its own. After a call that has failed a communicator is good for
 * abort and destroy alone.
 */
struct yoke_backend_comm {
    uint32_t struct_size;
    uint32_t abi;     /* YOKE_BACKEND_ABI */
    const char *name; /* "cpu" */
    /* 0: `call` returns when the work is done; else when the stream has it. Such an engine has no barrier, compares no
     * signatures, and tells the others nothing of a failure of this rank's own: the core does all that over the
     * host's engine. The core waits for a call's work by event; what `call` itself waits for is that ranks connect. */
    int32_t is_late;
    int32_t reserved;
    /* Fails with YOKE_E_TIMEOUT where the engine's library does not return within that time. */
    yoke_status (*unique_id)(void *id, double timeout_s);
    yoke_status (*init)(const yoke_comm_member *member, void **comm);
    /* A communicator of some ranks of another one, which all of those call. */
    yoke_status (*split)(void *comm, const yoke_comm_member *member, void **out);
    yoke_status (*call)(void *comm, const yoke_collective *record);
    /* Calls between these two, of one thread, are issued together: no send or receive waits for another one to be done.
     * Their order still counts: all ranks call the collectives among them alike, and what passes between two ranks
     * passes in it. The elements and faults that their records name live until group_end, which fails for all of them.
     * On an engine that runs late groups of several communicators of one thread may stand in each other, which are
     * issued together when the outermost one ends; and no call of a group may write what another one reads or writes.
     * */
    yoke_status (*group_begin)(void *comm);
    yoke_status (*group_end)(void *comm);
    /* From any thread, at any time before destroy: pending and later calls end with YOKE_E_CANCELLED. Does not wait. */
    yoke_status (*abort)(void *comm);
    /* After abort, from any thread, before destroy: to peers it is then as if this rank had died. For ranks that cannot
     * be told otherwise that it has given up. NULL where the engine has no way. */
    void (*hang_up)(void *comm);
    /* No call is pending. Does not wait on an engine that runs late: work that the stream of the last call still has is
     * waited for elsewhere, and peers that do not come as well. */
    void (*destroy)(void *comm);
    /* Memory that peers reach without a copy. All ranks call mem_alloc alike, in their order among the calls; mem_free
     * is each rank's own affair, in any thread, also amid a call, before destroy. mem_alloc waits for the others no
     * longer than init had time, and fills in `fault` where it fails. On an engine that runs late, calls name such
     * memory at the same offset on all ranks. There memory is given back when no work uses it any more, and with NULL
     * for `comm` where that was destroyed before. mem_free does not wait there for a library that does not return. */
    yoke_status (*mem_alloc)(void *comm, uint64_t bytes, void **pointer, yoke_comm_fault *fault);
    yoke_status (*mem_free)(void *comm, void *pointer, uint64_t bytes);
    /* How ranks reach each other, in a line for people, cut to `capacity` with its NUL. */
    void (*describe)(void *comm, char *text, uint64_t capacity);
    /* Of engines that run late: YOKE_OK while healthy. */
    yoke_status (*async_error)(void *comm, yoke_comm_fault *fault);
    /* In a forked child: closes what only the parent may keep open. */
    void (*after_fork)(void);
    /* Looks for the library that the engine calls. Returns the library's version as the library counts, or 0 and in
     * `why`, cut to `capacity` with its NUL, one sentence on why it cannot serve: also if the library does not return
     * within that time. Ranks of one group need one version. NULL of an engine that needs no library. */
    int32_t (*version)(double timeout_s, char *why, uint64_t capacity);
    /* Takes, before init, a function that returns the seconds for which the end of the process may still wait for calls
     * that hang. They begin with the first question, whoever asks. NULL of an engine whose end does not wait. */
    void (*share_exit)(double (*time_left)(void));
};

/* The one symbol of a module that is an engine and nothing else. */
typedef yoke_status (*yoke_comm_get_fn)(const yoke_host *host, const yoke_backend_comm **out);
#define YOKE_COMM_SYMBOL "yoke_comm_get_v1"

#ifdef __cplusplus
}
#endif
#endif /* YOKE_CORE_BACKEND_COMM_H */
