/*
 * yoke/optim.h: optimizers, clipping, averages of parameters and schedules. Loss scaling is in amp.h.
 *
 * An optimizer holds groups of parameters, each with its options, and retains its parameters. A step changes all
 * parameters of a group in one call over many tensors. Functions for all optimizers are yoke_optimizer_*. Functions
 * for one kind carry its name, yoke_sgd_*, and refuse an optimizer of another kind. Groups and parameters count from
 * 0 in the order of their addition.
 *
 * No step waits for the device: the number of steps is a scalar there, and so is the flag that forbids a step
 * (yoke_grad_scaler_step). A failed step has changed nothing.
 *
 * With master_weights a float16 or bfloat16 parameter has a float32 copy. The steps change the copy, and the
 * parameter is the rounded copy. The state of such a parameter is float32.
 *
 * Calls on an optimizer or an average come from one thread at a time: while a call runs, a second thread gets STATE.
 */
#ifndef YOKE_OPTIM_H
#define YOKE_OPTIM_H

#include "yoke/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Stochastic gradient descent --------------------------------------------------------------------- */

/* With gradient g of parameter p, as in PyTorch:
 *     g += weight_decay · p;  b = momentum · b + g (b = g at first);  p -= lr · (nesterov ? g + momentum · b : b)
 */
typedef struct yoke_sgd_options {
    uint32_t struct_size; /* sizeof(yoke_sgd_options) */
    int32_t nesterov;     /* 1 needs momentum > 0 */
    double lr;            /* ≥ 0 */
    double momentum;      /* ≥ 0; 0 keeps no buffer */
    double weight_decay;  /* ≥ 0 */
    int32_t
        master_weights; /* 1: float32 copies of half parameters; fixed once the group is there */
    int32_t reserved;   /* 0 */
} yoke_sgd_options;

/* Creates an optimizer without parameters; `defaults` serve groups without options.
 * Errors: VALUE for a number out of its range. [any-thread] */
YOKE_API yoke_status yoke_sgd_create(const yoke_sgd_options *defaults, yoke_optimizer **out);

/* Adds `count` parameters as one group; `options` NULL takes the defaults. Errors: VALUE for a repeated parameter,
 * TYPE for a parameter with a dtype that is not floating, STATE for a tensor that is not a leaf. [any-thread] */
YOKE_API yoke_status yoke_sgd_add_group(yoke_optimizer *optimizer, yoke_tensor *const *params,
                                        int64_t count, const yoke_sgd_options *options);

/* Copies the options of a group out; `options->struct_size` says how much. [any-thread] */
YOKE_API yoke_status yoke_sgd_get_options(yoke_optimizer *optimizer, int64_t group,
                                          yoke_sgd_options *options);

/* Replaces the options of a group from the next step on. Errors: as yoke_sgd_create. [any-thread] */
YOKE_API yoke_status yoke_sgd_set_options(yoke_optimizer *optimizer, int64_t group,
                                          const yoke_sgd_options *options);

/* ---- Adam and AdamW ---------------------------------------------------------------------------------- */

/* With gradient g of parameter p in step t, as in PyTorch:
 *     m += (1 - beta1) · (g - m);  v = beta2 · v + (1 - beta2) · g²
 *     p -= lr / (1 - beta1^t) · m / (sqrt(v / (1 - beta2^t)) + eps)
 * Weight decay: Adam adds weight_decay · p to g; AdamW takes lr · weight_decay · p off p.
 */
typedef struct yoke_adam_options {
    uint32_t struct_size;   /* sizeof(yoke_adam_options) */
    int32_t master_weights; /* as in yoke_sgd_options */
    double lr;              /* ≥ 0; PyTorch's default is 1e-3 */
    double beta1, beta2;    /* in [0, 1); 0.9 and 0.999 */
    double eps;             /* ≥ 0; 1e-8 */
    double weight_decay;    /* ≥ 0; 0 for Adam, 1e-2 for AdamW */
} yoke_adam_options;

/* Creates an optimizer without parameters; `defaults` serve groups without options.
 * Errors: VALUE for a number out of its range. [any-thread] */
YOKE_API yoke_status yoke_adam_create(const yoke_adam_options *defaults, yoke_optimizer **out);
YOKE_API yoke_status yoke_adamw_create(const yoke_adam_options *defaults, yoke_optimizer **out);

/* Adds or reads groups of Adam and AdamW, as for SGD. [any-thread] */
YOKE_API yoke_status yoke_adam_add_group(yoke_optimizer *optimizer, yoke_tensor *const *params,
                                         int64_t count, const yoke_adam_options *options);
YOKE_API yoke_status yoke_adam_get_options(yoke_optimizer *optimizer, int64_t group,
                                           yoke_adam_options *options);
YOKE_API yoke_status yoke_adam_set_options(yoke_optimizer *optimizer, int64_t group,
                                           const yoke_adam_options *options);

/* ---- Any optimizer ----------------------------------------------------------------------------------- */

/* Adds a reference to an optimizer and returns the optimizer. NULL is passed through. [any-thread] */
YOKE_API yoke_optimizer *yoke_optimizer_retain(yoke_optimizer *optimizer);

/* Releases a reference; the last release frees parameters and state. NULL is ignored. [any-thread] */
YOKE_API void yoke_optimizer_release(yoke_optimizer *optimizer);

/* Steps over every parameter with a gradient; other parameters stay. Not recorded. [any-thread] */
YOKE_API yoke_status yoke_optimizer_step(yoke_optimizer *optimizer);

/* Forgets all gradients (`set_to_none` 1) or fills them with zeros (0). [any-thread] */
YOKE_API yoke_status yoke_optimizer_zero_grad(yoke_optimizer *optimizer, int32_t set_to_none);

/* Returns the learning rate of a group. Errors: INDEX for a group that is not there. [any-thread] */
YOKE_API yoke_status yoke_optimizer_get_lr(yoke_optimizer *optimizer, int64_t group, double *lr);

/* Sets the learning rate of a group, or of all with group -1. [any-thread] */
YOKE_API yoke_status yoke_optimizer_set_lr(yoke_optimizer *optimizer, int64_t group, double lr);

/* Returns the number of groups; -1 on NULL. [any-thread] */
YOKE_API int64_t yoke_optimizer_group_count(yoke_optimizer *optimizer);

/* Returns the number of parameters in a group. Errors: INDEX for a group that is not there. [any-thread] */
YOKE_API yoke_status yoke_optimizer_param_count(yoke_optimizer *optimizer, int64_t group,
                                                int64_t *count);

/* Returns parameter `index` of a group. Errors: INDEX. [any-thread] */
YOKE_API yoke_status yoke_optimizer_param(yoke_optimizer *optimizer, int64_t group, int64_t index,
                                          yoke_tensor **out);

/* Returns the name of the state with this index, counted from 0; NULL after the last name. SGD: "momentum", "master";
 * Adam, AdamW: "exp_avg", "exp_avg_sq", "step" (a float32 scalar), "master". Borrowed for ever. [any-thread] */
YOKE_API const char *yoke_optimizer_state_name(yoke_optimizer *optimizer, int64_t index);

/* Returns the state of a parameter by name, to be saved; NULL before there is any. The tensor is the live
 * state, not a copy. Errors: INDEX, VALUE for an unknown name. [any-thread] */
YOKE_API yoke_status yoke_optimizer_get_state(yoke_optimizer *optimizer, int64_t group,
                                              int64_t index, const char *name, yoke_tensor **out);

/* Replaces this state with a copy of `value`, or drops the state with NULL. Errors: as above, and VALUE or TYPE if
 * shape or dtype differ from the state's. "step" must be a whole number of at least 0; the call waits for the device
 * to read it. [any-thread] */
YOKE_API yoke_status yoke_optimizer_set_state(yoke_optimizer *optimizer, int64_t group,
                                              int64_t index, const char *name, yoke_tensor *value);

/* Notes that a schedule over the optimizer goes on to its next step; yoke_schedule_apply does this itself. If this
 * call comes before the optimizer's first step, the log says so once for each optimizer. [any-thread] */
YOKE_API yoke_status yoke_optimizer_note_schedule(yoke_optimizer *optimizer);

/* ---- Clipping ---------------------------------------------------------------------------------------- */

/* Multiplies the gradients of `params` by max_norm / (norm + 1e-6) if this factor is below 1. `*norm` is their norm
 * before, computed as of one vector: a scalar on the device, float32 (float64 if a gradient is). norm_type 2, 1,
 * infinity or any p > 0. Parameters without a gradient are skipped; if there is no parameter at all, the log says so
 * once. Never waits for the device. Errors: VALUE for numbers out of range and several devices. [any-thread] */
YOKE_API yoke_status yoke_clip_grad_norm(yoke_tensor *const *params, int64_t count, double max_norm,
                                         double norm_type, yoke_tensor **norm);

/* ---- Averages of parameters -------------------------------------------------------------------------- */

typedef struct yoke_ema yoke_ema;

/* Creates an exponential moving average. It begins as a copy of `params` and retains them. Averages are float32
 * (float64 for float64). Errors: VALUE for a decay outside [0, 1], TYPE for a parameter with a dtype that is not
 * floating. [any-thread] */
YOKE_API yoke_status yoke_ema_create(yoke_tensor *const *params, int64_t count, double decay,
                                     yoke_ema **out);
/* Releases the averages. NULL is ignored. [any-thread] */
YOKE_API void yoke_ema_release(yoke_ema *ema);

/* Computes average = decay · average + (1 - decay) · parameter; call it after each step. Errors: STATE between
 * two swaps, when the averages stand in the parameters' place. [any-thread] */
YOKE_API yoke_status yoke_ema_update(yoke_ema *ema);

/* Puts the averages into the parameters. Errors: STATE between two swaps. [any-thread] */
YOKE_API yoke_status yoke_ema_copy_to_params(yoke_ema *ema);

/* Puts the averages into the parameters; the next call puts the former parameters back. Call it once before an
 * evaluation and once after. The averages stay as they are. [any-thread] */
YOKE_API yoke_status yoke_ema_swap(yoke_ema *ema);

/* Returns the average of parameter `index`, live: it may be saved, and written. Errors: INDEX. [any-thread] */
YOKE_API yoke_status yoke_ema_average(yoke_ema *ema, int64_t index, yoke_tensor **out);

/* ---- Schedules: the learning rate at `step`, which counts from 0 ------------------------------------- */

/* Returns start + (end - start) · step / total_steps: `start` up to step 0, `end` from total_steps on.
 * [any-thread] */
YOKE_API double yoke_schedule_linear(double start, double end, int64_t total_steps, int64_t step);

/* Returns factor · base before total_steps, base from then on. [any-thread] */
YOKE_API double yoke_schedule_constant(double base, double factor, int64_t total_steps,
                                       int64_t step);

/* Returns base · (step + 1) / (warmup_steps + 1) during warmup_steps, then half a cosine down to `end` at
 * total_steps, held from then on. [any-thread] */
YOKE_API double yoke_schedule_cosine(double base, double end, int64_t total_steps,
                                     int64_t warmup_steps, int64_t step);

/* Returns base · gamma^(step / step_size), rounded down. [any-thread] */
YOKE_API double yoke_schedule_step(double base, int64_t step_size, double gamma, int64_t step);

/* Returns the rate: half a cosine up from max / div to max over pct_start of total_steps, another down to
 * max / div / final_div at the last of them, held from then on. [any-thread] */
YOKE_API double yoke_schedule_one_cycle(double max, int64_t total_steps, double pct_start,
                                        double div, double final_div, int64_t step);

#ifdef __cplusplus
}
#endif
#endif /* YOKE_OPTIM_H */
