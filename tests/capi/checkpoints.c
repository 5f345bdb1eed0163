/* Managers of checkpoints from C: kept, loaded and refused checkpoints, and kill -9 at random points of a save. */
#define _DEFAULT_SOURCE
#include "check.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[64];

static void make_folder(void)
{
    strcpy(folder, "/tmp/yoke_checkpoints_XXXXXX");
    CHECK(mkdtemp(folder) != NULL);
}

static void remove_folder(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    CHECK(system(command) == 0);
}

static yoke_checkpoint_manager *manager_of(int64_t keep)
{
    yoke_checkpoint_manager *manager = NULL;
    OK(yoke_checkpoint_manager_open(folder, keep, &manager));
    return manager;
}

enum { kElements = 5000 };

static yoke_tensor *filled(int64_t count, double value)
{
    yoke_tensor *x = NULL;
    const yoke_scalar number = {.kind = YOKE_ARG_FLOAT, .v = {.f = value}};
    OK(yoke_full(&count, 1, &number, YOKE_F32, NULL, &x));
    return x;
}

static yoke_state *state_of(int64_t version)
{
    yoke_state *state = NULL;
    yoke_tensor *weight = filled(kElements, (double)version), *bias = filled(3, (double)version);
    OK(yoke_state_create(&state));
    OK(yoke_state_set_dict(state, ""));
    OK(yoke_state_set_int(state, "version", version));
    OK(yoke_state_set_tensor(state, "net/weight", weight));
    OK(yoke_state_set_tensor(state, "net/bias", bias));
    yoke_tensor_release(weight);
    yoke_tensor_release(bias);
    return state;
}

static int is_filled(yoke_state *state, const char *path, int64_t count, float value)
{
    static float values[kElements];
    yoke_tensor *x = NULL;
    OK(yoke_state_get_tensor(state, path, &x));
    OK(yoke_tensor_copy_to_host(x, values, (uint64_t)count * sizeof *values));
    yoke_tensor_release(x);
    for (int64_t i = 0; i < count; ++i)
        if (values[i] != value) return 0;
    return 1;
}

/* Returns the version, or -1 if the parts have different versions. */
static int64_t version_of(yoke_state *state)
{
    int64_t version = -1;
    OK(yoke_state_get_int(state, "version", &version));
    const int is_whole = is_filled(state, "net/weight", kElements, (float)version) &&
                         is_filled(state, "net/bias", 3, (float)version);
    return is_whole ? version : -1;
}

static void save(yoke_checkpoint_manager *manager, int64_t step, int64_t version, int32_t blocking)
{
    yoke_state *state = state_of(version);
    yoke_work *work = NULL;
    OK(yoke_checkpoint_manager_save(manager, step, state, NULL, blocking, &work));
    OK(yoke_work_wait(work, -1));
    yoke_work_release(work);
    yoke_state_release(state);
}

static int64_t load(yoke_checkpoint_manager *manager, int64_t step, int32_t verify)
{
    yoke_state *state = NULL;
    OK(yoke_checkpoint_manager_load(manager, step, NULL, verify, NULL, &state));
    const int64_t version = state ? version_of(state) : -1;
    yoke_state_release(state);
    return version;
}

static void the_newest_are_kept(void)
{
    make_folder();
    yoke_checkpoint_manager *manager = manager_of(2);
    yoke_state *steps = NULL;
    int64_t step = 7;
    OK(yoke_checkpoint_manager_latest(manager, &step));
    CHECK(step == -1);
    for (int64_t i = 1; i <= 3; ++i) save(manager, 10 - i, i, i == 2);
    OK(yoke_checkpoint_manager_latest(manager, &step));
    CHECK(step == 7);
    OK(yoke_checkpoint_manager_steps(manager, &steps));
    CHECK(yoke_state_count(steps) == 2);
    OK(yoke_state_get_int(steps, "0", &step));
    CHECK(step == 8);
    yoke_state_release(steps);
    CHECK(load(manager, -1, 1) == 3 && load(manager, 8, 0) == 2);
    yoke_checkpoint_manager_release(yoke_checkpoint_manager_retain(manager));
    yoke_checkpoint_manager_release(manager);
    remove_folder();
}

static void what_the_system_refuses_is_no_damage(void)
{
    struct rlimit files = {0, 0};
    make_folder();
    yoke_checkpoint_manager *manager = manager_of(3);
    yoke_state *state = NULL;
    for (int64_t i = 1; i <= 2; ++i) save(manager, i, i, 1);
    CHECK(load(manager, -1, 1) == 2);
    // The sanitizer opens a pipe when it checks a type for the first time, and takes a failure for a wrong object.
    FAILS(yoke_checkpoint_manager_load(manager, 9, NULL, 1, NULL, &state), YOKE_E_CHECKPOINT,
          folder);
    CHECK(getrlimit(RLIMIT_NOFILE, &files) == 0);
    const struct rlimit none = {3, files.rlim_max};
    CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
    int64_t step = 7;
    FAILS(yoke_checkpoint_manager_load(manager, -1, NULL, 1, NULL, &state), YOKE_E_IO, folder);
    CHECK(yoke_last_error()->native_code == EMFILE && state == NULL);
    FAILS(yoke_checkpoint_manager_latest(manager, &step), YOKE_E_IO, folder);
    CHECK(yoke_last_error()->native_code == EMFILE);
    CHECK(setrlimit(RLIMIT_NOFILE, &files) == 0);
    CHECK(load(manager, -1, 1) == 2);
    yoke_checkpoint_manager_release(manager);
    remove_folder();
}

static void a_state_goes_into_tensors(void)
{
    make_folder();
    yoke_checkpoint_manager *manager = manager_of(3);
    yoke_state *into = NULL, *state = NULL, *lines = NULL;
    yoke_tensor *weight = filled(kElements, 0), *wrong = filled(4, 0);
    save(manager, 1, 5, 1);
    OK(yoke_state_create(&into));
    OK(yoke_state_set_dict(into, ""));
    OK(yoke_state_set_tensor(into, "net/weight", weight));
    OK(yoke_state_set_tensor(into, "net/bias", wrong));
    OK(yoke_state_set_tensor(into, "more", wrong));
    FAILS(yoke_checkpoint_manager_load(manager, -1, NULL, 1, into, &state), YOKE_E_VALUE,
          "'net/bias' is a float32 tensor of shape [3] in the state");
    FAILS(yoke_checkpoint_manager_load(manager, -1, NULL, 1, into, &state), YOKE_E_VALUE,
          "'more' is missing in the state");
    CHECK(state == NULL && is_filled(into, "net/weight", kElements, 0));
    yoke_state_release(into);
    OK(yoke_state_create(&into));
    OK(yoke_state_set_dict(into, ""));
    OK(yoke_state_set_tensor(into, "net/weight", weight));
    OK(yoke_checkpoint_manager_load(manager, -1, NULL, 1, NULL, &state));
    OK(yoke_state_misfits(state, into, &lines));
    CHECK(yoke_state_count(lines) == 1); /* net/bias has no place to go to */
    FAILS(yoke_state_copy_into(state, into), YOKE_E_VALUE, "'net/bias' is in the state, but has");
    yoke_tensor *bias = filled(3, 0);
    OK(yoke_state_set_tensor(into, "net/bias", bias));
    OK(yoke_state_copy_into(state, into));
    CHECK(is_filled(into, "net/weight", kElements, 5) && is_filled(into, "net/bias", 3, 5));
    yoke_tensor_release(bias);
    yoke_tensor_release(weight);
    yoke_tensor_release(wrong);
    yoke_state_release(lines);
    yoke_state_release(state);
    yoke_state_release(into);
    yoke_checkpoint_manager_release(manager);
    remove_folder();
}

static void what_cannot_be_is_told(void)
{
    make_folder();
    yoke_checkpoint_manager *manager = NULL, *other = NULL;
    yoke_state *state = state_of(1), *out = NULL;
    FAILS(yoke_checkpoint_manager_open(folder, 0, &manager), YOKE_E_VALUE, "'keep' is 0");
    FAILS(yoke_checkpoint_manager_open("", 1, &manager), YOKE_E_VALUE, "'folder' is empty");
    FAILS(yoke_checkpoint_manager_open(NULL, 1, &manager), YOKE_E_VALUE, "'folder'");
    FAILS(yoke_checkpoint_manager_latest(NULL, NULL), YOKE_E_VALUE, "'step'");
    FAILS(yoke_checkpoint_manager_steps(NULL, &out), YOKE_E_VALUE, "'manager'");
    manager = manager_of(3);
    other = manager_of(3);
    FAILS(yoke_checkpoint_manager_load(manager, -1, NULL, 1, NULL, &out), YOKE_E_CHECKPOINT,
          "there is no step in");
    CHECK(yoke_last_error()->native_code == ENOENT);
    FAILS(yoke_checkpoint_manager_save(manager, -1, state, NULL, 1, NULL), YOKE_E_VALUE,
          "'step' is -1");
    FAILS(yoke_checkpoint_manager_save(manager, 1, NULL, NULL, 1, NULL), YOKE_E_VALUE, "'state'");
    FAILS(yoke_checkpoint_manager_save(manager, 1, state, state, 1, NULL), YOKE_E_TYPE, "metadata");
    save(manager, 1, 1, 1);
    FAILS(yoke_checkpoint_manager_save(other, 2, state, NULL, 1, NULL), YOKE_E_STATE, "(this one)");
    FAILS(yoke_load(folder, NULL, &out), YOKE_E_CHECKPOINT, "a CheckpointManager's folder");
    CHECK(yoke_last_error()->native_code == EINVAL);
    FAILS(yoke_checkpoint_manager_load(other, 2, NULL, 1, NULL, &out), YOKE_E_CHECKPOINT,
          "there is no step 2");
    yoke_state_release(state);
    yoke_checkpoint_manager_release(other);
    yoke_checkpoint_manager_release(manager);
    remove_folder();
}

/* ---- Kills ------------------------------------------------------------------------------------------------------- */

/* Goes on from the newest state, and says to the pipe which version is saved. */
static int run(int64_t keep, int32_t blocking, int pipe, int64_t most)
{
    yoke_checkpoint_manager *manager = manager_of(keep);
    int64_t step = -1, version = 0;
    OK(yoke_checkpoint_manager_latest(manager, &step));
    if (step >= 0) version = load(manager, -1, 1);
    CHECK(version >= 0);
    for (int64_t i = 0; i < most && !checks_failed; ++i) {
        save(manager, (version + 1) % 7, version + 1, blocking);
        ++version;
        CHECK(write(pipe, &version, sizeof version) == sizeof version);
    }
    yoke_checkpoint_manager_release(manager);
    return checks_failed ? 1 : 0;
}

/* Begins a run in a fresh process without earlier use of the library. Returns the reading end of its pipe. */
static int begin_run(int64_t keep, int32_t blocking, int64_t most, pid_t *child)
{
    int ends[2];
    CHECK(pipe(ends) == 0);
    *child = fork();
    if (*child == 0) {
        char numbers[4][24];
        const int64_t values[4] = {keep, blocking, ends[1], most};
        for (int i = 0; i < 4; ++i)
            snprintf(numbers[i], sizeof numbers[i], "%lld", (long long)values[i]);
        close(ends[0]);
        execl("/proc/self/exe", "checkpoints", folder, numbers[0], numbers[1], numbers[2],
              numbers[3], (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    return ends[0];
}

/* Kills a run at a random point after a report. Returns the last reported version. */
static int64_t run_and_kill(int64_t keep, int32_t blocking, unsigned *seed)
{
    int64_t version = 0;
    pid_t child = 0;
    const int said = begin_run(keep, blocking, 1000000, &child);
    for (int i = rand_r(seed) % 5; i >= 0; --i)
        CHECK(read(said, &version, sizeof version) == sizeof version);
    usleep((useconds_t)(rand_r(seed) % 8000));
    int status = 0;
    CHECK(kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    while (read(said, &version, sizeof version) == sizeof version) {
    }
    close(said);
    return version;
}

static int count_entries(void)
{
    int count = 0;
    DIR *entries = opendir(folder);
    while (readdir(entries)) ++count;
    closedir(entries);
    return count - 3; /* ".", ".." and ".lock" */
}

static int64_t run_to_the_end(int64_t keep, int64_t newest)
{
    int status = 0;
    pid_t child = 0;
    const int said = begin_run(keep, 1, 3, &child);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    close(said);
    return newest + 3;
}

static void a_killed_run_leaves_a_whole_state(void)
{
    const int kills = getenv("YOKE_SOAK") ? 200 : 20;
    unsigned seed = 7;
    for (int64_t keep = 1; keep <= 3; keep += 2)
        for (int32_t blocking = 0; blocking < 2; ++blocking) {
            make_folder();
            int64_t newest = 0;
            for (int i = 0; i < kills / 4; ++i) {
                const int64_t said = run_and_kill(keep, blocking, &seed);
                CHECK(said > newest);
                yoke_checkpoint_manager *manager = manager_of(keep);
                newest = load(manager, -1, 1);
                yoke_checkpoint_manager_release(manager);
                CHECK(newest == said || newest == said + 1);
            }
            newest = run_to_the_end(keep, newest);
            yoke_checkpoint_manager *manager = manager_of(keep);
            CHECK(load(manager, -1, 1) == newest);
            yoke_checkpoint_manager_release(manager);
            CHECK(count_entries() == keep);
            remove_folder();
        }
}

int main(int count, char **arguments)
{
    if (count == 6) {
        snprintf(folder, sizeof folder, "%s", arguments[1]);
        return run(atoll(arguments[2]), atoi(arguments[3]), atoi(arguments[4]),
                   atoll(arguments[5]));
    }
    RUN(the_newest_are_kept);
    RUN(what_the_system_refuses_is_no_damage);
    RUN(a_state_goes_into_tensors);
    RUN(what_cannot_be_is_told);
    RUN(a_killed_run_leaves_a_whole_state);
    return report();
}
