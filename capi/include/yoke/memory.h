/*
 * yoke/memory.h: what the caching allocator holds, and raw blocks of it.
 *
 * Allocated bytes are those of live blocks; reserved bytes are those taken from the driver. With
 * caching, reserved may exceed allocated: freed blocks are kept for the next request. Names and
 * meanings are those of torch.cuda. All sizes are bytes. A NULL device is the current one.
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

/* The most bytes of live blocks since the start or the last reset. [any-thread] */
YOKE_API yoke_status yoke_max_memory_allocated(yoke_device *device, int64_t *bytes);

/* Bytes held from the driver now. [any-thread] */
YOKE_API yoke_status yoke_memory_reserved(yoke_device *device, int64_t *bytes);

/* The most bytes held from the driver since the start or the last reset. [any-thread] */
YOKE_API yoke_status yoke_max_memory_reserved(yoke_device *device, int64_t *bytes);

/* Maxima start again from the present values, those of yoke_memory_stats too. [any-thread] */
YOKE_API yoke_status yoke_reset_peak_memory_stats(yoke_device *device);

/* All that is known of the device's memory: a dict of whole numbers, and of floats for parts of 1, under PyTorch's keys
 *   {allocation, segment, active, inactive_split, allocated_bytes, reserved_bytes, active_bytes, inactive_split_bytes,
 *   requested_bytes}.{all, large_pool, small_pool}.{current, peak, allocated, freed}, num_alloc_retries, num_ooms, …
 * and under fragmentation, stranded_bytes, largest_free_bytes, foreign_bytes, cross_stream_steals and rung.NAME: how
 * often each step of the search for memory served a request. Small requests are those up to 1 MiB; a segment is a chunk
 * too. Active blocks are those of requests and those that wait for other streams. Peaks and totals of inactive_split
 * are of what calls of this function have seen. docs/memory.md has all keys. [any-thread] */
YOKE_API yoke_status yoke_memory_stats(yoke_device *device, yoke_state **out);

/* The totals (.allocated, .freed) and counts of yoke_memory_stats start again from 0. [any-thread] */
YOKE_API yoke_status yoke_reset_accumulated_memory_stats(yoke_device *device);

/* Tensors alive in the process: those that a handle or a list of the library holds, and each that the tape keeps for
 * backward (yoke_tensor_saved_count), one that is held and kept counted as two. 0 at the end of a program that released
 * all it made. [any-thread] */
YOKE_API int64_t yoke_live_tensor_count(void);

/* ---- The cache ------------------------------------------------------------------------------------- */

/* Gives cached memory back to the driver, whichever thread keeps it: chunks and segments without a live block. Waits
 * for the device.
 * Errors: STATE while this thread captures a graph. [any-thread] */
YOKE_API yoke_status yoke_empty_cache(yoke_device *device);

/* Caching on (1) or off (0), for all devices. Off: every free reaches the driver, so that reserved
 * equals allocated once the blocks of before are gone, and a device is asked for the
 * very size, so that tools that watch its memory see an overrun. YOKE_NO_CACHING=1 starts with it off, and so does
 * PYTORCH_NO_CUDA_MEMORY_CACHING=1 unless YOKE_NO_CACHING is set.
 * Errors: STATE while this thread captures a graph. [any-thread] */
YOKE_API yoke_status yoke_set_caching(int32_t enabled);

/* 1 while freed blocks are kept. [any-thread] */
YOKE_API int32_t yoke_is_caching(void);

/* ---- Settings -------------------------------------------------------------------------------------- */

/* Changes the allocator's settings that `settings` names, "key:value,key:value", for all devices; the others stay.
 * YOKE_ALLOC_CONF, else PYTORCH_ALLOC_CONF or PYTORCH_CUDA_ALLOC_CONF, has what holds at first.
 *
 * "expandable_segments", first True: where the device has virtual memory, new memory comes as chunks that are mapped to
 * addresses.
 *
 * "garbage_collection_threshold", first 0, below 1: before growth beyond this part of the device idle memory goes back.
 * With 0 it goes back only where memory is short.
 *
 * "ask_fences", first False: with True a block that another stream has used serves once its work is seen to be done.
 * With False the block's stream waits for that work, and addresses are the same in each run.
 *
 * Errors: VALUE for a key that is unknown or named twice and for a value out of range; nothing is changed then.
 * [any-thread] */
YOKE_API yoke_status yoke_set_alloc_conf(const char *settings);

/* *settings receives all of them, in the same form, borrowed until this thread's next call of it. Errors: VALUE for a
 * variable of the environment that cannot be read. [any-thread] */
YOKE_API yoke_status yoke_get_alloc_conf(const char **settings);

/* ---- Out of memory ---------------------------------------------------------------------------------- */

/* A function of the host program that may free memory of the device, on which a request of so many bytes found none,
 * also after all that is cached was given back. Not 0: the request tries again. Called on the thread that asks, with no
 * lock of the library's held, amid the call that needs the memory: it must leave that call's arguments alone. It may
 * call the library; a request of its own that finds no memory fails without asking. */
typedef int32_t (*yoke_relief_fn)(void *user, yoke_device *device, int64_t bytes);

/* Has `fn` called before a request fails with OOM, three times at most while it gives not 0. *id is its number, from 1.
 * Several are called in the order in which they were added. `drop` (or NULL) is called once with `user` after it was
 * removed and its last call has returned; yoke_shutdown leaves it in place.
 * Errors: VALUE where fn is NULL; nothing is dropped then. [any-thread] */
YOKE_API yoke_status yoke_on_out_of_memory(yoke_relief_fn fn, void *user, yoke_drop_fn drop,
                                           int64_t *id);

/* Takes one away. Errors: VALUE for a number that none has. [any-thread] */
YOKE_API yoke_status yoke_remove_on_out_of_memory(int64_t id);

/* The numbers of this thread's last failure, if that was OOM for want of a device's memory: a dict of bytes, requested,
 * allocated, rounding (of allocated), reserved, free_in_cache, largest_free, stranded (free on other streams than the
 * one that has most), waiting (for other streams), graphs, foreign (engines of groups), others (other processes), free
 * and total (-1: not known), and of the texts device and limit. The caller owns it. NULL after any other failure; the
 * last error stays as it is. [any-thread] */
YOKE_API yoke_state *yoke_oom_details(void);

/* For bindings of languages with a garbage collector, which may hold tensors: `fn` runs it, once for a request, before
 * the functions above are asked. It gives 0 where its language cannot run now. Errors as above. [any-thread] */
YOKE_API yoke_status yoke_add_garbage_collector(yoke_relief_fn fn, void *user, yoke_drop_fn drop,
                                                int64_t *id);
YOKE_API yoke_status yoke_remove_garbage_collector(int64_t id);

/* ---- Raw blocks ------------------------------------------------------------------------------------ */

/* A block of at least `bytes` bytes on a device, not cleared, ordered on `stream` (the device's own
 * kind of stream; NULL is the default one). A stream that comes and goes is wrapped first: stream.h.
 * 0 bytes give a valid block too.
 * Errors: VALUE for a negative size, OOM with what is held and what to do. [any-thread] */
YOKE_API yoke_status yoke_alloc(int64_t bytes, yoke_device *device, void *stream, void **out);

/* Gives a block of yoke_alloc back, in the order of its stream. NULL is ignored.
 * Errors: VALUE for a pointer that is no live block. [any-thread] */
YOKE_API yoke_status yoke_free(void *pointer);

#ifdef __cplusplus
}
#endif
#endif /* YOKE_MEMORY_H */
