/*
 * yoke/checkpoint.h: activations that are dropped and made again.
 *
 *     yoke_checkpoint_begin(NULL, &scope);   … ops …   yoke_checkpoint_end(scope);
 *     yoke_checkpoint_release(scope);
 *
 * What ops make in a scope is not kept for yoke_backward; its first need of it launches those ops of the scope
 * once more that lead to what it needs, bit for bit as they ran: with the random numbers, dtypes, thread count and
 * TF32 flag of the first run. No code of the caller's runs again. Each scope's values go as they have been read, and
 * all of them when the walk ends. Scopes nest; a model has one for each of its blocks.
 *
 * What no op made is held (data of the host, moves between devices), and so is memory whose address the host was
 * given (yoke_tensor_data) or that it has written. A scope holds what its ops read from outside of it; if that has
 * been changed in place by the time of yoke_backward, that is a STATE error which names both. What its ops write
 * outside of it (running statistics) is written once. yoke_backward within an open scope works.
 */
#ifndef YOKE_CHECKPOINT_H
#define YOKE_CHECKPOINT_H

#include "yoke/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct yoke_checkpoint yoke_checkpoint;
typedef struct yoke_memory_budget yoke_memory_budget;

/* A call of an op of the scope, as a function that decides is shown it. */
typedef struct yoke_checkpoint_op {
    uint32_t struct_size;
    yoke_dtype dtype;     /* of its first result */
    const char *name;     /* as docs/ops.md has it; parts of a composed op go by its name */
    const int64_t *shape; /* of its first result */
    int64_t ndim;
    int64_t bytes; /* that its results take in memory */
    double
        work; /* floating-point operations of ops of cost gemm; bytes that are read and written of others */
} yoke_checkpoint_op;

/* What becomes of an op's results. */
#define YOKE_CHECKPOINT_RECOMPUTE 0
#define YOKE_CHECKPOINT_KEEP 1
#define YOKE_CHECKPOINT_OFFLOAD 2 /* in pinned memory of the host; on the CPU, kept */

/* Answers for one op. What it points to is borrowed for the call, in which it must not use the library. */
typedef int32_t (*yoke_checkpoint_decide_fn)(void *user, const yoke_checkpoint_op *op);

typedef struct yoke_checkpoint_options {
    uint32_t struct_size; /* sizeof(yoke_checkpoint_options) */
    /* Not 0: what is kept, and what the scope reads of earlier ones, waits in pinned memory of the host: it is copied
     * there on a stream of its own, and fetched one scope ahead of yoke_backward. On the CPU nothing moves. Not for
     * "budget". */
    int32_t offload;
    /* Whose results stay in memory: "full" or NULL: nobody's; "matmul": those of matrix products and attention (ops of
     * cost gemm in docs/ops.md); "ops": those of the ops in `ops`; "function": as `decide` says; "budget": as many as
     * `budget` has room for. What backward needs none of is never kept. */
    const char *policy;
    const char *const
        *ops; /* names as docs/ops.md has them; parts of a composed op go by its name */
    int64_t op_count;
    /* Asked by yoke_checkpoint_end, in its thread, once for each call that something needs; until then all is kept. An
     * answer that is none of YOKE_CHECKPOINT_* ends the questions: yoke_checkpoint_end closes the scope, keeps nothing
     * and returns VALUE. */
    yoke_checkpoint_decide_fn decide;
    void *user;
    yoke_memory_budget *budget;
} yoke_checkpoint_options;

/* Opens a scope in the calling thread, within the one that is open there. NULL options: "full". Errors: VALUE for
 * a policy or an op that is not known, with the nearest; STATE for a budget that another open scope has. [any-thread]
 * */
YOKE_API yoke_status yoke_checkpoint_begin(const yoke_checkpoint_options *options,
                                           yoke_checkpoint **out);

/* Closes it. Errors: VALUE for an answer of `decide` that is none; STATE for one that is closed, or not the innermost
 * of the calling thread. [one-thread: the one that began] */
YOKE_API yoke_status yoke_checkpoint_end(yoke_checkpoint *scope);

/* One more reference; returns its argument, which may be NULL. [any-thread] */
YOKE_API yoke_checkpoint *yoke_checkpoint_retain(yoke_checkpoint *scope);

/* A scope that is still open in the calling thread, with those within it, is closed with its last reference, keeps
 * nothing and asks nobody; one whose thread ends is given up with it. Records that need it keep it as long as they
 * live. [any-thread] */
YOKE_API void yoke_checkpoint_release(yoke_checkpoint *scope);

/* Puts an open scope (NULL: none) in force in the calling thread and returns the one before, as
 * yoke_autocast_swap does: for hosts whose coroutines have scopes of their own. [any-thread] */
YOKE_API yoke_checkpoint *yoke_checkpoint_swap(yoke_checkpoint *scope);

/* The innermost open scope of the calling thread, or NULL; borrowed while it is open. [any-thread] */
YOKE_API yoke_checkpoint *yoke_checkpoint_current(void);

/*
 * ---- A memory budget ----
 *
 * A scope of it is a whole forward: it finds where that is cut into scopes, and what they keep. The first step takes
 * little memory and learns what later ones need; they follow a plan of the least time whose peak fits, as long as the
 * ops and shapes are the same; up to 8 forwards have plans of their own. All that counts is memory beside what was
 * there when the forward began, and beside new gradients. No value depends on it. Within a scope of a budget all scopes
 * are the budget's; within another scope, one of a budget is "full".
 */

/* What a step has come to; of two figures the first is foreseen, the second measured in the last step. */
typedef struct yoke_memory_budget_figures {
    uint32_t struct_size;
    int32_t cuts;
    int64_t steps;         /* that were walked */
    int64_t forwards;      /* that are known; the rest is of the last one */
    int64_t limit;         /* bytes; 0 and so on with all that follows: nothing is known yet */
    int64_t plain_peak;    /* foreseen without a budget */
    int64_t held_bytes[2]; /* from forward to backward */
    int64_t peak_bytes[2]; /* at most at any time */
    double seconds
        [2]; /* that go into making values again; 0 is measured where kernels run behind their call */
} yoke_memory_budget_figures;

/* `amount` is "0.5", a share above 0 and at most 1 of the peak without it, or bytes as "2GiB". A budget out of reach
 * gets the least that is possible, which is logged once. Errors: VALUE. [any-thread] */
YOKE_API yoke_status yoke_memory_budget_create(const char *amount, yoke_memory_budget **out);

/* Scopes that have it go on. [any-thread] */
YOKE_API void yoke_memory_budget_release(yoke_memory_budget *budget);

/* Sets all of *figures behind struct_size. [any-thread] */
YOKE_API yoke_status yoke_memory_budget_report(yoke_memory_budget *budget,
                                               yoke_memory_budget_figures *figures);

#ifdef __cplusplus
}
#endif
#endif /* YOKE_CHECKPOINT_H */
