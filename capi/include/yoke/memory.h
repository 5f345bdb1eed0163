/*
 * yoke/memory.h: memory of the caching allocator, and raw blocks of it.
 *
 * Allocated bytes belong to live blocks; reserved bytes were taken from the driver. With caching, reserved may exceed
 * allocated: freed blocks are kept for the next request. Names and meanings are those of torch.cuda. All sizes are
 * bytes. A NULL device is the current device.
 */
#ifndef YOKE_MEMORY_H
#define YOKE_MEMORY_H

#include "yoke/state.h"
#include "yoke/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Statistics of one device ---------------------------------------------------------------------- */

/* Bytes of live blocks now. [any-thread] */
YOKE_API yoke_status yoke_memory_allocated(yoke_device *device, int64_t *bytes);

/* Returns the most bytes of live blocks since the start or the last reset. [any-thread] */
YOKE_API yoke_status yoke_max_memory_allocated(yoke_device *device, int64_t *bytes);

/* Bytes held from the driver now. [any-thread] */
YOKE_API yoke_status yoke_memory_reserved(yoke_device *device, int64_t *bytes);

/* Returns the most bytes held from the driver since the start or the last reset. [any-thread] */
YOKE_API yoke_status yoke_max_memory_reserved(yoke_device *device, int64_t *bytes);

/* Starts the maxima again from the present values, also the maxima of yoke_memory_stats. [any-thread] */
YOKE_API yoke_status yoke_reset_peak_memory_stats(yoke_device *device);

/* Returns all figures of the memory: a dict of whole numbers, and of floats for parts of 1, under PyTorch's keys
 *   {allocation, segment, active, inactive_split, allocated_bytes, reserved_bytes, active_bytes, inactive_split_bytes,
 *   requested_bytes}.{all, large_pool, small_pool}.{current, peak, allocated, freed}, num_alloc_retries, num_ooms, …
 * and under fragmentation, stranded_bytes, largest_free_bytes, foreign_bytes, cross_stream_steals and rung.NAME: how
 * often each step of the search for memory served a request. Small requests are those up to 1 MiB; a segment is a chunk
 * too. Active blocks are those of requests and those that wait for other streams. Peaks and totals of inactive_split
 * are of what calls of this function have seen. docs/memory.md has all keys. [any-thread] */
YOKE_API yoke_status yoke_memory_stats(yoke_device *device, yoke_state **out);

/* Starts the totals (.allocated, .freed) and counts of yoke_memory_stats again from 0. [any-thread] */
YOKE_API yoke_status yoke_reset_accumulated_memory_stats(yoke_device *device);

/* Returns the number of live tensors in the process: tensors held by a handle or a list of the library, and tensors
 * that the tape keeps for backward (yoke_tensor_saved_count). A tensor both held and kept counts as two. 0 at the end
 * of a program that has released all its handles. [any-thread] */
YOKE_API int64_t yoke_live_tensor_count(void);

/* ---- The cache ------------------------------------------------------------------------------------- */

/* Gives cached memory back to the driver, whichever thread keeps it: chunks and segments without a live block. Waits
 * for the device.
 * Errors: STATE while this thread captures a graph. [any-thread] */
YOKE_API yoke_status yoke_empty_cache(yoke_device *device);

/* Turns caching on (1) or off (0), for all devices. Off: every free reaches the driver, so that reserved equals
 * allocated once the earlier blocks are gone. A device is then asked for the exact size, so that tools that watch its
 * memory see an overrun. YOKE_NO_CACHING=1 starts with caching off. PYTORCH_NO_CUDA_MEMORY_CACHING=1 does so too,
 * unless YOKE_NO_CACHING is set.
 * Errors: STATE while this thread captures a graph. [any-thread] */
YOKE_API yoke_status yoke_set_caching(int32_t enabled);

/* Returns 1 while freed blocks are kept, else 0. [any-thread] */
YOKE_API int32_t yoke_is_caching(void);

/* ---- Settings -------------------------------------------------------------------------------------- */

/* Changes the allocator's settings named in `settings`, "key:value,key:value", for all devices; other settings stay.
 * The initial settings are in YOKE_ALLOC_CONF, else in PYTORCH_ALLOC_CONF or PYTORCH_CUDA_ALLOC_CONF.
 *
 * "expandable_segments", first True: if the device has virtual memory, new memory comes as chunks mapped to
 * addresses.
 *
 * "garbage_collection_threshold", first 0, below 1: idle memory goes back before growth beyond this part of the
 * device. With 0 idle memory goes back only if memory is short.
 *
 * "ask_fences", first False: with True a block used by another stream is reused once its work is seen to be done.
 * With False the block's stream waits for this work, and addresses are the same in each run.
 *
 * Errors: VALUE for an unknown or repeated key and for a value out of range; nothing is changed then. [any-thread] */
YOKE_API yoke_status yoke_set_alloc_conf(const char *settings);

/* Returns all settings in the same form in *settings, borrowed until this thread's next call of this function.
 * Errors: VALUE for a variable of the environment that cannot be read. [any-thread] */
YOKE_API yoke_status yoke_get_alloc_conf(const char **settings);

/* ---- Out of memory ---------------------------------------------------------------------------------- */

/* Function of the host program that may free memory of the device. It is called if a request of this size found no
 * memory, even after all cached memory was given back. Result other than 0: the request tries again. The call comes
 * on the requesting thread, with no lock of the library held, within the call that needs the memory. So the function
 * must leave the arguments of this call alone. It may call the library; if a request of its own finds no memory, the
 * request fails at once. */
typedef int32_t (*yoke_relief_fn)(void *user, yoke_device *device, int64_t bytes);

/* Adds a function that is called before a request fails with OOM, at most three times while it returns other than 0.
 * *id is its number, from 1. Several functions are called in the order of their addition. `drop` (or NULL) is called
 * once with `user` after the function was removed and its last call has returned; yoke_shutdown leaves the function
 * in place.
 * Errors: VALUE if fn is NULL; nothing is dropped then. [any-thread] */
YOKE_API yoke_status yoke_on_out_of_memory(yoke_relief_fn fn, void *user, yoke_drop_fn drop,
                                           int64_t *id);

/* Removes a function. Errors: VALUE for an unknown number. [any-thread] */
YOKE_API yoke_status yoke_remove_on_out_of_memory(int64_t id);

/* Returns the numbers of this thread's last failure, if it was OOM for missing device memory. The dict has bytes,
 * requested, allocated, rounding (of allocated), reserved, free_in_cache, largest_free, stranded (free on streams
 * other than the stream with the most), waiting (for other streams), graphs, foreign (engines of groups), others
 * (other processes), free and total (-1: not known), and the texts device and limit. The caller owns the dict. NULL
 * after any other failure; the last error stays as it is. [any-thread] */
YOKE_API yoke_state *yoke_oom_details(void);

/* Adds `fn`, which runs a language's garbage collector, for bindings whose collector may hold tensors. It is called
 * once for each request, before the functions above. It returns 0 if its language cannot run now. Errors as above.
 * [any-thread] */
YOKE_API yoke_status yoke_add_garbage_collector(yoke_relief_fn fn, void *user, yoke_drop_fn drop,
                                                int64_t *id);
YOKE_API yoke_status yoke_remove_garbage_collector(int64_t id);

/* ---- Raw blocks ------------------------------------------------------------------------------------ */

/* Allocates a block of at least `bytes` bytes on a device, not cleared, ordered on `stream` (the device's own kind of
 * stream; NULL is the default stream). A stream with a short life is wrapped first: stream.h. 0 bytes give a valid
 * block too.
 * Errors: VALUE for a negative size; OOM with the memory in use and a remedy. [any-thread] */
YOKE_API yoke_status yoke_alloc(int64_t bytes, yoke_device *device, void *stream, void **out);

/* Gives a block of yoke_alloc back, in the order of its stream. NULL is ignored.
 * Errors: VALUE for a pointer that is no live block. [any-thread] */
YOKE_API yoke_status yoke_free(void *pointer);

#ifdef __cplusplus
}
#endif
#endif /* YOKE_MEMORY_H */
