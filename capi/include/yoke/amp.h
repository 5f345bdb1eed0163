/*
 * yoke/amp.h: mixed precision.
 *
 * While an autocast region is in force in a thread, each op runs in a suitable dtype. Matrix products run in a 16-bit
 * float, and ops with a need for range or precision run in float32 (list in docs/ops.md). Arguments are cast as
 * needed; float64 and integers are never cast. yoke_backward sees the casts, as they are recorded. Casts of float32
 * weights (leaves that require grad) are kept until the outermost region is released or the weight is written: by an
 * op, an optimizer, a replay of a graph, yoke_tensor_copy_from_host. Yoke does not see a write by address
 * (yoke_tensor_data, a NumPy array or a DLPack consumer with shared memory). For such a write leave all regions, or
 * write once more through Yoke afterwards, or give `cache_enabled` 0. A capture shares no kept cast with code outside
 * of the capture: each replay casts the current weights.
 */
#ifndef YOKE_AMP_H
#define YOKE_AMP_H

#include "yoke/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Autocast ---------------------------------------------------------------------------------------- */

typedef struct yoke_autocast yoke_autocast;

/* Creates a region, nested in the calling thread's region in force; the two share the kept casts. yoke_autocast_swap
 * puts the region in force. `enabled` 0: ops inside run in the dtypes of their arguments. `dtype` is YOKE_F16,
 * YOKE_BF16, or YOKE_NONE for the usual dtype of each device: float16 on cuda, bfloat16 on cpu. `cache_enabled` 0:
 * each op casts weights anew. Errors: VALUE for another dtype. [any-thread] */
YOKE_API yoke_status yoke_autocast_create(int32_t enabled, yoke_dtype dtype, int32_t cache_enabled,
                                          yoke_autocast **out);

/* Puts a region (NULL: none) in force in the calling thread and returns the previous region, so that a scope can
 * restore it. A region lives while it is in force in any thread. The returned region lives on only while its maker
 * holds a reference. A region and its nested regions may be in force in several threads at once; these threads share
 * the kept casts. If this is the thread's first call and no host memory is left, nothing comes into force, and the
 * last error is OOM. [any-thread] */
YOKE_API yoke_autocast *yoke_autocast_swap(yoke_autocast *region);

/* Returns the region in force in the calling thread, or NULL; borrowed while it is in force. [any-thread] */
YOKE_API yoke_autocast *yoke_autocast_current(void);

/* Adds a reference and returns the argument, which may be NULL. [any-thread] */
YOKE_API yoke_autocast *yoke_autocast_retain(yoke_autocast *region);

/* Releases a reference. The last of the nested regions also releases the kept casts. [any-thread] */
YOKE_API void yoke_autocast_release(yoke_autocast *region);

/* Returns 1 while ops of the calling thread are cast, else 0. [any-thread] */
YOKE_API int32_t yoke_is_autocast_enabled(void);

/* Returns the 16-bit float of casts on `device` (NULL: the current device) in the region in force. Without a region,
 * returns the dtype of a region made with YOKE_NONE. YOKE_NONE on failure. [any-thread] */
YOKE_API yoke_dtype yoke_autocast_dtype(yoke_device *device);

/* ---- TF32 -------------------------------------------------------------------------------------------- */

/* Sets whether matrix products of float32 may round their factors to TF32 (10 bits of mantissa; sums stay float32).
 * Tensor cores from Ampere on multiply TF32 several times as fast. The setting holds for the whole process, from the
 * next op on. A graph keeps the setting of its capture, and backward reads the setting anew. The CPU never rounds.
 * The default is 0, unless YOKE_ALLOW_TF32 is 1. [any-thread] */
YOKE_API yoke_status yoke_set_allow_tf32(int32_t enabled);

/* Returns 1 or 0; -1 if YOKE_ALLOW_TF32 cannot be read. [any-thread] */
YOKE_API int32_t yoke_get_allow_tf32(void);

/* ---- Loss scaling ------------------------------------------------------------------------------------ */

/* Gradient scaler for float16, whose small gradients would vanish: the loss is multiplied by a large scale, and the
 * gradients are divided by the scale before the step. If a gradient is not finite, the step is skipped and the scale
 * shrinks. After growth_interval iterations without a skip the scale grows. The rules are those of PyTorch's
 * GradScaler, but the scale never falls below FLT_MIN, because the reciprocal of FLT_MIN is finite. The log warns
 * once when the scale reaches FLT_MIN.
 *
 *     yoke_grad_scaler_scale(scaler, loss, &scaled);  yoke_backward(scaled);
 *     yoke_grad_scaler_step(scaler, optimizer);       yoke_grad_scaler_update(scaler);
 *
 * Scale and overflow flags stay on the device; only get_state waits for them. Calls on one scaler come from one
 * thread at a time: while a call runs, a second thread gets STATE. */
typedef struct yoke_grad_scaler yoke_grad_scaler;

typedef struct yoke_grad_scaler_options {
    uint32_t struct_size; /* sizeof(yoke_grad_scaler_options) */
    int32_t disabled; /* 1: scale returns its argument, step steps, other calls have no effect */
    double scale;     /* ≥ FLT_MIN, the scale at first; 65536 in PyTorch */
    double growth_factor;    /* > 1; 2 */
    double backoff_factor;   /* between 0 and 1; 0.5 */
    int64_t growth_interval; /* ≥ 1; 2000 */
    int64_t growth_tracker;  /* ≥ 0: iterations without overflow so far; 0 */
} yoke_grad_scaler_options;

/* Creates a scaler. Errors: VALUE for a number out of its range. [any-thread] */
YOKE_API yoke_status yoke_grad_scaler_create(const yoke_grad_scaler_options *options,
                                             yoke_grad_scaler **out);
/* Releases the scaler. NULL is ignored. [any-thread] */
YOKE_API void yoke_grad_scaler_release(yoke_grad_scaler *scaler);

/* Multiplies x by the scale, recorded. Errors: TYPE unless x is floating. [any-thread] */
YOKE_API yoke_status yoke_grad_scaler_scale(yoke_grad_scaler *scaler, yoke_tensor *x,
                                            yoke_tensor **out);

/* Divides the gradients of an optimizer by the scale, in place, so that they can be looked at or clipped
 * before the step. Errors: STATE if nothing was scaled, no parameter has a gradient, or this optimizer was
 * unscaled or stepped since the last update; TYPE for a float16 gradient. [any-thread] */
YOKE_API yoke_status yoke_grad_scaler_unscale(yoke_grad_scaler *scaler, yoke_optimizer *optimizer);

/* Unscales, if the gradients are not yet unscaled, and steps unless a gradient is not finite. Errors: STATE if
 * nothing was scaled, this optimizer has stepped since the last update, or no parameter has a gradient; TYPE as
 * above. After another error the caller may repeat the step with the same gradients. A caller with new gradients
 * calls update first. [any-thread] */
YOKE_API yoke_status yoke_grad_scaler_step(yoke_grad_scaler *scaler, yoke_optimizer *optimizer);

/* Ends an iteration, after the steps of all its optimizers: works out the next scale.
 * Errors: STATE if no gradients have been looked at. [any-thread] */
YOKE_API yoke_status yoke_grad_scaler_update(yoke_grad_scaler *scaler);

/* Ends an iteration with a scale of the caller: a floating tensor of one element. Errors: VALUE for a scale in host
 * memory that is below FLT_MIN or infinite; the call does not wait for a device. [any-thread] */
YOKE_API yoke_status yoke_grad_scaler_update_to(yoke_grad_scaler *scaler, yoke_tensor *scale);

/* Reads all values with which another scaler continues; waits for the device. [any-thread] */
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
