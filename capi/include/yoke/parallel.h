/*
 * yoke/parallel.h: one model on the ranks of a group: gradients that are reduced while backward runs, and which
 * examples each rank takes.
 *
 *     yoke_sampler_create(&sampler_options, &sampler);
 *     yoke_reducer_create(group, params, names, count, NULL, NULL, 0, NULL, &reducer);
 *     ... yoke_backward(loss) leaves the mean over all ranks in the gradients ...
 */
#ifndef YOKE_PARALLEL_H
#define YOKE_PARALLEL_H

#include "yoke/comm.h"
#include "yoke/state.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Gradients ------------------------------------------------------------------------------------------- */

typedef struct yoke_reducer yoke_reducer;

/* What the host does with a bucket of gradients that is full, in the thread that runs backward: `run` has the mean over
 * all ranks in `bucket`, a tensor of one axis, when it returns, or when the work that it gives in *work has ended;
 * *work is NULL before, and the reference goes to Yoke. The buckets of a backward come in the order of `index`, alike
 * on all ranks. Where it returns no YOKE_OK backward fails, with the text of `problem`, which may be NULL. `drop` runs
 * once, after the last call. */
typedef struct yoke_bucket_hook {
    uint32_t struct_size; /* sizeof(yoke_bucket_hook) */
    uint32_t reserved;
    void *user;
    yoke_status (*run)(void *user, yoke_tensor *bucket, int32_t index, int32_t is_last,
                       yoke_group *group, yoke_work **work);
    const char *(*problem)(void *user);
    yoke_drop_fn drop;
} yoke_bucket_hook;

typedef struct yoke_reducer_options {
    uint32_t struct_size; /* sizeof(yoke_reducer_options) */
    uint32_t reserved;
    double bucket_mb;        /* MiB of a bucket, up to 1e6; 0: 25 */
    const char *compression; /* "fp16", "bf16", "powersgd:rank=4,start=10,rate=2"; NULL: none */
    const yoke_bucket_hook *hook; /* in place of a compression; NULL: none */
    yoke_dtype
        reduce_dtype; /* of sums that NCCL forms of 16-bit floats: FLOAT32; 0: as NCCL does */
} yoke_reducer_options;

/* From now on each backward that leads to one of these leaves, and so does on all ranks, leaves the mean over the ranks
 * in the gradients of all of them: of a parameter that this rank did not use, too, where another one did; one that no
 * rank used keeps none. A parameter that requires no gradient when it is given takes no part in that. All ranks call it
 * alike, with as many parameters of the same names, shapes and dtypes, of which the same require none; where their
 * values, or those of the buffers, differ, all take rank 0's, and rank 0 logs that. After each such backward all
 * ranks have the buffers of rank 0. `options` may be NULL. In a group of one nothing is done.
 *
 * While a backward runs no other call of the group may be made. A backward that fails, or is refused, ends the group
 * for all ranks, with the reason; backward then leaves gradients of this rank alone. So it does, without an error, of
 * what was recorded after any call had told this rank of the failure.
 *
 * Errors: VALUE where the ranks have unlike parameters or options, with the first that differs, for a tensor that is no
 * leaf, where none requires a gradient, for a parameter that stands twice, and for an unknown compression; STATE
 * for one that another reducer has, whose group has not failed: release that one before. [any-thread]
 *
 * Source: S. Li et al., "PyTorch Distributed: Experiences on accelerating data parallel training", 2020. */
YOKE_API yoke_status yoke_reducer_create(yoke_group *group, yoke_tensor *const *params,
                                         const char *const *names, int64_t count,
                                         yoke_tensor *const *buffers,
                                         const char *const *buffer_names, int64_t buffer_count,
                                         const yoke_reducer_options *options, yoke_reducer **out);

/* Leaves keep their gradients themselves again; unless its group has failed a later backward of what was recorded
 * before is STATE. NULL is ignored. Not while a backward runs. [any-thread] */
YOKE_API void yoke_reducer_release(yoke_reducer *reducer);

/* Off, backward adds up what this rank has alone; the next one with sync on reduces the sum. On at first. [any-thread]
 */
YOKE_API yoke_status yoke_reducer_set_sync(yoke_reducer *reducer, int32_t enabled);
/* 1 or 0; -1 on NULL. [any-thread] */
YOKE_API int32_t yoke_reducer_get_sync(yoke_reducer *reducer);

/* How much this rank counts from the next backward on, 1 at first: gradients become the sum of n times gradient
 * over all ranks by the sum of their n. Errors: VALUE unless above 0 and finite. [any-thread] */
YOKE_API yoke_status yoke_reducer_set_weight(yoke_reducer *reducer, double n);

/* Ranks with unlike numbers of batches: between the two this rank has its backwards, and in the second one it answers
 * those of the others with weight 0, until all ranks are there. Then all have the parameters, buffers and
 * gradients of one that came last, no gradient where that one has none, and in *last what it gave as `mine`, such as
 * the state of its optimizer, whose tensors lie on the CPU elsewhere; both are NULL where nothing is given, as on all
 * ranks alike. All ranks are in a join when one has a backward, or each backward is an error on all of them. Of the one
 * reducer of the group. Errors: STATE where there is none, or several; for a rank within no_sync, or with gradients
 * that it has added up there and not reduced; and on all ranks where none had a backward; what the group has failed
 * with. [any-thread] */
YOKE_API yoke_status yoke_group_join_begin(yoke_group *group);
YOKE_API yoke_status yoke_group_join_end(yoke_group *group, yoke_state *mine, yoke_state **last);

/* From now on the reducer is one of `group`, whose ranks all call it, as of yoke_group_shrink, and need not have
 * stopped at one step: all get the parameters, buffers and the compression's state of the one that is furthest, and in
 * *furthest what that one gave as `mine`, as in yoke_group_join_end. Gradients are gone, and the step that failed is to
 * be begun anew. Where it fails parameters and buffers are as before, leaves keep their gradients themselves, and it
 * may be called again with another group. Not while a backward runs. Errors, on all ranks, which may call it again with
 * this group: VALUE where they have unlike parameters; STATE where those of one former group give unlike modules of it,
 * another reducer reduces the gradients of a parameter, or some ranks call yoke_reducer_create instead; STATE where all
 * living ranks of the former group have written parameters behind reductions that their devices did not end: load the
 * last saved state into all parameters before. What else fails ends the group. [any-thread] */
YOKE_API yoke_status yoke_reducer_regroup(yoke_reducer *reducer, yoke_group *group,
                                          yoke_state *mine, yoke_state **furthest);

/* Before a forward of the model, whose number goes into *forward, for yoke_reducer_tie; it may be NULL. Errors: what
 * the group has failed with; STATE where a regroup has failed. [any-thread] */
YOKE_API yoke_status yoke_reducer_check(yoke_reducer *reducer, uint64_t *forward);

/* What the forward of that number gave, so that a backward which leads there is one of the reducer's even where it
 * leads to no parameter: such a rank then takes part with zeros, as all ranks must in each backward. Where nothing is
 * recorded, in a group of one, and of tensors that require no gradient beside some that do, nothing changes. Results of
 * ops that were recorded since it began are tied themselves, so of all ops where it is 0. For others, the
 * script's own, outs[i] becomes a view, and where no tensor requires a gradient, for each of floats, a tensor in the
 * same memory that does: go on with it in place of outputs[i]. Else it is NULL. [any-thread] */
YOKE_API yoke_status yoke_reducer_tie(yoke_reducer *reducer, uint64_t forward,
                                      yoke_tensor *const *outputs, int64_t count,
                                      yoke_tensor **outs);

/* What its compression goes on with elsewhere, of this rank: copies. A backward that begins meanwhile waits. Errors:
 * STATE while one runs. [any-thread] */
YOKE_API yoke_status yoke_reducer_state(yoke_reducer *reducer, yoke_state **out);
/* Errors: VALUE for that of another model or compression, STATE while a backward runs. [any-thread] */
YOKE_API yoke_status yoke_reducer_load_state(yoke_reducer *reducer, yoke_state *state);

/* ---- Examples -------------------------------------------------------------------------------------------- */

/* Which examples of a data set a rank takes: an epoch is one order of all, dealt out in turn. */
typedef struct yoke_sampler yoke_sampler;

typedef struct yoke_sampler_options {
    uint32_t struct_size; /* sizeof(yoke_sampler_options) */
    int32_t rank;
    int32_t world_size;
    int32_t no_shuffle; /* 1: the order is 0, 1, 2, ... */
    int32_t
        drop_last;  /* 1: so that all ranks have equally many the rest is left out, not repeated */
    int32_t no_pad; /* 1: each example goes to exactly one rank, so some may have one less */
    int64_t count;  /* of examples */
    int64_t seed;   /* alike on all ranks */
    /* `world_size` numbers that make 1: how much of the order each rank has, so that each whole step of all takes its
     * part. Each example goes to exactly one rank then. NULL: equal parts. */
    const double *shares;
} yoke_sampler_options;

/* How far all ranks together have come, whatever their number. */
typedef struct yoke_sampler_state {
    uint32_t struct_size; /* sizeof(yoke_sampler_state) */
    uint32_t reserved;
    int64_t epoch;
    int64_t consumed; /* of the epoch's order */
} yoke_sampler_state;

/* Errors: VALUE, with the option and both values. [any-thread] */
YOKE_API yoke_status yoke_sampler_create(const yoke_sampler_options *options, yoke_sampler **out);
/* NULL is ignored. [any-thread] */
YOKE_API void yoke_sampler_release(yoke_sampler *sampler);

/* The epoch of the next pass, 0 at first: each has an order of its own. [any-thread] */
YOKE_API yoke_status yoke_sampler_set_epoch(yoke_sampler *sampler, int64_t epoch);
/* Begins a pass: over what this rank has of the epoch, or, after yoke_sampler_load, of what is left of it. [any-thread]
 */
YOKE_API yoke_status yoke_sampler_begin(yoke_sampler *sampler);
/* The next example of the pass; -1 at its end. [any-thread] */
YOKE_API yoke_status yoke_sampler_next(yoke_sampler *sampler, int64_t *index);
/* How many examples a pass has that begins now; -1 on NULL. [any-thread] */
YOKE_API int64_t yoke_sampler_length(yoke_sampler *sampler);
/* Where the pass stands, when all ranks have taken as many steps as this one. [any-thread] */
YOKE_API yoke_status yoke_sampler_get_state(yoke_sampler *sampler, yoke_sampler_state *state);
/* The next pass goes on from there, on any number of ranks, without loss or repeat. Errors: VALUE for more examples
 * than there are. [any-thread] */
YOKE_API yoke_status yoke_sampler_load(yoke_sampler *sampler, const yoke_sampler_state *state);

/* The next pass deals what is left of the epoch among the ranks of `group`, which all call it: of that of the rank
 * which has come furthest, or as yoke_sampler_load says after it, alike on all. Shares stay as large beside each other
 * as they were. Errors: VALUE where some of the ranks have shares and some none; what the group has failed with.
 * [any-thread] */
YOKE_API yoke_status yoke_sampler_regroup(yoke_sampler *sampler, yoke_group *group);

#ifdef __cplusplus
}
#endif
#endif /* YOKE_PARALLEL_H */
