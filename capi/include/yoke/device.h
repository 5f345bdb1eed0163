/*
 * yoke/device.h: choosing a device, asking why one cannot be used, waiting for it.
 *
 * A device is named by a spec: "auto" (the best usable one; in a job each rank of a machine has one of
 * its own), "cpu", "cuda", "cuda:1". A kind is the part before the colon. Each thread has a current
 * device, used wherever NULL is passed for a device; a new thread starts with the process default, which
 * is resolved once: the environment variable YOKE_DEVICE, else "auto".
 *
 * Devices are handles like any other, but they live as long as the library: releasing the last
 * reference frees nothing, and one device always has one address, so two may be compared with ==.
 */
#ifndef YOKE_DEVICE_H
#define YOKE_DEVICE_H

#include "yoke/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Getting a device ---------------------------------------------------------------------------- */

/* Opens the device that a spec names. NULL is "auto".
 * Errors: VALUE for a spec that is not understood, UNAVAILABLE with the reason and a remedy where
 * the device cannot be used. Nothing is replaced silently: "cuda" never gives a CPU. [any-thread] */
YOKE_API yoke_status yoke_device_open(const char *spec, yoke_device **out);

/* Device `index` of a kind, counted from 0 in the order of yoke_device_count.
 * Errors: VALUE for an unknown kind, INDEX out of range, UNAVAILABLE as above. [any-thread] */
YOKE_API yoke_status yoke_device_get(const char *kind, int32_t index, yoke_device **out);

/* One more reference to a device; returns it. NULL is passed through. [any-thread] */
YOKE_API yoke_device *yoke_device_retain(yoke_device *device);

/* One reference less. NULL is ignored. Never blocks. [any-thread] */
YOKE_API void yoke_device_release(yoke_device *device);

/* ---- What there is ------------------------------------------------------------------------------- */

/* What a bare index names where an accelerator is meant, as in set_device(0): a device of the current kind, or, while
 * the current device is the CPU, of the first kind of accelerators that has devices. Never the CPU. The caller releases
 * it. Errors: INDEX for an index beyond what there is; UNAVAILABLE where there is no accelerator, with each kind's
 * reason. [any-thread] */
YOKE_API yoke_status yoke_accelerator_get(int32_t index, yoke_device **out);

/* Usable devices of a kind; 0 where there is none. NULL counts the devices of all kinds.
 * Errors: VALUE for an unknown kind. [any-thread] */
YOKE_API yoke_status yoke_device_count(const char *kind, int32_t *count);

/* 1 if a device of that kind can be used now, else 0; NULL asks for any accelerator, that is any kind but "cpu". An
 * unknown kind is not available. [any-thread] */
YOKE_API int32_t yoke_is_available(const char *kind);

/* Why no device of that kind can be used, with a remedy; "" when one can. Borrowed, and never NULL:
 * for NULL or an unknown kind it is the message of that error. [any-thread] */
YOKE_API const char *yoke_why_unavailable(const char *kind);

/* ---- What it is ---------------------------------------------------------------------------------- */

/* "cpu" or "cuda". NULL after a NULL device. Borrowed from the device, like all text here. [any-thread] */
YOKE_API const char *yoke_device_kind(yoke_device *device);

/* The index among the devices of its kind; -1 after a NULL device. [any-thread] */
YOKE_API int32_t yoke_device_index(yoke_device *device);

/* The spec that opens it again: "cpu", "cuda:1". NULL after a NULL device. [any-thread] */
YOKE_API const char *yoke_device_spec(yoke_device *device);

/* The maker's name for it, "NVIDIA H200". NULL after a NULL device. [any-thread] */
YOKE_API const char *yoke_device_name(yoke_device *device);

/* Memory now free on the device and in all, in bytes, as the driver tells it. [any-thread] */
YOKE_API yoke_status yoke_device_memory(yoke_device *device, int64_t *free_bytes,
                                        int64_t *total_bytes);

/* Whether a device has a feature for a dtype: "compute", its ops take tensors of it; "tensor_cores", it
 * multiplies matrices of it on units that are faster than those for float32 (on a CPU: AVX512-BF16).
 * Errors: VALUE for another feature, TYPE or VALUE for what is no dtype. [any-thread] */
YOKE_API yoke_status yoke_device_supports(yoke_device *device, yoke_dtype dtype,
                                          const char *feature, int32_t *out);

/* ---- The current device and its work --------------------------------------------------------------- */

/* Makes a device the calling thread's current one. [any-thread] */
YOKE_API yoke_status yoke_set_device(yoke_device *device);

/* Makes a device the calling thread's own (NULL: none, so that the process's default is current) and returns the one
 * that it had, NULL for none: a block saves and restores with it what it sets. Nothing is opened, and a device whose
 * kind was disabled meanwhile is restored, too: the next call that needs it is refused. What is returned is
 * borrowed. If this is the thread's first call and the host has no memory left, nothing changes, and the last
 * error is OOM. [any-thread] */
YOKE_API yoke_device *yoke_device_swap(yoke_device *device);

/* The calling thread's current device. Errors: those of yoke_device_open for YOKE_DEVICE, at the
 * first call that needs a device. [any-thread] */
YOKE_API yoke_status yoke_current_device(yoke_device **out);

/* Waits until all work given to the device has finished; NULL is the current device. A failure of
 * asynchronous work surfaces here. [any-thread] */
YOKE_API yoke_status yoke_device_synchronize(yoke_device *device);

/* CPU threads that an op may use, for the whole process: ops of every thread, from their next call on.
 * 0 goes back to the default. The number changes no bit of a result.
 * Errors: VALUE for a negative number or one above 1024. [any-thread] */
YOKE_API yoke_status yoke_set_num_threads(int32_t count);

/* That number. The default is YOKE_NUM_THREADS, else OMP_NUM_THREADS, else the processors granted to
 * the process. -1 if a variable cannot be read. [any-thread] */
YOKE_API int32_t yoke_get_num_threads(void);

#ifdef __cplusplus
}
#endif
#endif /* YOKE_DEVICE_H */
