/*
 * yoke/amp.h: mixed precision.
 *
 * While an autocast region is in force in a thread, each op runs in the dtype that suits it: matrix
 * products in a half, what needs range or precision in float32. Which is which stands in docs/ops.md;
 * arguments are cast as needed, float64 and integers never, and casts are recorded for yoke_backward.
 * Casts of float32 weights (leaves that require grad) are kept until the outermost region is released, or the
 * weight is written: by an op, an optimizer, a replay of a graph, yoke_tensor_copy_from_host. What writes it by
 * address (yoke_tensor_data, a NumPy array or a DLPack consumer that shares its memory) is not seen: do it outside
 * of regions, follow it by any write of Yoke's own, or give `cache_enabled` 0. A capture shares no kept cast with
 * what runs outside of it: each replay casts the weights that it finds.
 */
#ifndef YOKE_AMP_H
#define YOKE_AMP_H

#include "yoke/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Autocast ---------------------------------------------------------------------------------------- */

typedef struct yoke_autocast yoke_autocast;

/* A region, nested in the one in force in the calling thread, whose kept casts it shares. It comes into
 * force with yoke_autocast_swap. `enabled` 0: ops inside run in the dtypes they are given. `dtype` is
 * YOKE_F16, YOKE_BF16, or YOKE_NONE for what suits each device: float16 on cuda, bfloat16 on cpu.
 * `cache_enabled` 0: weights are cast anew by each op. Errors: VALUE for another dtype. [any-thread] */
YOKE_API yoke_status yoke_autocast_create(int32_t enabled, yoke_dtype dtype, int32_t cache_enabled,
                                          yoke_autocast **out);

/* Puts a region (NULL: none) in force in the calling thread and returns the one before, so that a scope
 * can restore it. A region lives while it is in force somewhere; the one that is returned lives on only
 * if its maker has not released it. A region, and those nested in it, may be in force in several threads at
 * once, which share the kept casts. If this is the thread's first call and the host has no memory left,
 * nothing comes into force, and the last error is OOM. [any-thread] */
YOKE_API yoke_autocast *yoke_autocast_swap(yoke_autocast *region);

/* The region in force in the calling thread, or NULL; borrowed while it is in force. [any-thread] */
YOKE_API yoke_autocast *yoke_autocast_current(void);

/* One more reference; returns its argument, which may be NULL. [any-thread] */
YOKE_API yoke_autocast *yoke_autocast_retain(yoke_autocast *region);

/* The kept casts go with the last of the nested regions. [any-thread] */
YOKE_API void yoke_autocast_release(yoke_autocast *region);

/* 1 while ops of the calling thread are cast. [any-thread] */
YOKE_API int32_t yoke_is_autocast_enabled(void);

/* The half that ops on `device` (NULL: the current one) are cast to in the region in force, and in a
 * region without a dtype where none is. YOKE_NONE on failure. [any-thread] */
YOKE_API yoke_dtype yoke_autocast_dtype(yoke_device *device);

/* ---- TF32 -------------------------------------------------------------------------------------------- */

/* Whether matrix products of float32 may round what they multiply to TF32 (10 bits of mantissa; sums stay
 * float32), which tensor cores from Ampere on multiply several times as fast. For the whole process, from
 * the next op on; a graph keeps what was allowed at its capture, and backward asks anew. The CPU never
 * rounds. Not allowed at first, unless YOKE_ALLOW_TF32 is 1. [any-thread] */
YOKE_API yoke_status yoke_set_allow_tf32(int32_t enabled);

/* 1 or 0; -1 if YOKE_ALLOW_TF32 cannot be read. [any-thread] */
YOKE_API int32_t yoke_get_allow_tf32(void);

/* ---- Loss scaling ------------------------------------------------------------------------------------ */

/* For float16, whose small gradients would vanish: the loss is multiplied by a large scale, gradients are
 * divided by it before the step. A step is skipped if one of them is not finite, and the scale shrinks;
 * after growth_interval iterations without that it grows. The rules are those of PyTorch's GradScaler,
 * but the scale never falls below FLT_MIN, whose reciprocal is finite; the log warns once when it gets there.
 *
 *     yoke_grad_scaler_scale(scaler, loss, &scaled);  yoke_backward(scaled);
 *     yoke_grad_scaler_step(scaler, optimizer);       yoke_grad_scaler_update(scaler);
 *
 * Scale and overflow flags stay on the device, and nothing waits for them but get_state. Calls on one
 * scaler come from one thread at a time: while one is inside, another gets STATE. */
typedef struct yoke_grad_scaler yoke_grad_scaler;

typedef struct yoke_grad_scaler_options {
    uint32_t struct_size;    /* sizeof(yoke_grad_scaler_options) */
    int32_t disabled;        /* 1: scale gives its argument, step steps, the rest does nothing */
    double scale;            /* ≥ FLT_MIN, the scale at first; 65536 in PyTorch */
    double growth_factor;    /* > 1; 2 */
    double backoff_factor;   /* between 0 and 1; 0.5 */
    int64_t growth_interval; /* ≥ 1; 2000 */
    int64_t growth_tracker;  /* ≥ 0: iterations without overflow so far; 0 */
} yoke_grad_scaler_options;

/* Errors: VALUE for a number out of its range. [any-thread] */
YOKE_API yoke_status yoke_grad_scaler_create(const yoke_grad_scaler_options *options,
                                             yoke_grad_scaler **out);
/* NULL is ignored. [any-thread] */
YOKE_API void yoke_grad_scaler_release(yoke_grad_scaler *scaler);

/* x times the scale, recorded. Errors: TYPE unless x is floating. [any-thread] */
YOKE_API yoke_status yoke_grad_scaler_scale(yoke_grad_scaler *scaler, yoke_tensor *x,
                                            yoke_tensor **out);

/* Divides the gradients of an optimizer by the scale, in place, so that they can be looked at or clipped
 * before the step. Errors: STATE if nothing was scaled, no parameter has a gradient, or this optimizer was
 * unscaled or stepped since the last update; TYPE for a float16 gradient. [any-thread] */
YOKE_API yoke_status yoke_grad_scaler_unscale(yoke_grad_scaler *scaler, yoke_optimizer *optimizer);

/* Unscales, if that was not done yet, and steps unless a gradient was not finite. Errors: STATE if nothing
 * was scaled, this optimizer has stepped since the last update, or no parameter has a gradient; TYPE as
 * above. After another error the step may be made again, with the same gradients; whoever goes on with
 * other ones calls update before. [any-thread] */
YOKE_API yoke_status yoke_grad_scaler_step(yoke_grad_scaler *scaler, yoke_optimizer *optimizer);

/* Ends an iteration, after the steps of all its optimizers: works out the next scale.
 * Errors: STATE if no gradients have been looked at. [any-thread] */
YOKE_API yoke_status yoke_grad_scaler_update(yoke_grad_scaler *scaler);

/* Ends an iteration with a scale of the caller's: a floating tensor of one element. Errors: VALUE for one
 * in the host's memory that is below FLT_MIN or infinite; a device is not waited for. [any-thread] */
YOKE_API yoke_status yoke_grad_scaler_update_to(yoke_grad_scaler *scaler, yoke_tensor *scale);

/* Everything that a scaler which goes on from here needs; waits for the device. [any-thread] */
YOKE_API yoke_status yoke_grad_scaler_get_state(yoke_grad_scaler *scaler,
                                                yoke_grad_scaler_options *state);

/* Takes over such a state, and begins an iteration; `disabled` stays as it was made. Errors: as
 * yoke_grad_scaler_create, but a scale from 0 to FLT_MIN is taken as FLT_MIN. [any-thread] */
YOKE_API yoke_status yoke_grad_scaler_set_state(yoke_grad_scaler *scaler,
                                                const yoke_grad_scaler_options *state);

/* Changes the rule alone; scale and tracker stay as they are. [any-thread] */
YOKE_API yoke_status yoke_grad_scaler_set_rule(yoke_grad_scaler *scaler, double growth_factor,
                                               double backoff_factor, int64_t growth_interval);

#ifdef __cplusplus
}
#endif
#endif /* YOKE_AMP_H */
