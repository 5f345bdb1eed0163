/*
 * yoke/tensor.h: tensors, their data and their exchange with other libraries.
 *
 * A tensor is a strided view of a storage on a device. Strides count elements and may be zero or negative. Views
 * share memory; the storage lives until its last view is released. Tensors are made here from memory, and by the
 * creation ops of ops.h.
 *
 * A getter never fails on a live handle. On NULL a getter returns the value named in its comment and sets the last
 * error. Two threads may use a tensor at once if neither writes to it.
 */
#ifndef YOKE_TENSOR_H
#define YOKE_TENSOR_H

#include "yoke/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Life ------------------------------------------------------------------------------------------ */

/* Adds a reference to a tensor and returns the tensor. NULL is passed through. [any-thread] */
YOKE_API yoke_tensor *yoke_tensor_retain(yoke_tensor *tensor);

/* Releases a reference; the last release frees the tensor. NULL is ignored. Never blocks, with one exception:
 * borrowed device memory goes back to its owner after the work on it. [any-thread] */
YOKE_API void yoke_tensor_release(yoke_tensor *tensor);

/* ---- Made from memory -------------------------------------------------------------------------------- */

/* Creates a tensor over memory of the host program, without a copy. `shape` and `strides` hold `ndim` numbers;
 * strides NULL is row-major. `data` is the first element: memory on `device`, aligned for the dtype.
 * It must stay valid until `drop` (which may be NULL) is called with `user`, once, from any thread,
 * after the last view is gone. On failure `drop` is not called: the memory stays the caller's.
 * Errors: VALUE for a negative size, too many axes, a NULL pointer to elements. [any-thread] */
YOKE_API yoke_status yoke_tensor_from_memory(void *data, const int64_t *shape, int64_t ndim,
                                             const int64_t *strides, yoke_dtype dtype,
                                             yoke_device *device, yoke_drop_fn drop, void *user,
                                             yoke_tensor **out);

/* Creates a row-major tensor on `device` with a copy of host memory: `bytes` must be numel × itemsize.
 * Errors: VALUE where they differ, naming both. [any-thread] */
YOKE_API yoke_status yoke_tensor_from_data(const void *data, int64_t bytes, const int64_t *shape,
                                           int64_t ndim, yoke_dtype dtype, yoke_device *device,
                                           yoke_tensor **out);

/* Creates a 0-dim tensor of a value. dtype YOKE_NONE follows the value: bool, i64 or f32. [any-thread] */
YOKE_API yoke_status yoke_tensor_scalar(const yoke_scalar *value, yoke_dtype dtype,
                                        yoke_device *device, yoke_tensor **out);

/* ---- Shape and place --------------------------------------------------------------------------------- */

/* Returns the number of axes, at most YOKE_MAX_NDIM; -1 on NULL. [any-thread] */
YOKE_API int64_t yoke_tensor_ndim(yoke_tensor *tensor);

/* Lengths of the axes, ndim of them, borrowed from the tensor; NULL on NULL. [any-thread] */
YOKE_API const int64_t *yoke_tensor_shape(yoke_tensor *tensor);

/* Strides in elements, ndim of them, borrowed from the tensor; NULL on NULL. [any-thread] */
YOKE_API const int64_t *yoke_tensor_strides(yoke_tensor *tensor);

/* Returns the number of elements; -1 on NULL. [any-thread] */
YOKE_API int64_t yoke_tensor_numel(yoke_tensor *tensor);

/* Returns numel × itemsize in bytes, whatever the strides; -1 on NULL. [any-thread] */
YOKE_API int64_t yoke_tensor_nbytes(yoke_tensor *tensor);

/* Bytes of one element; -1 on NULL. [any-thread] */
YOKE_API int64_t yoke_tensor_itemsize(yoke_tensor *tensor);

/* Returns the element type; YOKE_NONE on NULL. [any-thread] */
YOKE_API yoke_dtype yoke_tensor_dtype(yoke_tensor *tensor);

/* Returns the device, borrowed: retain to keep it; NULL on NULL. [any-thread] */
YOKE_API yoke_device *yoke_tensor_device(yoke_tensor *tensor);

/* Returns 1 if the elements lie row-major without gaps, 0 if not; -1 on NULL. [any-thread] */
YOKE_API int32_t yoke_tensor_is_contiguous(yoke_tensor *tensor);

/* Returns a number common to all views of a storage and unique among live storages; 0 on NULL. [any-thread] */
YOKE_API uint64_t yoke_tensor_storage_id(yoke_tensor *tensor);

/* Bytes of the whole storage, of which the tensor may see a part; -1 on NULL. [any-thread] */
YOKE_API int64_t yoke_tensor_storage_nbytes(yoke_tensor *tensor);

/* Bytes from the beginning of the storage to the first element; -1 on NULL. [any-thread] */
YOKE_API int64_t yoke_tensor_storage_offset(yoke_tensor *tensor);

/* Makes another view of the whole storage of a tensor, also outside the tensor's own elements, and without gradients.
 * `dtype`, `shape` and `strides` of `ndim` numbers (NULL: row-major) describe the view; the first element is `offset`
 * bytes in. With this call, and the bytes of a storage as uint8, tensors of shared memory are saved and still share
 * it after a load.
 * Errors: VALUE for a view beyond the storage, or an unaligned offset. [any-thread] */
YOKE_API yoke_status yoke_tensor_view_storage(yoke_tensor *tensor, yoke_dtype dtype,
                                              const int64_t *shape, const int64_t *strides,
                                              int64_t ndim, int64_t offset, yoke_tensor **out);

/* Returns 1 for a common byte, else 0; -1 if either is NULL. docs/memory.md says what is exact. [any-thread] */
YOKE_API int32_t yoke_shares_memory(yoke_tensor *a, yoke_tensor *b);

/* ---- Data -------------------------------------------------------------------------------------------- */

/* Returns the address of the first element: on a GPU a device address, which the CPU must not read. NULL on NULL and
 * for no elements. The version counters of saved tensors do not count writes by this address. [any-thread] */
YOKE_API void *yoke_tensor_data(yoke_tensor *tensor);

/* Copies the elements to host memory, row-major, and waits. `bytes` must be the tensor's nbytes.
 * Errors: VALUE where they differ; those of earlier asynchronous work. [any-thread] */
YOKE_API yoke_status yoke_tensor_copy_to_host(yoke_tensor *tensor, void *data, int64_t bytes);

/* Copies row-major host memory into the tensor and waits, as an in-place change: refused, as STATE,
 * on a leaf that requires grad while gradients are recorded. [any-thread] */
YOKE_API yoke_status yoke_tensor_copy_from_host(yoke_tensor *tensor, const void *data,
                                                int64_t bytes);

/* Reads the value of a one-element tensor as a double; waits for the value. VALUE for another numel. [any-thread] */
YOKE_API yoke_status yoke_tensor_item_f64(yoke_tensor *tensor, double *value);

/* Returns the value of a one-element tensor as an int64; a fraction is cut off, as in C. VALUE for another
 * numel, and for a number that an int64 cannot hold. [any-thread] */
YOKE_API yoke_status yoke_tensor_item_i64(yoke_tensor *tensor, int64_t *value);

/* Returns the tensor on another device (NULL: the same device) and with another dtype (YOKE_NONE: the same dtype). If
 * nothing changes, the result is the same tensor with a new reference. Gradients flow back. [any-thread] */
YOKE_API yoke_status yoke_tensor_to(yoke_tensor *tensor, yoke_device *device, yoke_dtype dtype,
                                    yoke_tensor **out);

/* Converts as yoke_tensor_to does. With `non_blocking` 1 the caller goes on during copies between CPU and device, in
 * the order of the device's current stream. The tensor may change or be released at once. A result on the CPU lies in
 * pinned memory and holds its values after a wait for this stream. [any-thread] */
YOKE_API yoke_status yoke_tensor_to_v2(yoke_tensor *tensor, yoke_device *device, yoke_dtype dtype,
                                       int32_t non_blocking, yoke_tensor **out);

/* Moves the tensor itself, which must be a leaf. All holders of the tensor, such as an optimizer, have the new
 * values, and its gradient moves too. Views of the tensor keep the former memory. If dtype or device has changed, a
 * backward through earlier records is refused as STATE.
 * Errors: STATE for a result of an op; TYPE for a dtype without gradients if the tensor requires a gradient; OOM, and
 * the tensor is unchanged. [any-thread] */
YOKE_API yoke_status yoke_tensor_to_(yoke_tensor *tensor, yoke_device *device, yoke_dtype dtype);

/* Copies a CPU tensor to pinned memory, which a device reads and writes directly. If the tensor is pinned already,
 * returns the same tensor with a new reference. If no device needs pinned memory, plain memory is used. Gradients
 * flow back. Errors: VALUE for a tensor on a device; OOM. [any-thread] */
YOKE_API yoke_status yoke_tensor_pin_memory(yoke_tensor *tensor, yoke_tensor **out);

/* Returns 1 if the tensor lies in pinned memory of Yoke, else 0; -1 on NULL. [any-thread] */
YOKE_API int32_t yoke_tensor_is_pinned(yoke_tensor *tensor);

/* ---- Indexing ---------------------------------------------------------------------------------------- */

#define YOKE_INDEX_INT 0      /* a single position, `start`; removes the axis */
#define YOKE_INDEX_SLICE 1    /* start:stop:step, as in NumPy; the axis stays */
#define YOKE_INDEX_NEW_AXIS 2 /* a new axis of length 1 */
#define YOKE_INDEX_ELLIPSIS 3 /* as many whole axes as are not named; at most one */
#define YOKE_INDEX_TENSOR \
    4 /* `tensor`: integers name positions, a bool mask of k axes picks from k */
#define YOKE_INDEX_BOOL 5 /* all (`start` 1) or nothing (0), along a new axis */

#define YOKE_INDEX_NO_START 1 /* the slice has no start … */
#define YOKE_INDEX_NO_STOP 2  /* … no stop … */
#define YOKE_INDEX_NO_STEP 4  /* … no step: 1 */

/* Item between the brackets of x[…]. */
typedef struct yoke_index {
    int32_t kind;  /* YOKE_INDEX_INT … */
    int32_t flags; /* for a slice: YOKE_INDEX_NO_*, combined */
    int64_t start;
    int64_t stop;
    int64_t step;
    yoke_tensor *tensor; /* for YOKE_INDEX_TENSOR */
} yoke_index;

/* Indexes with `count` items, by NumPy's rules: a view of the same memory, or a copy where an item is a
 * TENSOR or a BOOL. Gradients flow back.
 * Errors: INDEX out of range, too many items, masks or tensors whose shapes do not fit; TYPE for a
 * floating tensor; VALUE for a step of 0, a second ellipsis or an unknown kind. [any-thread] */
YOKE_API yoke_status yoke_tensor_index(yoke_tensor *tensor, const yoke_index *items, int64_t count,
                                       yoke_tensor **out);

/* Sets tensor[items] = values, broadcast and cast to its dtype. If an element is named twice, the last value stays.
 * Recorded if a gradient flows and no item needs a view (not after an int alone, or a slice).
 * Errors: the errors of yoke_tensor_index, VALUE for values that do not broadcast, STATE for a leaf that requires
 * grad, UNSUPPORTED for a view if a gradient would have to flow. [any-thread] */
YOKE_API yoke_status yoke_tensor_index_put(yoke_tensor *tensor, const yoke_index *items,
                                           int64_t count, yoke_tensor *values);

/* Sets the indexed elements to a single number. [any-thread] */
YOKE_API yoke_status yoke_tensor_index_fill(yoke_tensor *tensor, const yoke_index *items,
                                            int64_t count, const yoke_scalar *value);

/* ---- DLPack ------------------------------------------------------------------------------------------ */

/* Hands the memory to another library without a copy. `versioned` 1 gives a DLManagedTensorVersioned of DLPack 1.x, 0
 * the older DLManagedTensor; the consumer calls its deleter once, from any thread. `stream` is the consumer's own
 * stream (NULL: the default stream). It waits for the earlier work of the thread's current stream of the device, and
 * the caller goes on. (void *)-1 orders nothing.
 * Errors: STATE for a tensor that requires grad (detach it first). [any-thread] */
YOKE_API yoke_status yoke_tensor_to_dlpack(yoke_tensor *tensor, int32_t versioned, void *stream,
                                           void **out);

/* Takes memory of another library without a copy; its deleter is called once, after the last view is
 * gone, from any thread. On failure `managed` stays the caller's, deleter uncalled.
 * Errors: UNSUPPORTED for a dtype, device, major version or read-only flag that Yoke cannot honour,
 * naming it. [any-thread] */
YOKE_API yoke_status yoke_tensor_from_dlpack(void *managed, int32_t versioned, yoke_tensor **out);

/* ---- Element types and random numbers ------------------------------------------------------------------ */

/* Returns the Python spelling, "float32"; NULL for a number that is no dtype. Static. [any-thread] */
YOKE_API const char *yoke_dtype_name(yoke_dtype dtype);

/* Returns the bytes of an element; 0 for an invalid dtype. [any-thread] */
YOKE_API int64_t yoke_dtype_size(yoke_dtype dtype);

/* Returns the number of "float32" or "f32". Errors: VALUE, with a list of the known names. [any-thread] */
YOKE_API yoke_status yoke_dtype_from_name(const char *name, yoke_dtype *dtype);

/* Starts the random numbers of all threads again. The calling thread starts at `seed` itself; other threads start at
 * a seed mixed with the order of their first use. [any-thread] */
YOKE_API yoke_status yoke_manual_seed(uint64_t seed);

/* Returns the state of the calling thread's random numbers: the seed of their stream and how many numbers of it were
 * drawn. The same state gives the same numbers again. [any-thread] */
YOKE_API yoke_status yoke_get_rng_state(uint64_t *seed, uint64_t *offset);

/* Puts the calling thread's random numbers to a place from yoke_get_rng_state, or to the start (offset 0) of another
 * stream. A program keeps two streams apart by exchanging their places. The stream stays the thread's own until the
 * thread calls yoke_manual_seed. [any-thread] */
YOKE_API yoke_status yoke_set_rng_state(uint64_t seed, uint64_t offset);

#ifdef __cplusplus
}
#endif
#endif /* YOKE_TENSOR_H */
