/*
 * saved_run.h: a run in a folder: what has stopped goes on from the newest state there, in whichever language that was
 * saved.
 *
 *     SavedRun saved = saved_run_open("fashion_mnist", folder, every, options, NULL);
 *     yoke_state *state = saved_run_load(&saved, steps);
 *     if (state) go_on_from(state);
 *     for (int64_t step = saved.first;; step++) {
 *         if (saved_run_is_due(&saved, step)) saved_run_save(&saved, step, make_state());
 *         if (step == steps) break;
 *         train_step();
 *     }
 *
 * saved_run.py and saved_run.lua do the same. A state has the parts of the run, "step", which is how many are done,
 * "rng", and what the run was begun with: "program" and "options". Of a group all ranks load it, and rank 0 alone
 * saves.
 */
#ifndef SAVED_RUN_H
#define SAVED_RUN_H

#include "library.h"

typedef struct {
    const char *program, *folder;
    yoke_state *options;
    yoke_checkpoint_manager *manager; /* NULL: nothing is saved */
    yoke_group *group;                /* NULL: this process is alone */
    int64_t every, steps;
    int64_t first; /* the step that this process begins with */
} SavedRun;

/* `folder` NULL: no saves. `every` is the number of steps between saves. Takes over `options`, a dict of the run's
 * numbers and texts. `group` may be NULL. */
SavedRun saved_run_open(const char *program, const char *folder, int64_t every, yoke_state *options,
                        yoke_group *group);

void saved_run_close(SavedRun *saved);

/* Returns the state for continuing a run of `steps` steps; NULL for a new run. Random numbers continue from the
 * state. Ends the program if its options differ from the saved run's. */
yoke_state *saved_run_load(SavedRun *saved, int64_t steps);

/* Returns whether the run is to be saved after so many steps: before the first, every so many, after the last, and
 * after TERM. If all steps were done already, the run is not saved. */
int saved_run_is_due(const SavedRun *saved, int64_t step);

/* Saves the parts of the run, and takes them over. If TERM arrived, ends the process afterwards with TERM's former
 * effect. */
void saved_run_save(SavedRun *saved, int64_t step, yoke_state *parts);

#endif /* SAVED_RUN_H */
