/*
 * yoke/checkpoints.h: the newest states of a run in a folder, of which one is whole whenever the machine stops.
 *
 *     yoke_checkpoint_manager_open("run", 3, &manager);
 *     yoke_checkpoint_manager_save(manager, step, state, NULL, 1, NULL);
 *     yoke_checkpoint_manager_load(manager, -1, NULL, 1, NULL, &state);
 *
 * FOLDER/step-N has state.safetensors, a file as yoke_save writes it, and MANIFEST.json, which says how many bytes each
 * file has and its XXH3 hash of 128 bits. A step's folder comes to its name last, when all of it is on the disk. The
 * newest step is the one that was saved last, whatever its number: a run may go back. One manager at a time writes to a
 * folder; any number may load from it meanwhile.
 */
#ifndef YOKE_CHECKPOINTS_H
#define YOKE_CHECKPOINTS_H

#include "yoke/state.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct yoke_checkpoint_manager yoke_checkpoint_manager;

/* A manager of a folder, which keeps the newest `keep` steps, of at least 1. The folder is made with the first save.
 * Errors: VALUE for an empty folder or keep below 1. [any-thread] */
YOKE_API yoke_status yoke_checkpoint_manager_open(const char *folder, int64_t keep,
                                                  yoke_checkpoint_manager **out);

/* One more reference; returns its argument, which may be NULL. [any-thread] */
YOKE_API yoke_checkpoint_manager *yoke_checkpoint_manager_retain(yoke_checkpoint_manager *manager);

/* One reference less; with the last one the folder is another writer's to take. NULL is ignored. [any-thread] */
YOKE_API void yoke_checkpoint_manager_release(yoke_checkpoint_manager *manager);

/* Saves a state as a step, from 0 on; one of that number is replaced. Then the oldest steps go, and before them the
 * damaged ones; the log tells of one that cannot be removed. The first save takes the folder for this manager, and
 * removes what writers left that were killed. `metadata` is NULL, or a dict of strings. `blocking` 0: it returns when
 * the state is taken, and writes it meanwhile; `out` NULL, or the work, which tells when the step is there.
 * Errors: STATE where another process writes to the folder, with its number, and where FOLDER/step-N has no
 * manifest; else as yoke_save. [any-thread] */
YOKE_API yoke_status yoke_checkpoint_manager_save(yoke_checkpoint_manager *manager, int64_t step,
                                                  yoke_state *state, yoke_state *metadata,
                                                  int32_t blocking, yoke_work **out);

/* The newest step of which all files are there, which a load tries first; -1 where there is none. One whose content a
 * load of this manager has found damaged is left out. Errors: IO with the native code errno, where the system refuses
 * to read what may be the newest. [any-thread] */
YOKE_API yoke_status yoke_checkpoint_manager_latest(yoke_checkpoint_manager *manager,
                                                    int64_t *step);

/* All such steps as a list, in the order in which they were saved: the newest is the last. Errors: IO where the system
 * refuses to look at one. [any-thread] */
YOKE_API yoke_status yoke_checkpoint_manager_steps(yoke_checkpoint_manager *manager,
                                                   yoke_state **out);

/* Loads a step as yoke_load does, onto a device or (NULL) the CPU; -1: the newest one that is whole, while the log has
 * one warning with what was passed over and why. `verify` 0: it does not read the files to see whether they have the
 * hashes of the manifest. `into` NULL, or a state whose tensors get the values that were saved under the same paths, as
 * yoke_state_copy_into gives them.
 * Errors: CHECKPOINT where no step is whole, with what was found, where the one asked for is not, and for one that a
 * newer version wrote, ENOENT being its native code where nothing at all is there, no damaged one either; IO with errno
 * as the native code, and OOM, where the system refuses to read the newest: that is no damage, and no older step is
 * loaded in its place; VALUE where `into` does not fit; else as yoke_load. [any-thread] */
YOKE_API yoke_status yoke_checkpoint_manager_load(yoke_checkpoint_manager *manager, int64_t step,
                                                  yoke_device *device, int32_t verify,
                                                  yoke_state *into, yoke_state **out);

/* ---- A state that was loaded, into the tensors of a run ------------------------------------------------- */

/* Copies the tensors of a state into those that `into` has at the same paths; all must fit before one is changed. Each
 * tensor of `into` must have one of its dtype and shape in the state; lists and dicts have the same entries, except
 * that at its root the state may have more. Devices may differ. Errors: VALUE with all that does not fit.
 * [any-thread] */
YOKE_API yoke_status yoke_state_copy_into(yoke_state *state, yoke_state *into);

/* What does not fit: a list of strings, which is empty where yoke_state_copy_into would succeed. [any-thread] */
YOKE_API yoke_status yoke_state_misfits(yoke_state *state, yoke_state *into, yoke_state **out);

#ifdef __cplusplus
}
#endif
#endif /* YOKE_CHECKPOINTS_H */
