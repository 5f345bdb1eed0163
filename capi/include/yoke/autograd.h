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

/* Does the same as yoke_grad. If `allow_unused` is not 0, an input on which no output depends gets NULL and is no
 * error. [any-thread] */
YOKE_API yoke_status yoke_grad_v2(yoke_tensor *const *outputs, int64_t count,
                                  yoke_tensor *const *gradients, yoke_tensor *const *inputs,
                                  int64_t input_count, int32_t retain_graph, int32_t allow_unused,
                                  yoke_tensor **grads);

/* Computes the gradients of `count` outputs as yoke_backward does. `gradients` is as in yoke_grad. With `inputs`, only
 * these tensors get their gradient added; an input that is the result of an op retains its gradient from now on
 * (yoke_tensor_retain_grad). Without (NULL, 0), all leaves get theirs.
 * Errors: as yoke_backward; STATE for an input that does not require grad; UNSUPPORTED for an input that is a
 * parameter of a reducer (yoke/parallel.h). [any-thread] */
YOKE_API yoke_status yoke_backward_v2(yoke_tensor *const *outputs, int64_t count,
                                      yoke_tensor *const *gradients, yoke_tensor *const *inputs,
                                      int64_t input_count, int32_t retain_graph);

/* Returns the gradient of a leaf, or of a tensor that retains its gradient. Returns NULL if there is no gradient yet
 * (no error). Errors: STATE for any other result of an op, because such a tensor keeps no gradient. [any-thread] */
YOKE_API yoke_status yoke_tensor_grad(yoke_tensor *tensor, yoke_tensor **out);

/* Replaces the gradient; NULL removes it. Errors: VALUE or TYPE if shape, dtype or device differ from the tensor's;
 * STATE if the tensor neither is a leaf nor retains its gradient, or requires no grad. [any-thread] */
YOKE_API yoke_status yoke_tensor_set_grad(yoke_tensor *tensor, yoke_tensor *grad);

/* Forgets the gradient (`set_to_none` 1) or fills it with zeros in place (0). [any-thread] */
YOKE_API yoke_status yoke_tensor_zero_grad(yoke_tensor *tensor, int32_t set_to_none);

/* Has the result of an op keep its gradient in each later backward, as a leaf does. A recorded change in place of the
 * tensor takes this along. No effect on a leaf. Errors: STATE for a tensor that does not require grad. [any-thread] */
YOKE_API yoke_status yoke_tensor_retain_grad(yoke_tensor *tensor);

/* Returns 1 if the result of an op keeps its gradient, else 0; -1 on NULL. [any-thread] */
YOKE_API int32_t yoke_tensor_retains_grad(yoke_tensor *tensor);

/* ---- Hooks --------------------------------------------------------------------------------------------- */

/* Registered hook. Releasing the handle leaves the hook in place. */
typedef struct yoke_hook yoke_hook;

/* Function of the program that sees the gradient of a tensor. `run` runs in each thread that runs backward, without
 * recording, autocast and locks, and may call the library, backward too. `gradient` is borrowed and must not change.
 * `run` may set *replacement, NULL before the call, to another tensor of the same shape, dtype and device, and gives
 * this reference to Yoke. If `run` returns other than YOKE_OK, backward fails with this status and the text of
 * `problem`, which may be NULL. `drop` runs once, after the last call. */
typedef struct yoke_gradient_hook {
    uint32_t struct_size; /* sizeof(yoke_gradient_hook) */
    uint32_t reserved;
    void *user;
    yoke_status (*run)(void *user, yoke_tensor *gradient, yoke_tensor **replacement);
    const char *(*problem)(void *user);
    yoke_drop_fn drop;
} yoke_gradient_hook;

/* Adds a hook on the gradient of a tensor. Hooks of a tensor run in the order of their addition, once in each walk, on
 * the whole gradient of this walk: before a leaf adds it to its own or its reducer takes it, before the op of a result
 * computes further, and before yoke_grad returns it. Recomputation runs no hook. After a recorded change in place,
 * earlier hooks see the gradient of the former value. `out` may be NULL.
 * Errors: STATE for a tensor that does not require grad. After an error `drop` does not run. [any-thread] */
YOKE_API yoke_status yoke_tensor_add_hook(yoke_tensor *tensor, const yoke_gradient_hook *hook,
                                          yoke_hook **out);

/* Removes a hook. A second removal has no effect. If the hook is running, its call ends first. [any-thread] */
YOKE_API yoke_status yoke_hook_remove(yoke_hook *hook);

/* Gives up the handle; the hook stays. NULL is ignored. [any-thread] */
YOKE_API void yoke_hook_release(yoke_hook *hook);

/* ---- Functions of the program ------------------------------------------------------------------------- */

/* Part of an output in gradients. */
#define YOKE_OUTPUT_FRESH 0    /* gets a gradient if its dtype is floating */
#define YOKE_OUTPUT_CONSTANT 1 /* gets no gradient */
#define YOKE_OUTPUT_WRITTEN 2  /* is one of the inputs, changed in place */

/* Backward of a function of the program. `run` gets the saved tensors and, for each output, its gradient, all
 * borrowed. For input i it sets input_gradients[i], NULL before the call, and gives this reference to Yoke; NULL means
 * zero. Yoke casts a gradient of another floating dtype, and sums over broadcast axes. The thread, failures and `drop`
 * are as in yoke_gradient_hook. */
typedef struct yoke_function {
    uint32_t struct_size; /* sizeof(yoke_function) */
    int32_t keeps_null;   /* not 0: a missing gradient is NULL; 0: zeros */
    const char *name;     /* for messages; copied */
    void *user;
    yoke_status (*run)(void *user, yoke_tensor *const *saved, int64_t saved_count,
                       yoke_tensor *const *gradients, int64_t gradient_count,
                       yoke_tensor **input_gradients, int64_t input_count);
    const char *(*problem)(void *user);
    yoke_drop_fn drop;
    yoke_tensor *const *saved; /* kept for backward as an op keeps its own; items may be NULL */
    int64_t saved_count;
} yoke_function;

/* Records one call of a function. The program has computed `outputs` from `inputs` with recording off. An input that
 * is no tensor may be NULL. `kinds` (NULL: all FRESH) has a YOKE_OUTPUT_* number for each output. On success
 * recorded[i] holds an owned tensor to use in place of outputs[i]: another handle of the same memory, for WRITTEN the
 * same tensor. If the thread does not record or no input requires grad, it has no history, and `drop` runs at once.
 * Saved tensors are checked for changes in place, recomputed in a checkpoint scope, and freed by backward unless the
 * graph is retained.
 * Errors: VALUE for a missing name or run, or an unknown kind; STATE for a WRITTEN leaf that requires grad;
 * UNSUPPORTED for a WRITTEN view that cannot be recorded. After an error `drop` does not run. [any-thread] */
YOKE_API yoke_status yoke_function_record(const yoke_function *function, yoke_tensor *const *inputs,
                                          int64_t input_count, yoke_tensor *const *outputs,
                                          int64_t output_count, const int32_t *kinds,
                                          yoke_tensor **recorded);

/* ---- Looking for NaN ------------------------------------------------------------------------------------ */

#define YOKE_ANOMALY_OFF 0
#define YOKE_ANOMALY_LINES 1 /* ops note the line of the script (yoke_set_stack_provider) */
#define YOKE_ANOMALY_CHECK \
    2 /* and backward looks for NaN behind each op, which waits for the device */

/* Sets the calling thread's mode and returns the former mode. With CHECK, backward raises STATE at the first gradient
 * with a NaN, and names the op, its argument and the line of its forward; other errors of backward get the line too.
 * Returns -1 for another number (VALUE), and without host memory (OOM). [any-thread] */
YOKE_API int32_t yoke_set_detect_anomaly(int32_t mode);

/* Returns the calling thread's mode. [any-thread] */
YOKE_API int32_t yoke_get_detect_anomaly(void);

#ifdef __cplusplus
}
#endif
#endif /* YOKE_AUTOGRAD_H */
