/* comm.h: the contract between the core and an engine of collectives. The engine is a backend's own, or a module
 * without other parts. backend.h has the rest of the contract used by both. */
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

/* Values that must agree on all ranks of a call. An engine that moves the bytes itself sends the signature ahead of
 * the data and compares. If the signatures differ, the engine writes no data of another rank. For send and recv, both
 * sides give the signature of the send. */
typedef struct yoke_comm_signature {
    uint64_t group; /* a number that all ranks of a group have, and no other group */
    uint64_t
        sequence; /* number of the group's call; for send and recv, counted per pair of sender and receiver */
    int64_t count;
    int32_t op;
    int32_t dtype;
    int32_t reduction; /* -1 where nothing is reduced */
    int32_t root;      /* for send and recv the receiver; -1 if absent */
    /* 1: a deferred engine moves elements in device memory; 2: as 1, and the ranks make the engine's communicator
     * before the call; else 0 */
    int32_t on_device;
    uint32_t flags; /* flags of the call */
} yoke_comm_signature;

/* Why a call failed. */
#define YOKE_COMM_FAULT_NONE 0     /* for a reason of this rank's own, reported by set_error */
#define YOKE_COMM_FAULT_MISMATCH 1 /* rank `rank` called `theirs` (YOKE_E_COMM) */
/* The connection to the rank has ended (YOKE_E_COMM); -1 if a deferred engine does not know the rank */
#define YOKE_COMM_FAULT_DIED 2
/* The lowest rank that did not arrive in time. -1 if all arrived, but did not finish in time (YOKE_E_TIMEOUT). This
 * rank itself if the engine's call of its library has not returned here: the other ranks wait for this rank. */
#define YOKE_COMM_FAULT_LATE 3
#define YOKE_COMM_FAULT_ABORTED 4 /* by `abort` (YOKE_E_CANCELLED) */

typedef struct yoke_comm_fault {
    uint32_t struct_size;
    int32_t kind; /* YOKE_COMM_FAULT_* */
    int32_t rank; /* -1 where no rank is to blame */
    /* Not 0 if the begun work cannot be undone. The memory named by the calls may still be read and written as long
     * as the process lives, so the core keeps the memory for the same time. */
    uint32_t keeps_memory;
    yoke_comm_signature theirs;
} yoke_comm_fault;

/* Flag of a call: 16-bit floats are reduced in f32 and rounded once. Other dtypes, and the CPU's engine, ignore the
 * flag. */
#define YOKE_COMM_IN_F32 1u

/*
 * Single call of a collective. `count` is the elements of a part. For all_reduce, reduce, broadcast, send and recv,
 * the part is the whole tensor. For the others, the part is the data that a rank gives to or takes from each other
 * rank. There `in` (reduce_scatter, all_to_all, and scatter at its root) or `out` (all_gather, all_to_all, and gather
 * at its root) has `size` parts, in the order of ranks. Elements lie row-major without gaps. `in` and `out` are the
 * same address, or do not overlap. Two exceptions: all_gather's `in` may be this rank's part of `out`, and
 * reduce_scatter's `out` may be its part of `in`. A pointer without use for the rank is NULL; broadcast's root gives
 * in == out. A barrier has neither pointer.
 *
 * A sum of 16-bit floats is formed in f32 and rounded once. The order is by rank within a node, then by node: the
 * bits are the same on each rank and in each run. avg divides the sum by the size. Not reduced: sum, prod and avg of
 * bool and float8, avg of integers; the core refuses these cases.
 *
 * A deferred engine puts the work on `stream`, and reads and writes in the stream's order. Its library chooses the
 * order of the reduction: sums of 16-bit floats are rounded at each step there, unless YOKE_COMM_IN_F32 asks for f32.
 * On any engine, min and max are NaN if any element is NaN.
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
        stream; /* stream of a deferred engine's device, alive until destroy has returned; else NULL */
    double
        timeout_s; /* from now on; below 0: none. For deferred engines the core watches the time. */
    yoke_comm_fault *fault; /* filled in where the call fails; of a call in a group, by group_end */
    /* Returns a rank of `count` ranks that has released the group or died, or -1. With `died` not 0, only a dead rank
     * counts. For an engine that cannot detect the end of a peer. The call's thread asks now and then during a wait,
     * since the function may take 0.1 s. Data sent earlier by this rank may arrive afterwards. NULL if the core
     * cannot know. */
    int32_t (*find_gone)(void *user, const int32_t *ranks, int32_t count, int32_t died);
    void *user;
} yoke_collective;

/* Arguments of a rank for a new communicator. All pointers are borrowed for the call. */
typedef struct yoke_comm_member {
    uint32_t struct_size;
    int32_t rank;
    int32_t size;
    uint32_t reserved;
    void *device;   /* device of a backend's own engine; else NULL */
    const void *id; /* 128 bytes that rank 0 made with unique_id, alike on every rank */
    const char
        *address; /* address of this rank's machine, as reached by its peers: "10.0.0.7", "::1" */
    double timeout_s; /* timeout of init */
    /* Gathers `bytes` of every rank, in the order of ranks, in `all`. Each rank calls it equally often. */
    yoke_status (*all_gather)(void *user, const void *mine, uint64_t bytes, void *all);
    /* Returns not 0 if waiting for the other ranks has become useless: init then returns CANCELLED within 0.1 s. From
     * any thread; may be NULL. */
    int32_t (*is_over)(void *user);
    void *user;
    yoke_comm_fault *fault;
    double patience_s; /* timeout of later calls without a time of their own; 0: timeout_s */
} yoke_comm_member;

#define YOKE_COMM_ID_BYTES 128

/*
 * Engine of collectives: a backend's own, or the engine of a module without other parts. The calls of a communicator
 * come in sequence, in the same order on all ranks, except send and recv. Several calls may be under way in a
 * process, also of several ranks of a group, each in its own thread. After a failed call, a communicator accepts only
 * abort and destroy.
 */
struct yoke_backend_comm {
    uint32_t struct_size;
    uint32_t abi;     /* YOKE_BACKEND_ABI */
    const char *name; /* "cpu" */
    /* 0: `call` returns when the work is done. Else the engine is deferred: `call` returns when the stream has the
     * work. A deferred engine has no barrier, compares no signatures, and does not report a failure of this rank to
     * the other ranks. The core does all this through the CPU's engine. The core waits for a call's work by event;
     * `call` itself waits only until the ranks are connected. */
    int32_t is_late;
    int32_t reserved;
    /* Makes the id that rank 0 gives to all ranks for init. Fails with YOKE_E_TIMEOUT if the engine's library does
     * not return within `timeout_s`. */
    yoke_status (*unique_id)(void *id, double timeout_s);
    yoke_status (*init)(const yoke_comm_member *member, void **comm);
    /* Makes a communicator of some ranks of another communicator. All these ranks call it. */
    yoke_status (*split)(void *comm, const yoke_comm_member *member, void **out);
    yoke_status (*call)(void *comm, const yoke_collective *record);
    /* Issues a thread's calls between group_begin and group_end together: no send or receive waits for the end of
     * another. The order still counts: all ranks make the collectives among the calls in the same order, and messages
     * between two ranks keep the order. The elements and faults named by the records live until group_end, which
     * fails for all calls. On a deferred engine, a thread may nest groups of several communicators; the engine issues
     * all of them at the end of the outermost group. No call of a group may write memory that another call of the
     * group reads or writes. */
    yoke_status (*group_begin)(void *comm);
    yoke_status (*group_end)(void *comm);
    /* Ends pending and later calls with YOKE_E_CANCELLED, without waiting. From any thread, any time before destroy. */
    yoke_status (*abort)(void *comm);
    /* Makes this rank look dead to its peers, after abort, from any thread, before destroy. For ranks that have no
     * other way to learn of the abort. NULL if the engine cannot do so. */
    void (*hang_up)(void *comm);
    /* Destroys the communicator; no call is pending. On a deferred engine, destroy does not wait: other code waits
     * for work left on the stream of the last call, and for missing peers. */
    void (*destroy)(void *comm);
    /* Allocates and frees memory that peers reach without a copy. All ranks call mem_alloc in the same place among
     * the calls. Each rank calls mem_free alone, in any thread, also during a call, before destroy. mem_alloc waits
     * for the other ranks at most as long as init may, and fills in `fault` on failure. On a deferred engine, calls
     * name such memory at the same offset on all ranks. There the memory is given back when no work uses the memory
     * any more. If the communicator was destroyed before, `comm` is NULL. mem_free does not wait there for a library
     * that does not return. */
    yoke_status (*mem_alloc)(void *comm, uint64_t bytes, void **pointer, yoke_comm_fault *fault);
    yoke_status (*mem_free)(void *comm, void *pointer, uint64_t bytes);
    /* Writes how ranks reach each other, in a line for people, cut to `capacity` with its NUL. */
    void (*describe)(void *comm, char *text, uint64_t capacity);
    /* Returns the status of a deferred engine: YOKE_OK while healthy. */
    yoke_status (*async_error)(void *comm, yoke_comm_fault *fault);
    /* Closes, in a forked child, what only the parent may keep open. */
    void (*after_fork)(void);
    /* Looks for the library called by the engine. Returns the library's version in the library's own form. Else
     * returns 0 and writes a sentence to `why`, cut to `capacity` with its NUL; also if the library does not return
     * in time. All ranks of a group need the same version. NULL if the engine needs no library. */
    int32_t (*version)(double timeout_s, char *why, uint64_t capacity);
    /* Takes, before init, a function that returns the seconds left for hanging calls at the end of the process. The
     * time begins with the first question of any caller. NULL if the engine's end does not wait. */
    void (*share_exit)(double (*time_left)(void));
};

/* Only symbol of a module that is purely an engine. */
typedef yoke_status (*yoke_comm_get_fn)(const yoke_host *host, const yoke_backend_comm **out);
#define YOKE_COMM_SYMBOL "yoke_comm_get_v1"

#ifdef __cplusplus
}
#endif
#endif /* YOKE_CORE_BACKEND_COMM_H */
