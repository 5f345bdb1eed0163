/*
 * yoke/autograd.h: gradients.
 *
 * Ops on tensors that require grad are recorded as they run; yoke_backward walks the record back once
 * and frees it as it goes. Gradients add up in the leaves until they are zeroed. Whether ops are
 * recorded is a mode of the thread. There are no second-order gradients.
 *
 * A leaf gets its gradient as soon as the last op that uses it has been walked; a walk that fails midway has given
 * some leaves theirs.
 *
 * Several threads may go backward at once over one record, or over losses with a shared trunk. Each holds what
 * it reads while it reads it. A walk that comes to what another has freed gets STATE, as it would in one
 * thread: all but the last retain the record, or the program orders them. Leaves add up whatever comes.
 */
#ifndef YOKE_AUTOGRAD_H
#define YOKE_AUTOGRAD_H

#include "yoke/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Recording --------------------------------------------------------------------------------------- */

/* Turns recording on (1) or off (0) for the calling thread and returns what it was, so that a scope
 * can restore it. It is on at first. -1, with OOM as the last error, if this is the thread's first call and
 * the host has no memory left. [any-thread] */
YOKE_API int32_t yoke_set_grad_enabled(int32_t enabled);

/* 1 while the calling thread records. [any-thread] */
YOKE_API int32_t yoke_is_grad_enabled(void);

/* Whether a gradient flows to this tensor; -1 on NULL. [any-thread] */
YOKE_API int32_t yoke_tensor_requires_grad(yoke_tensor *tensor);

/* Asks for a gradient of a leaf, or no longer. Errors: TYPE for a dtype that is not floating,
 * STATE for switching it off on the result of an op (detach it). [any-thread] */
YOKE_API yoke_status yoke_tensor_set_requires_grad(yoke_tensor *tensor, int32_t required);

/* 1 if no recorded op made this tensor; -1 on NULL. [any-thread] */
YOKE_API int32_t yoke_tensor_is_leaf(yoke_tensor *tensor);

/* The same memory, cut off from the record. [any-thread] */
YOKE_API yoke_status yoke_tensor_detach(yoke_tensor *tensor, yoke_tensor **out);

/* One tensor that the record keeps in memory for the gradient of an op. */
typedef struct yoke_saved {
    uint32_t struct_size;
    yoke_dtype dtype;
    const char *op;       /* "matmul" */
    const char *argument; /* "x", or "out" for a result */
    const int64_t *shape;
    int64_t ndim;
    int64_t nbytes;     /* of its elements; tensors that share memory are counted each */
    int32_t recomputed; /* 1: not kept, but made again for backward (yoke/checkpoint.h) */
} yoke_saved;

/* How many tensors the op that made this one keeps for its gradient; 0 for a leaf and after backward,
 * -1 on NULL. [any-thread] */
YOKE_API int64_t yoke_tensor_saved_count(yoke_tensor *tensor);

/* The one at `index`, which counts from 0. What `out` points to lives as long as the tensor's record.
 * Errors: INDEX. [any-thread] */
YOKE_API yoke_status yoke_tensor_saved(yoke_tensor *tensor, int64_t index, yoke_saved *out);

/* ---- Gradients --------------------------------------------------------------------------------------- */

/* Gradients of `tensor` with respect to the leaves behind it, added to what they hold. `gradient`
 * weighs the elements; it may be NULL, for 1, if there is one element. `retain_graph` 0 frees the
 * record. Errors: VALUE for a missing or misshapen gradient, STATE for a second time through a freed
 * record or a saved tensor that was changed in place, naming the op. [any-thread] */
YOKE_API yoke_status yoke_backward(yoke_tensor *tensor, yoke_tensor *gradient,
                                   int32_t retain_graph);

/* Of a backward that the host refuses before it comes to yoke_backward, as for an argument of a wrong type: other ranks
 * that wait for its gradients (yoke/parallel.h) are told `why`, as of one that yoke_backward refuses. [any-thread] */
YOKE_API yoke_status yoke_backward_note_refused(yoke_tensor *tensor, const char *why);

/* Gradients of `count` outputs with respect to `input_count` inputs, returned and not added to the
 * leaves. `gradients` (NULL: 1 for each) holds `count` entries, each of which may be NULL. On
 * success grads[i] holds an owned gradient; on failure all are NULL. Errors: as yoke_backward, and
 * VALUE for an input on which no output depends. [any-thread] */
YOKE_API yoke_status yoke_grad(yoke_tensor *const *outputs, int64_t count,
                               yoke_tensor *const *gradients, yoke_tensor *const *inputs,
                               int64_t input_count, int32_t retain_graph, yoke_tensor **grads);

/* The gradient that a leaf has gathered, or NULL if it has none (which is no error).
 * Errors: STATE for the result of an op, which keeps no gradient. [any-thread] */
YOKE_API yoke_status yoke_tensor_grad(yoke_tensor *tensor, yoke_tensor **out);

/* Replaces the gradient; NULL removes it. Errors: VALUE or TYPE where shape, dtype or device are not
 * the tensor's, STATE for a tensor that is no leaf that requires grad. [any-thread] */
YOKE_API yoke_status yoke_tensor_set_grad(yoke_tensor *tensor, yoke_tensor *grad);

/* Forgets the gradient (`set_to_none` 1) or fills it with zeros in place (0). [any-thread] */
YOKE_API yoke_status yoke_tensor_zero_grad(yoke_tensor *tensor, int32_t set_to_none);

#ifdef __cplusplus
}
#endif
#endif /* YOKE_AUTOGRAD_H */
