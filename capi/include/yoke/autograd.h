/*
 * yoke/autograd.h: gradients.
 *
 * Ops on tensors that require grad are recorded on a tape as they run. yoke_backward walks the tape back once and
 * frees it on the way. Gradients add up in the leaves until they are zeroed. Recording is a mode of the thread. There
 * are no second-order gradients.
 *
 * A leaf gets its gradient as soon as the last op with this leaf has been walked. If a walk fails midway, some leaves
 * have their gradients already.
 *
 * Several threads may run backward at once over one tape, or over losses with a shared trunk. Each walk holds the
 * memory it reads. If a walk reaches a part that another walk has freed, it gets STATE, as within a single thread. So
 * all walks but the last retain the graph, or the program orders the walks. Leaves add up the gradients of all walks.
 */
#ifndef YOKE_AUTOGRAD_H
#define YOKE_AUTOGRAD_H

#include "yoke/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Recording --------------------------------------------------------------------------------------- */

/* Turns recording on (1) or off (0) for the calling thread and returns the previous value, so that a scope can
 * restore it. Recording is on at first. If this is the thread's first call and no host memory is left, returns -1
 * with OOM as the last error. [any-thread] */
YOKE_API int32_t yoke_set_grad_enabled(int32_t enabled);

/* Returns 1 while the calling thread records, else 0. [any-thread] */
YOKE_API int32_t yoke_is_grad_enabled(void);

/* Returns whether a gradient flows to this tensor; -1 on NULL. [any-thread] */
YOKE_API int32_t yoke_tensor_requires_grad(yoke_tensor *tensor);

/* Sets whether a leaf gets a gradient. Errors: TYPE if the dtype is not floating; STATE for 0 on the result of an op
 * (call detach instead). [any-thread] */
YOKE_API yoke_status yoke_tensor_set_requires_grad(yoke_tensor *tensor, int32_t required);

/* Returns 1 if no recorded op made this tensor, else 0; -1 on NULL. [any-thread] */
YOKE_API int32_t yoke_tensor_is_leaf(yoke_tensor *tensor);

/* Returns a tensor of the same memory without history on the tape. [any-thread] */
YOKE_API yoke_status yoke_tensor_detach(yoke_tensor *tensor, yoke_tensor **out);

/* Has a leaf refer to the memory of `data`, which has the same shape. All holders of the tensor, such as an optimizer,
 * see the new values; views of the tensor keep the former memory. Dtype and device may change; the gradient is
 * converted with them, and a backward through earlier records is then refused as STATE.
 * Errors: STATE for a result of an op; VALUE for another shape; TYPE for a dtype without gradients if the tensor
 * requires a gradient. [any-thread] */
YOKE_API yoke_status yoke_tensor_set_data(yoke_tensor *tensor, yoke_tensor *data);

/* Tensor that the tape keeps in memory for the gradient of an op. */
typedef struct yoke_saved {
    uint32_t struct_size;
    yoke_dtype dtype;
    const char *op;       /* "matmul" */
    const char *argument; /* "x", or "out" for a result */
    const int64_t *shape;
    int64_t ndim;
    int64_t nbytes;     /* size of its elements; tensors with shared memory count separately */
    int32_t recomputed; /* 1: not kept, but made again for backward (yoke/checkpoint.h) */
} yoke_saved;

/* Returns the number of tensors kept by the op of this tensor for its gradient; 0 for a leaf and after backward, -1
 * on NULL. [any-thread] */
YOKE_API int64_t yoke_tensor_saved_count(yoke_tensor *tensor);

/* Reads kept tensor `index`, counted from 0. Pointers in `out` live as long as the tensor's tape entry. Errors:
 * INDEX. [any-thread] */
YOKE_API yoke_status yoke_tensor_saved(yoke_tensor *tensor, int64_t index, yoke_saved *out);

/* ---- Gradients --------------------------------------------------------------------------------------- */

/* Computes the gradients of `tensor` with respect to its leaves and adds them to the leaves' gradients. `gradient`
 * weighs the elements; for a single element it may be NULL, for 1. `retain_graph` 0 frees the tape. Errors: VALUE for
 * a missing or misshapen gradient; STATE for a second walk through a freed tape, or for a saved tensor changed in
 * place, with the name of the op. [any-thread] */
YOKE_API yoke_status yoke_backward(yoke_tensor *tensor, yoke_tensor *gradient,
                                   int32_t retain_graph);

/* Reports a backward that the host program refuses before yoke_backward, as for an argument of a wrong type. Other
 * ranks that wait for its gradients (yoke/parallel.h) get `why`, as if yoke_backward had refused. [any-thread] */
YOKE_API yoke_status yoke_backward_note_refused(yoke_tensor *tensor, const char *why);

/* Gradients of `count` outputs with respect to `input_count` inputs, returned and not added to the
 * leaves. `gradients` (NULL: 1 for each) holds `count` entries, each of which may be NULL. On
 * success grads[i] holds an owned gradient; on failure all are NULL. Errors: as yoke_backward, and
 * VALUE for an input on which no output depends. [any-thread] */
YOKE_API yoke_status yoke_grad(yoke_tensor *const *outputs, int64_t count,
                               yoke_tensor *const *gradients, yoke_tensor *const *inputs,
                               int64_t input_count, int32_t retain_graph, yoke_tensor **grads);

/* Returns the gradient of a leaf, or NULL if the leaf has no gradient (no error). Errors: STATE for the result of an
 * op, because such a tensor keeps no gradient. [any-thread] */
YOKE_API yoke_status yoke_tensor_grad(yoke_tensor *tensor, yoke_tensor **out);

/* Replaces the gradient; NULL removes it. Errors: VALUE or TYPE if shape, dtype or device differ from the tensor's;
 * STATE if the tensor is not a leaf or requires no grad. [any-thread] */
YOKE_API yoke_status yoke_tensor_set_grad(yoke_tensor *tensor, yoke_tensor *grad);

/* Forgets the gradient (`set_to_none` 1) or fills it with zeros in place (0). [any-thread] */
YOKE_API yoke_status yoke_tensor_zero_grad(yoke_tensor *tensor, int32_t set_to_none);

#ifdef __cplusplus
}
#endif
#endif /* YOKE_AUTOGRAD_H */
