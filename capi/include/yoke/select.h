/*
 * yoke/select.h: choosing devices by their properties, holding them for one process, switching kinds off.
 *
 * A spec is one line of text, the same in C, Python, Lua, the command line and YOKE_DEVICE:
 *
 *   cpu   cuda   cuda:1   uuid:GPU-89   pci:0000:65:00.0   auto   auto:KEY=VALUE,KEY,...
 *
 *   n=2               number of devices, the best first (for yoke_select; yoke_device_open takes one)
 *   min_free=8GiB     free memory;  min_memory=40GB  total memory (B, KB, KiB, MB, MiB, GB, GiB, TB, TiB)
 *   min_cc=8.0        compute capability at least
 *   max_util=20       utilization at most, in percent
 *   name=H100         the name contains this text, in any case
 *   same=nvlink       all joined by NVLink; same=switch, by one PCI Express switch; same=numa, of one NUMA node
 *   homogeneous       one compute capability; memory and multiprocessors of the least >= 75 % of the most
 *   exclude=egpu+display   also mig, integrated, busy (a process computes on the card), leased
 *   kind=cuda         only devices of this kind
 *   wait=60s          waits up to this time for a fitting set (ms, s, m, h)
 *   lease             holds the devices: no other process gets a lease on them
 *   fallback=warn     when no GPU fits: "warn" (the default) and "silent" give the CPU, "error" fails. A constraint
 *                     that no CPU can meet (min_cc, same, lease) makes it "error".
 *
 * The order is always the same: leased by others last, then by link quality, free memory, utilization, highest index.
 * In a job "auto" without n gives local rank k of a machine the k-th fitting device: by link, total memory, lowest
 * index.
 */
#ifndef YOKE_SELECT_H
#define YOKE_SELECT_H

#include "yoke/inventory.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Several devices at once ------------------------------------------------------------------------- */

/* Chooses the best `n` devices for a spec, in order. `n` 0 takes the spec's own n; without n in the spec, a single
 * device, in a job the rank's own. `devices` has space for `capacity`. Errors: VALUE for an invalid or contradictory
 * spec, with key, value, the allowed values and the nearest match; UNAVAILABLE if no device fits, with each rejected
 * device and its reason; TIMEOUT after `wait`. On failure nothing is leased. [any-thread] */
YOKE_API yoke_status yoke_select(const char *spec, int32_t n, yoke_device **devices,
                                 int32_t capacity, int32_t *count);

/* ---- Why these ------------------------------------------------------------------------------------------ */

typedef struct yoke_explanation yoke_explanation;

typedef struct yoke_candidate {
    uint32_t struct_size;
    int32_t accepted; /* 1: fits */
    int32_t chosen;   /* place among the devices that select would give; -1: not chosen */
    int32_t card;     /* index in the explanation's inventory; -1: not in the inventory (the cpu) */
    char device[32]; /* "cuda:1" by CUDA's numbering, "cpu"; "" if hidden by CUDA_VISIBLE_DEVICES */
    char reason[512]; /* reason of the rejection, or properties of the device */
} yoke_candidate;

/* Explains the result of yoke_select without a selection: every device with its verdict. Never waits, leases nothing,
 * opens no device. Errors: VALUE as above. [any-thread] */
YOKE_API yoke_status yoke_explain(const char *spec, yoke_explanation **out);
YOKE_API void yoke_explanation_release(yoke_explanation *explanation);

/* Returns the number of candidates; -1 after NULL. [any-thread] */
YOKE_API int32_t yoke_explanation_count(yoke_explanation *explanation);

/* Returns candidate `index`; the chosen candidates come first. Errors: INDEX out of range. [any-thread] */
YOKE_API yoke_status yoke_explanation_get(yoke_explanation *explanation, int32_t index,
                                          yoke_candidate *candidate);

/* Returns the inventory behind the explanation, borrowed from the explanation. NULL after NULL. [any-thread] */
YOKE_API yoke_inventory *yoke_explanation_inventory(yoke_explanation *explanation);

/* Returns why too few devices fit, or why a chosen card cannot be made visible; "" for neither. Borrowed. NULL after
 * NULL. [any-thread] */
YOKE_API const char *yoke_explanation_problem(yoke_explanation *explanation);

/* Returns the value of CUDA_VISIBLE_DEVICES with which a process sees only the chosen cards, in order: their UUIDs.
 * "" if no card is chosen. Borrowed. NULL after NULL. [any-thread] */
YOKE_API const char *yoke_explanation_visible(yoke_explanation *explanation);

/* ---- Leases ---------------------------------------------------------------------------------------------- */

/* Takes the lease of a device: a lock on a file of YOKE_LEASE_DIR, one for each card (by UUID). The process owns the
 * lease, and any end of the process releases it. Processes without a request for a lease are not stopped.
 *
 * Errors: UNAVAILABLE if another process has the lease, with the process; IO if the folder cannot be used, with the
 * folder and a remedy; UNSUPPORTED for the cpu. A second lease of the same process is the same lease.
 * [any-thread] */
YOKE_API yoke_status yoke_device_lease(yoke_device *device);

/* Releases the lease; without a lease nothing happens. Errors: VALUE for a NULL device. [any-thread] */
YOKE_API yoke_status yoke_device_release_lease(yoke_device *device);

/* Returns 1 if this process holds the device's lease, else 0. [any-thread] */
YOKE_API int32_t yoke_device_is_leased(yoke_device *device);

/* Returns the pid of the process with a card's lease: 0 for none, -1 if the process cannot be named. `uuid` is the
 * card's UUID or its beginning, its PCI address, or a device such as "cuda:0". Errors: VALUE if `uuid` matches no
 * card of this machine, or several; IO as above. [any-thread] */
YOKE_API yoke_status yoke_lease_holder(const char *uuid, int32_t *pid);

/* ---- Switching off ----------------------------------------------------------------------------------------- */

/* Disables a kind: from now on no device of this kind is used. If no device was used before, no part of the kind is
 * ever loaded: no driver context, no library. Errors: STATE while tensors or groups live on a device of this kind,
 * with their names; VALUE for an unknown kind and for "cpu". [any-thread] */
YOKE_API yoke_status yoke_disable(const char *kind);

/* Enables a kind again. Calls count: a kind disabled twice is enabled twice. [any-thread] */
YOKE_API yoke_status yoke_enable(const char *kind);

#ifdef __cplusplus
}
#endif
#endif /* YOKE_SELECT_H */
