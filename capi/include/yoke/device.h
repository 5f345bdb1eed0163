/*
 * yoke/device.h: choosing a device, asking why a device cannot be used, waiting for a device.
 *
 * A spec names a device: "auto" (the best usable device; in a job each rank of a machine gets a different device),
 * "cpu", "cuda", "cuda:1". A kind is the part before the colon. Each thread has a current device, used wherever NULL
 * is passed for a device. A new thread starts with the process default, which is resolved once: the environment
 * variable YOKE_DEVICE, else "auto".
 *
 * Devices are handles, but they live as long as the library: releasing the last reference frees nothing. A device
 * always has the same address, so == compares two devices.
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

/* Returns device `index` of a kind, counted from 0 in the order of yoke_device_count.
 * Errors: VALUE for an unknown kind, INDEX out of range, UNAVAILABLE as above. [any-thread] */
YOKE_API yoke_status yoke_device_get(const char *kind, int32_t index, yoke_device **out);

/* Adds a reference to a device and returns the device. NULL is passed through. [any-thread] */
YOKE_API yoke_device *yoke_device_retain(yoke_device *device);

/* Releases a reference. NULL is ignored. Never blocks. [any-thread] */
YOKE_API void yoke_device_release(yoke_device *device);

/* ---- Enumeration --------------------------------------------------------------------------------- */

/* Returns the accelerator with a bare index, as in set_device(0): a device of the current kind. While the current
 * device is the CPU, the kind is the first kind of accelerators with devices. Never returns the CPU. The caller
 * releases the device. Errors: INDEX for an index out of range; UNAVAILABLE if there is no accelerator, with each
 * kind's reason. [any-thread] */
YOKE_API yoke_status yoke_accelerator_get(int32_t index, yoke_device **out);

/* Counts the usable devices of a kind; 0 if there is none. NULL counts the devices of all kinds.
 * Errors: VALUE for an unknown kind. [any-thread] */
YOKE_API yoke_status yoke_device_count(const char *kind, int32_t *count);

/* Returns 1 if a device of that kind can be used now, else 0; NULL asks for any accelerator, that is any kind but
 * "cpu". An unknown kind is not available. [any-thread] */
YOKE_API int32_t yoke_is_available(const char *kind);

/* Returns why no device of the kind can be used, with a remedy; "" if a device can be used. Borrowed, and never NULL:
 * for NULL or an unknown kind the text is the message of this error. [any-thread] */
YOKE_API const char *yoke_why_unavailable(const char *kind);

/* ---- Properties ---------------------------------------------------------------------------------- */

/* Returns "cpu" or "cuda". NULL after a NULL device. Borrowed from the device, like all text here. [any-thread] */
YOKE_API const char *yoke_device_kind(yoke_device *device);

/* Returns the index among the devices of its kind; -1 after a NULL device. [any-thread] */
YOKE_API int32_t yoke_device_index(yoke_device *device);

/* Returns the spec that opens the device again: "cpu", "cuda:1". NULL after a NULL device. [any-thread] */
YOKE_API const char *yoke_device_spec(yoke_device *device);

/* Returns the maker's name, "NVIDIA H200". NULL after a NULL device. [any-thread] */
YOKE_API const char *yoke_device_name(yoke_device *device);

/* Reads the free and total memory of the device in bytes, from the driver. [any-thread] */
YOKE_API yoke_status yoke_device_memory(yoke_device *device, int64_t *free_bytes,
                                        int64_t *total_bytes);

/* Reads whether a device has a feature for a dtype. "compute": ops on the device take tensors of the dtype.
 * "tensor_cores": the device multiplies matrices of the dtype on units faster than the float32 units (on a CPU:
 * AVX512-BF16). Errors: VALUE for another feature, TYPE or VALUE for an invalid dtype. [any-thread] */
YOKE_API yoke_status yoke_device_supports(yoke_device *device, yoke_dtype dtype,
                                          const char *feature, int32_t *out);

/* ---- The current device and its work --------------------------------------------------------------- */

/* Makes a device the calling thread's current one. [any-thread] */
YOKE_API yoke_status yoke_set_device(yoke_device *device);

/* Makes a device the calling thread's own (NULL: none, so the process's default is current). Returns the previous own
 * device, or NULL, so that a block can save and restore it. The call opens nothing. A device whose kind was disabled
 * meanwhile is restored too: the next call that needs the device is refused. The returned device is borrowed. If this
 * is the thread's first call and no host memory is left, nothing changes, and the last error is OOM. [any-thread] */
YOKE_API yoke_device *yoke_device_swap(yoke_device *device);

/* Returns the calling thread's current device. Errors: the errors of yoke_device_open for YOKE_DEVICE, at the first
 * call that needs a device. [any-thread] */
YOKE_API yoke_status yoke_current_device(yoke_device **out);

/* Waits until all work given to the device has finished; NULL is the current device. A failure of
 * asynchronous work surfaces here. [any-thread] */
YOKE_API yoke_status yoke_device_synchronize(yoke_device *device);

/* Sets how many CPU threads an op may use, for the whole process: ops of every thread, from their next call on.
 * 0 goes back to the default. The number changes no bit of a result.
 * Errors: VALUE for a negative number or one above 1024. [any-thread] */
YOKE_API yoke_status yoke_set_num_threads(int32_t count);

/* Returns the number of threads. The default is YOKE_NUM_THREADS, else OMP_NUM_THREADS, else the number of processors
 * granted to the process. -1 if a variable cannot be read. [any-thread] */
YOKE_API int32_t yoke_get_num_threads(void);

#ifdef __cplusplus
}
#endif
#endif /* YOKE_DEVICE_H */
