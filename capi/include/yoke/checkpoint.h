/*
 * yoke/checkpoint.h: activations that are dropped and recomputed.
 *
 *     yoke_checkpoint_begin(NULL, &scope);   … ops …   yoke_checkpoint_end(scope);
 *     yoke_checkpoint_release(scope);
 *
 * Results of ops in a scope are not kept for yoke_backward. When yoke_backward first needs a result, it launches the
 * necessary ops of the scope once more, bit for bit as before: with the random numbers, dtypes, thread count and TF32
 * flag of the first run. No code of the caller runs again. Each value of a scope is freed after its last read, and
 * all values at the end of the walk. Scopes nest; a model has a scope for each of its blocks.
 *
 * A scope holds tensors that no op made (data of the host program, moves between devices). It also holds memory whose
 * address the host program got (yoke_tensor_data), and memory that the host program has written. A scope holds the
 * outside tensors that its ops read. If such a tensor was changed in place before yoke_backward, a STATE error names
 * both. Writes of ops to outside tensors (running statistics) happen once. yoke_backward within an open scope works.
 */
#ifndef YOKE_CHECKPOINT_H
#define YOKE_CHECKPOINT_H

#include "yoke/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct yoke_checkpoint yoke_checkpoint;
typedef struct yoke_memory_budget yoke_memory_budget;

/* Call of an op in the scope, as passed to a decide function. */
typedef struct yoke_checkpoint_op {
    uint32_t struct_size;
    yoke_dtype dtype;     /* dtype or shape of the first result */
    const char *name;     /* name in docs/ops.md; parts of a composed op have their own names */
    const int64_t *shape; /* dtype or shape of the first result */
    int64_t ndim;
    int64_t bytes; /* memory of its results */
    double
        work; /* floating-point operations of ops of cost gemm; bytes read and written by other ops */
} yoke_checkpoint_op;

/* Treatment of an op's results. */
#define YOKE_CHECKPOINT_RECOMPUTE 0
#define YOKE_CHECKPOINT_KEEP 1
#define YOKE_CHECKPOINT_OFFLOAD 2 /* in pinned host memory; on the CPU, kept */

/* Answers for one op. Pointers in `op` are borrowed for the call; the function must not use the library. */
typedef int32_t (*yoke_checkpoint_decide_fn)(void *user, const yoke_checkpoint_op *op);

typedef struct yoke_checkpoint_options {
    uint32_t struct_size; /* sizeof(yoke_checkpoint_options) */
    /* Not 0: kept tensors, and tensors that the scope reads from earlier scopes, wait in pinned host memory. They are
     * copied there on a separate stream, and fetched one scope ahead of yoke_backward. On the CPU this has no effect.
     * Not for "budget". */
    int32_t offload;
    /* Rule for the results that stay in memory. "full" or NULL: no results; "matmul": results of matrix products and
     * attention (ops of cost gemm in docs/ops.md); "ops": results of the ops in `ops`; "function": as `decide`
     * answers; "budget": as many as `budget` allows. Results that backward does not need are never kept. */
    const char *policy;
    const char *const *ops; /* names in docs/ops.md; parts of a composed op have their own names */
    int64_t op_count;
    /* Called by yoke_checkpoint_end, in its thread, once for each call whose results are needed; until then all
     * results are kept. After an answer other than YOKE_CHECKPOINT_*, yoke_checkpoint_end asks no more, closes the
     * scope, keeps nothing and returns VALUE. */
    yoke_checkpoint_decide_fn decide;
    void *user;
    yoke_memory_budget *budget;
} yoke_checkpoint_options;

/* Opens a scope in the calling thread, within the thread's open scope if any. NULL options: "full". Errors: VALUE for
 * an unknown policy or op, with the nearest name; STATE for a budget that another open scope has. [any-thread] */
YOKE_API yoke_status yoke_checkpoint_begin(const yoke_checkpoint_options *options,
                                           yoke_checkpoint **out);

/* Closes the scope. Errors: VALUE for an invalid answer of `decide`; STATE if the scope is closed, or not the
 * innermost scope of the calling thread. [one-thread: the thread of yoke_checkpoint_begin] */
YOKE_API yoke_status yoke_checkpoint_end(yoke_checkpoint *scope);

/* Adds a reference and returns the argument, which may be NULL. [any-thread] */
YOKE_API yoke_checkpoint *yoke_checkpoint_retain(yoke_checkpoint *scope);

/* Releases a reference. If the scope is still open in the calling thread, the last release closes the scope and its
 * inner scopes; the scope then keeps nothing and asks no `decide`. If the thread of an open scope ends, the scope is
 * given up. A tape that needs a scope keeps the scope alive. [any-thread] */
YOKE_API void yoke_checkpoint_release(yoke_checkpoint *scope);

/* Puts an open scope (NULL: none) in force in the calling thread and returns the previous scope, as
 * yoke_autocast_swap does: for host programs whose coroutines have separate scopes. [any-thread] */
YOKE_API yoke_checkpoint *yoke_checkpoint_swap(yoke_checkpoint *scope);

/* Returns the innermost open scope of the calling thread, or NULL; borrowed while it is open. [any-thread] */
YOKE_API yoke_checkpoint *yoke_checkpoint_current(void);

/*
 * ---- A memory budget ----
 *
 * A scope with a budget is a whole forward: the budget decides where the forward is cut into scopes, and which
 * results they keep. The first step takes little memory and measures. Later steps follow a plan of the least time
 * whose peak fits, as long as ops and shapes are the same. Up to 8 forwards have separate plans. The budget counts
 * memory beyond the memory in use at the start of the forward, and beyond new gradients. No value depends on the
 * budget. Within a scope of a budget all scopes belong to the budget; within another scope, a scope with a budget is
 * "full".
 */

/* Figures of a budget; of two values the first is planned, the second measured in the last step. */
typedef struct yoke_memory_budget_figures {
    uint32_t struct_size;
    int32_t cuts;
    int64_t steps;         /* steps with a backward */
    int64_t forwards;      /* known forwards; other fields are of the last forward */
    int64_t limit;         /* bytes; 0, as are all fields below: no figures yet */
    int64_t plain_peak;    /* foreseen without a budget */
    int64_t held_bytes[2]; /* from forward to backward */
    int64_t peak_bytes[2]; /* at most at any time */
    double seconds
        [2]; /* for recomputed values; measured as 0 if kernels run after their call returns */
} yoke_memory_budget_figures;

/* Creates a budget. `amount` is "0.5", a share above 0 and at most 1 of the peak without a budget, or bytes as
 * "2GiB". If the budget cannot be reached, the least possible memory is used and the log says so once. Errors: VALUE.
 * [any-thread] */
YOKE_API yoke_status yoke_memory_budget_create(const char *amount, yoke_memory_budget **out);

/* Releases the budget; its scopes go on. [any-thread] */
YOKE_API void yoke_memory_budget_release(yoke_memory_budget *budget);

/* Sets all of *figures behind struct_size. [any-thread] */
YOKE_API yoke_status yoke_memory_budget_report(yoke_memory_budget *budget,
                                               yoke_memory_budget_figures *figures);

#ifdef __cplusplus
}
#endif
#endif /* YOKE_CHECKPOINT_H */
