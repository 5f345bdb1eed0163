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

/* Treatment of a full bucket of gradients by the host program, in the thread that runs backward. `run` leaves the
 * mean over all ranks in `bucket`, a tensor of one axis, when it returns or when the work in *work has ended. *work
 * is NULL before the call, and the reference goes to Yoke. The buckets of a backward come in the order of `index`,
 * the same on all ranks. If `run` returns other than YOKE_OK, backward fails with the text of `problem`, which may be
 * NULL. `drop` runs once, after the last call. */
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
    yoke_dtype reduce_dtype;      /* for NCCL's sums of 16-bit floats: FLOAT32; 0: as NCCL does */
} yoke_reducer_options;

/* Creates a reducer. From now on a backward to one of these leaves, run on all ranks, leaves the mean over the ranks
 * in the gradients of all leaves. A parameter unused on this rank gets the mean too, if another rank used it; a
 * parameter unused on all ranks keeps no gradient. A parameter without requires_grad at this call takes no part. All
 * ranks call it with parameters of the same number, names, shapes, dtypes and requires_grad. If values of parameters
 * or buffers differ, all ranks take rank 0's, and rank 0 logs this. After each such backward all ranks have the
 * buffers of rank 0. `options` may be NULL. In a group of one rank the reducer has no effect.
 *
 * While a backward runs, no other call of the group is allowed. If a backward fails or is refused, the group ends for
 * all ranks with the reason. Such a backward leaves only gradients of this rank. After a call has reported the
 * failure on this rank, a backward of later recorded ops also leaves only this rank's gradients, without an error.
 *
 * Errors: VALUE if the ranks' parameters or options differ, with the first difference; for a tensor that is not a
 * leaf; if no parameter requires a gradient; for a repeated parameter; and for an unknown compression. STATE for a
 * parameter of another reducer whose group has not failed: release this reducer first. [any-thread]
 *
 * Source: S. Li et al., "PyTorch Distributed: Experiences on accelerating data parallel training", 2020. */
YOKE_API yoke_status yoke_reducer_create(yoke_group *group, yoke_tensor *const *params,
                                         const char *const *names, int64_t count,
                                         yoke_tensor *const *buffers,
                                         const char *const *buffer_names, int64_t buffer_count,
                                         const yoke_reducer_options *options, yoke_reducer **out);

/* Releases the reducer; leaves then keep their gradients themselves. Unless its group has failed, a later backward of
 * ops recorded before is STATE. NULL is ignored. Not while a backward runs. [any-thread] */
YOKE_API void yoke_reducer_release(yoke_reducer *reducer);

/* Sets whether backward reduces gradients. Off: backward adds up this rank's gradients alone, and the next backward
 * with sync on reduces the sum. On at first. [any-thread] */
YOKE_API yoke_status yoke_reducer_set_sync(yoke_reducer *reducer, int32_t enabled);
/* Returns 1 or 0; -1 on NULL. [any-thread] */
YOKE_API int32_t yoke_reducer_get_sync(yoke_reducer *reducer);

/* Sets how much this rank counts from the next backward on, 1 at first: gradients become the sum of n times gradient
 * over all ranks by the sum of their n. Errors: VALUE unless above 0 and finite. [any-thread] */
YOKE_API yoke_status yoke_reducer_set_weight(yoke_reducer *reducer, double n);

/* Lets ranks have different numbers of batches. Between begin and end this rank runs its backward passes. In end it
 * answers the backward passes of other ranks with weight 0, until all ranks have called end. Then all ranks have the
 * parameters, buffers and gradients of a rank that arrived last; a gradient missing there is missing on all ranks.
 * *last is the `mine` of this rank, such as the state of its optimizer; on the other ranks its tensors lie on the
 * CPU. `mine` is NULL on all ranks or on none; if NULL, *last is NULL. At each backward either all ranks are in a
 * join or none; else the backward is an error on all ranks. The join applies to the only reducer of the group.
 * Errors: STATE if there is no reducer, or several; for a rank within no_sync, or with gradients added up there and
 * not reduced; and on all ranks if no rank had a backward; the failure of the group. [any-thread] */
YOKE_API yoke_status yoke_group_join_begin(yoke_group *group);
YOKE_API yoke_status yoke_group_join_end(yoke_group *group, yoke_state *mine, yoke_state **last);

/* Moves the reducer to `group`, such as a group from yoke_group_shrink; all its ranks call it, and may have stopped
 * at different steps. All ranks get the parameters, buffers and compression state of the furthest rank. *furthest is
 * the `mine` of this rank, as in yoke_group_join_end. Gradients are removed, and the failed step must be run again.
 * If the call fails, parameters and buffers are as before, leaves keep their gradients themselves, and a call with
 * another group is allowed. Not while a backward runs. Errors on all ranks, after which they may call again with this
 * group: VALUE if parameters differ between ranks. STATE if ranks of the same former group give different modules, if
 * another reducer reduces the gradients of a parameter, or if some ranks call yoke_reducer_create instead. STATE if
 * all living ranks of the former group have written parameters after reductions that their devices did not finish:
 * load the last saved state into all parameters first. Any other failure ends the group. [any-thread] */
YOKE_API yoke_status yoke_reducer_regroup(yoke_reducer *reducer, yoke_group *group,
                                          yoke_state *mine, yoke_state **furthest);

/* Checks the group before a forward of the model. The number of the forward goes into *forward (or NULL), for
 * yoke_reducer_tie. Errors: the failure of the group; STATE if a regroup has failed. [any-thread] */
YOKE_API yoke_status yoke_reducer_check(yoke_reducer *reducer, uint64_t *forward);

/* Ties outputs of the forward with this number to the reducer. Then a backward from an output belongs to the reducer
 * even if it reaches no parameter: such a rank takes part with zeros, as all ranks must in each backward. Nothing
 * changes if nothing is recorded, in a group of one rank, and for tensors without requires_grad beside tensors with
 * it. Results of ops recorded since the begin of the forward are tied in place; with `forward` 0 this includes all
 * ops. For other tensors, which belong to the script, outs[i] becomes a view. If no tensor requires a gradient,
 * outs[i] of each floating tensor is a tensor of the same memory with requires_grad. Go on with outs[i] in place of
 * outputs[i]. Else outs[i] is NULL. [any-thread] */
YOKE_API yoke_status yoke_reducer_tie(yoke_reducer *reducer, uint64_t forward,
                                      yoke_tensor *const *outputs, int64_t count,
                                      yoke_tensor **outs);

/* Copies the state of this rank's compression, to go on with elsewhere. If a backward begins meanwhile, it waits.
 * Errors: STATE while a backward runs. [any-thread] */
YOKE_API yoke_status yoke_reducer_state(yoke_reducer *reducer, yoke_state **out);
/* Loads the state. Errors: VALUE if model or compression are others, STATE while a backward runs. [any-thread] */
YOKE_API yoke_status yoke_reducer_load_state(yoke_reducer *reducer, yoke_state *state);

/* ---- Examples -------------------------------------------------------------------------------------------- */

/* Choice of the examples of a data set for a rank: an epoch is one order of all examples, dealt out in turn. */
typedef struct yoke_sampler yoke_sampler;

typedef struct yoke_sampler_options {
    uint32_t struct_size; /* sizeof(yoke_sampler_options) */
    int32_t rank;
    int32_t world_size;
    int32_t no_shuffle; /* 1: the order is 0, 1, 2, ... */
    int32_t
        drop_last;  /* 1: so that all ranks have equally many the rest is left out, not repeated */
    int32_t no_pad; /* 1: each example on exactly 1 rank; some ranks may have one less */
    int64_t count;  /* number of examples */
    int64_t seed;   /* alike on all ranks */
    /* Part of the order for each rank: `world_size` numbers with the sum 1. In each step over all ranks a rank takes
     * its part. Each example then goes to exactly one rank. NULL: equal parts. */
    const double *shares;
} yoke_sampler_options;

/* Progress of all ranks together, for any number of ranks. */
typedef struct yoke_sampler_state {
    uint32_t struct_size; /* sizeof(yoke_sampler_state) */
    uint32_t reserved;
    int64_t epoch;
    int64_t consumed; /* in the epoch's order */
} yoke_sampler_state;

/* Creates a sampler. Errors: VALUE, with the option and both values. [any-thread] */
YOKE_API yoke_status yoke_sampler_create(const yoke_sampler_options *options, yoke_sampler **out);
/* Releases the sampler. NULL is ignored. [any-thread] */
YOKE_API void yoke_sampler_release(yoke_sampler *sampler);

/* Sets the epoch of the next pass, 0 at first. Each epoch has its own order. [any-thread] */
YOKE_API yoke_status yoke_sampler_set_epoch(yoke_sampler *sampler, int64_t epoch);
/* Begins a pass over this rank's part of the epoch; after yoke_sampler_load, over its part of the rest. [any-thread] */
YOKE_API yoke_status yoke_sampler_begin(yoke_sampler *sampler);
/* Returns the next example of the pass; -1 at its end. [any-thread] */
YOKE_API yoke_status yoke_sampler_next(yoke_sampler *sampler, int64_t *index);
/* Returns how many examples a pass has that begins now; -1 on NULL. [any-thread] */
YOKE_API int64_t yoke_sampler_length(yoke_sampler *sampler);
/* Returns where the pass is, when all ranks have taken as many steps as this one. [any-thread] */
YOKE_API yoke_status yoke_sampler_get_state(yoke_sampler *sampler, yoke_sampler_state *state);
/* Loads a state: the next pass goes on from there, on any number of ranks, without loss or repeat. Errors: VALUE for
 * more examples than there are. [any-thread] */
YOKE_API yoke_status yoke_sampler_load(yoke_sampler *sampler, const yoke_sampler_state *state);

/* Deals the rest of the epoch anew among the ranks of `group`, from the next pass on; all its ranks call it. The rest
 * is that of the furthest rank. A later yoke_sampler_load, the same on all ranks, sets another place. Shares keep
 * their ratios. Errors: VALUE if only some of the ranks have shares; the failure of the group. [any-thread] */
YOKE_API yoke_status yoke_sampler_regroup(yoke_sampler *sampler, yoke_group *group);

#ifdef __cplusplus
}
#endif
#endif /* YOKE_PARALLEL_H */
