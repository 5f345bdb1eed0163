/*
 * yoke/optim.h: optimizers and schedules.
 *
 * An optimizer holds groups of parameters, each with options of its own, and retains its parameters.
 * A step changes all parameters of a group in one call over many tensors. What is common to all
 * optimizers is yoke_optimizer_*; what belongs to one kind carries its name, yoke_sgd_*, and refuses
 * an optimizer of another kind. Groups and parameters count from 0 in the order they were added.
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
} yoke_sgd_options;

/* An optimizer without parameters; `defaults` serve the groups that bring no options.
 * Errors: VALUE for a number out of its range. [any-thread] */
YOKE_API yoke_status yoke_sgd_create(const yoke_sgd_options *defaults, yoke_optimizer **out);

/* Adds `count` parameters as one group; `options` NULL takes the defaults. Errors: VALUE for a
 * parameter twice, TYPE for one that is not floating, STATE for one that is no leaf. [any-thread] */
YOKE_API yoke_status yoke_sgd_add_group(yoke_optimizer *optimizer, yoke_tensor *const *params,
                                        int64_t count, const yoke_sgd_options *options);

/* The options of a group, copied out; `options->struct_size` says how much. [any-thread] */
YOKE_API yoke_status yoke_sgd_get_options(yoke_optimizer *optimizer, int64_t group,
                                          yoke_sgd_options *options);

/* Replaces the options of a group from the next step on. Errors: as yoke_sgd_create. [any-thread] */
YOKE_API yoke_status yoke_sgd_set_options(yoke_optimizer *optimizer, int64_t group,
                                          const yoke_sgd_options *options);

/* ---- Any optimizer ----------------------------------------------------------------------------------- */

/* One more reference to an optimizer; returns it. NULL is passed through. [any-thread] */
YOKE_API yoke_optimizer *yoke_optimizer_retain(yoke_optimizer *optimizer);

/* One reference less; the last one releases parameters and state. NULL is ignored. [any-thread] */
YOKE_API void yoke_optimizer_release(yoke_optimizer *optimizer);

/* One step over every parameter that has a gradient; the others stay. Not recorded. [any-thread] */
YOKE_API yoke_status yoke_optimizer_step(yoke_optimizer *optimizer);

/* Forgets all gradients (`set_to_none` 1) or fills them with zeros (0). [any-thread] */
YOKE_API yoke_status yoke_optimizer_zero_grad(yoke_optimizer *optimizer, int32_t set_to_none);

/* The learning rate of a group. Errors: INDEX for a group that is not there. [any-thread] */
YOKE_API yoke_status yoke_optimizer_get_lr(yoke_optimizer *optimizer, int64_t group, double *lr);

/* Sets the learning rate of a group, or of all with group -1. [any-thread] */
YOKE_API yoke_status yoke_optimizer_set_lr(yoke_optimizer *optimizer, int64_t group, double lr);

/* The number of groups; -1 on NULL. [any-thread] */
YOKE_API int64_t yoke_optimizer_group_count(yoke_optimizer *optimizer);

/* The number of parameters in a group. Errors: INDEX for a group that is not there. [any-thread] */
YOKE_API yoke_status yoke_optimizer_param_count(yoke_optimizer *optimizer, int64_t group,
                                                int64_t *count);

/* Parameter `index` of a group. Errors: INDEX. [any-thread] */
YOKE_API yoke_status yoke_optimizer_param(yoke_optimizer *optimizer, int64_t group, int64_t index,
                                          yoke_tensor **out);

/* State of one parameter by name ("momentum" of SGD), to be saved; NULL before there is any. The
 * tensor is the live state, not a copy. Errors: INDEX, VALUE for an unknown name. [any-thread] */
YOKE_API yoke_status yoke_optimizer_get_state(yoke_optimizer *optimizer, int64_t group,
                                              int64_t index, const char *name, yoke_tensor **out);

/* Replaces that state with a copy of `value`, or drops it with NULL. Errors: as above, and VALUE or
 * TYPE where shape or dtype are not the parameter's. [any-thread] */
YOKE_API yoke_status yoke_optimizer_set_state(yoke_optimizer *optimizer, int64_t group,
                                              int64_t index, const char *name, yoke_tensor *value);

/* ---- Schedules --------------------------------------------------------------------------------------- */

/* start + (end - start) · step / total_steps: `start` up to step 0, `end` from total_steps on.
 * [any-thread] */
YOKE_API double yoke_schedule_linear(double start, double end, int64_t total_steps, int64_t step);

#ifdef __cplusplus
}
#endif
#endif /* YOKE_OPTIM_H */
