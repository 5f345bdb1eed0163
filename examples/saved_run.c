#include "saved_run.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Options of the run ------------------------------------------------------------------------------- */

/* Adds an option, as it stands on a command line. */
static void tell(char *line, size_t size, yoke_state *options, const char *name)
{
    char number[32] = "none";
    const char *text = number;
    int64_t value;
    const size_t length = strlen(line);
    if (yoke->state_kind(options, name) == YOKE_STATE_INT) {
        check(yoke->state_get_int(options, name, &value));
        snprintf(number, sizeof number, "%" PRId64, value);
    } else if (yoke->state_kind(options, name) == YOKE_STATE_STRING) {
        check(yoke->state_get_string(options, name, &text, NULL));
    }
    snprintf(line + length, size - length, " --%s %s", name, text);
}

static void check_options(const SavedRun *saved, yoke_state *was)
{
    char all_was[1024] = "", all_is[1024] = "";
    for (int64_t i = 0; i < yoke->state_count(saved->options); i++) {
        yoke_state_key key = {.struct_size = sizeof key};
        const size_t was_end = strlen(all_was), is_end = strlen(all_is);
        check(yoke->state_entry(saved->options, i, &key, NULL));
        tell(all_was, sizeof all_was, was, key.text);
        tell(all_is, sizeof all_is, saved->options, key.text);
        if (!strcmp(all_was + was_end, all_is + is_end)) all_was[was_end] = all_is[is_end] = 0;
    }
    if (!*all_was) return;
    fprintf(
        stderr,
        "the run in %s was begun with%s, not with%s; give the options of the run, or name another folder with --save\n",
        saved->folder, all_was, all_is);
    exit(1);
}

/* Ends the program if its name or options differ from the saved run's. */
static void check_begun(const SavedRun *saved, yoke_state *state)
{
    const char *program = "another program";
    yoke_state *options;
    if (yoke->state_kind(state, "program") == YOKE_STATE_STRING)
        check(yoke->state_get_string(state, "program", &program, NULL));
    if (strcmp(program, saved->program)) {
        fprintf(stderr, "%s holds a run of %s; name another folder with --save\n", saved->folder,
                program);
        exit(1);
    }
    check(yoke->state_get(state, "options", &options));
    check_options(saved, options);
    yoke->state_release(options);
}

/* ---- The folder --------------------------------------------------------------------------------------- */

SavedRun saved_run_open(const char *program, const char *folder, int64_t every, yoke_state *options,
                        yoke_group *group)
{
    SavedRun saved = {program, folder, options, NULL, group, every, 0, 0};
    if (folder) check(yoke->checkpoint_manager_open(folder, 3, &saved.manager));
    return saved;
}

void saved_run_close(SavedRun *saved)
{
    yoke->checkpoint_manager_release(saved->manager);
    yoke->state_release(saved->options);
}

static int is_first(const SavedRun *saved)
{
    return !saved->group || yoke->group_rank(saved->group) == 0;
}

/* Random numbers go on where they were, too. */
static void take_step(SavedRun *saved, yoke_state *state)
{
    yoke_state *rng;
    check(yoke->state_get_int(state, "step", &saved->first));
    check(yoke->state_get(state, "rng", &rng));
    check(yoke->rng_load_state(rng));
    yoke->state_release(rng);
    if (is_first(saved))
        fprintf(stderr, "%s: %" PRId64 " of %" PRId64 " steps are done\n", saved->folder,
                saved->first, saved->steps);
}

/* Returns 0 if the folder has no step. Any other failure, also damaged or unreadable steps, ends the program, so that
 * no new run overwrites the folder. */
static int load_newest(const SavedRun *saved, yoke_state **state)
{
    const yoke_status status =
        yoke->checkpoint_manager_load(saved->manager, -1, NULL, 1, NULL, state);
    if (status == YOKE_E_CHECKPOINT && yoke->last_error()->native_code == ENOENT) return 0;
    check(status);
    return 1;
}

yoke_state *saved_run_load(SavedRun *saved, int64_t steps)
{
    yoke_state *state = NULL;
    saved->steps = steps;
    if (!saved->manager) return NULL;
    if (load_newest(saved, &state)) {
        check_begun(saved, state);
        take_step(saved, state);
    }
    /* All ranks have finished reading before rank 0 writes. */
    if (saved->group) check(yoke->group_barrier(saved->group, NULL));
    if (is_first(saved) && saved->first < steps) check(yoke->preempt_watch(NULL, 0)); /* TERM */
    return state;
}

int saved_run_is_due(const SavedRun *saved, int64_t step)
{
    if (!saved->manager || !is_first(saved) || saved->first == saved->steps) return 0;
    return step == saved->first || step == saved->steps || step % saved->every == 0 ||
           yoke->preempted();
}

void saved_run_save(SavedRun *saved, int64_t step, yoke_state *parts)
{
    /* The first save takes the folder, and shows at once whether the folder is writable. Saves in between are written
     * in the background of the next steps. */
    const int blocking = step == saved->first || step == saved->steps || yoke->preempted();
    yoke_state *rng;
    check(yoke->rng_state(&rng));
    check(yoke->state_set(parts, "rng", rng));
    check(yoke->state_set_string(parts, "program", saved->program, -1));
    check(yoke->state_set(parts, "options", saved->options));
    check(yoke->state_set_int(parts, "step", step));
    check(yoke->checkpoint_manager_save(saved->manager, step, parts, NULL, blocking, NULL));
    yoke->state_release(rng);
    yoke->state_release(parts);
    if (blocking) check(yoke->preempt_resume(0)); /* now the signal ends the process, if one came */
    if (step == saved->steps) check(yoke->preempt_unwatch(0));
}
