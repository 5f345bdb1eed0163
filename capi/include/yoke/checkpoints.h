/*
 * yoke/checkpoints.h: newest states of a run in a folder. At any stop of the machine one of the states is whole.
 *
 *     yoke_checkpoint_manager_open("run", 3, &manager);
 *     yoke_checkpoint_manager_save(manager, step, state, NULL, 1, NULL);
 *     yoke_checkpoint_manager_load(manager, -1, NULL, 1, NULL, &state);
 *
 * FOLDER/step-N has state.safetensors, a file as yoke_save writes it, and MANIFEST.json with the size of each file in
 * bytes and its XXH3 hash of 128 bits. A step's folder gets its name last, when all its data is on the disk. The
 * newest step is the step saved last, whatever its number: a run may go back. One manager at a time writes to a
 * folder; meanwhile any number may load from the folder.
 */
#ifndef YOKE_CHECKPOINTS_H
#define YOKE_CHECKPOINTS_H

#include "yoke/state.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct yoke_checkpoint_manager yoke_checkpoint_manager;

/* Opens a manager of a folder. The manager keeps the newest `keep` steps, of at least 1. The folder is made with the
 * first save. Errors: VALUE for an empty folder or keep below 1. [any-thread] */
YOKE_API yoke_status yoke_checkpoint_manager_open(const char *folder, int64_t keep,
                                                  yoke_checkpoint_manager **out);

/* Adds a reference and returns the argument, which may be NULL. [any-thread] */
YOKE_API yoke_checkpoint_manager *yoke_checkpoint_manager_retain(yoke_checkpoint_manager *manager);

/* Releases a reference. After the last release another writer may take the folder. NULL is ignored. [any-thread] */
YOKE_API void yoke_checkpoint_manager_release(yoke_checkpoint_manager *manager);

/* Saves a state as a step, from 0 on; a step of the same number is replaced. Then damaged steps are removed, and
 * after them the oldest steps. If a step cannot be removed, the log says so. The first save takes the folder for this
 * manager, and removes files of killed writers. `metadata` is NULL, or a dict of strings. `blocking` 0: the call
 * returns after taking the state, and a thread writes the state meanwhile. `out` is NULL, or receives the work; it
 * ends when the step is there. Errors: STATE if another process writes to the folder, with its number, or if
 * FOLDER/step-N has no manifest; else as yoke_save. [any-thread] */
YOKE_API yoke_status yoke_checkpoint_manager_save(yoke_checkpoint_manager *manager, int64_t step,
                                                  yoke_state *state, yoke_state *metadata,
                                                  int32_t blocking, yoke_work **out);

/* Returns the newest step with all its files, which a load tries first; -1 if there is no such step. A step that a
 * load of this manager found damaged does not count. Errors: IO with the native code errno, if the system refuses to
 * read a possibly newest step. [any-thread] */
YOKE_API yoke_status yoke_checkpoint_manager_latest(yoke_checkpoint_manager *manager,
                                                    int64_t *step);

/* Lists all steps with all their files, in the order of their saves: the newest is the last. Errors: IO if the system
 * refuses to look at a step. [any-thread] */
YOKE_API yoke_status yoke_checkpoint_manager_steps(yoke_checkpoint_manager *manager,
                                                   yoke_state **out);

/* Loads a step as yoke_load does, onto a device or (NULL) the CPU. -1: the newest whole step; the log then has one
 * warning with each skipped step and the reason. `verify` 0: the call does not check the files against the hashes of
 * the manifest. `into` is NULL, or a state whose tensors get the values saved under the same paths, as in
 * yoke_state_copy_into.
 * Errors: CHECKPOINT if no step is whole, with the findings; if the requested step is not whole; and for a step of a
 * newer version. The native code is ENOENT if the folder has no step at all, not even a damaged step. IO with errno
 * as the native code, and OOM, if the system refuses to read the newest step: this is no damage, and no older step is
 * loaded in its place. VALUE if `into` does not fit; else as yoke_load. [any-thread] */
YOKE_API yoke_status yoke_checkpoint_manager_load(yoke_checkpoint_manager *manager, int64_t step,
                                                  yoke_device *device, int32_t verify,
                                                  yoke_state *into, yoke_state **out);

/* ---- A state that was loaded, into the tensors of a run ------------------------------------------------- */

/* Copies the tensors of a state into the tensors of `into` at the same paths; all must fit before any is changed.
 * Each tensor of `into` needs a tensor of the same dtype and shape in the state. Lists and dicts have the same
 * entries, but at its root the state may have more. Devices may differ. Errors: VALUE with all misfits. [any-thread] */
YOKE_API yoke_status yoke_state_copy_into(yoke_state *state, yoke_state *into);

/* Lists the misfits as strings; the list is empty if yoke_state_copy_into would succeed. [any-thread] */
YOKE_API yoke_status yoke_state_misfits(yoke_state *state, yoke_state *into, yoke_state **out);

#ifdef __cplusplus
}
#endif
#endif /* YOKE_CHECKPOINTS_H */
