/*
 * yoke/state.h: the state of a run as a tree of plain values and tensors, in memory and in files.
 *
 *     yoke_state_create(&state);
 *     yoke_state_set_int(state, "epoch", 3);   yoke_state_set_tensor(state, "net/weight", weight);
 *     yoke_save("run.safetensors", state, NULL, NULL);   yoke_state_release(state);
 *
 * A node is of one of the kinds below. A path names a node below another: parts with "/" between them, "" the node
 * itself. In a list a part is a place, counted from 0. In a dict a part is a string, or, written in digits, the whole
 * number if there is such a key. "~1" is a "/" within a part, "~0" a "~". Lists and dicts hold references to nodes: a
 * node set under two paths is a single node. Texts are UTF-8. A tree is for one thread at a time.
 */
#ifndef YOKE_STATE_H
#define YOKE_STATE_H

#include "yoke/amp.h"
#include "yoke/optim.h"
#include "yoke/types.h"
#include "yoke/work.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct yoke_state yoke_state;

#define YOKE_STATE_NONE 0
#define YOKE_STATE_BOOL 1
#define YOKE_STATE_INT 2   /* int64 */
#define YOKE_STATE_FLOAT 3 /* float64 */
#define YOKE_STATE_STRING 4
#define YOKE_STATE_TENSOR 5
#define YOKE_STATE_LIST 6
#define YOKE_STATE_DICT 7 /* keys are strings or whole numbers, in insertion order */

/* ---- Nodes -------------------------------------------------------------------------------------------- */

/* Creates a node of kind NONE; set_* with the path "" changes its kind. [any-thread] */
YOKE_API yoke_status yoke_state_create(yoke_state **out);

/* Adds a reference and returns the argument, which may be NULL. [any-thread] */
YOKE_API yoke_state *yoke_state_retain(yoke_state *state);

/* Releases a reference; the last release frees the parts held only by this node. NULL is ignored. [any-thread] */
YOKE_API void yoke_state_release(yoke_state *state);

/* Returns the kind of the node at a path; -1 if there is no node. Errors (also -1): VALUE for an invalid path.
 * [any-thread] */
YOKE_API int32_t yoke_state_kind(yoke_state *state, const char *path);

/* Returns how many nodes a list or a dict has; 0 for the other kinds, -1 on NULL. [any-thread] */
YOKE_API int64_t yoke_state_count(yoke_state *state);

/* Returns whether a list was a tuple in Python. [any-thread] */
YOKE_API int32_t yoke_state_is_tuple(yoke_state *state);

/* ---- Values by path ----------------------------------------------------------------------------------- */

/* Sets the value at a path, in place of the former value. Missing dicts on the way are made, and a new node of kind
 * NONE becomes a dict. In a list the place after the last adds an entry. Errors: VALUE for a place beyond that, an
 * invalid path, a text that is not UTF-8; TYPE if the path leads through a node other than a list or dict.
 * [any-thread] */
YOKE_API yoke_status yoke_state_set_none(yoke_state *state, const char *path);
YOKE_API yoke_status yoke_state_set_bool(yoke_state *state, const char *path, int32_t value);
YOKE_API yoke_status yoke_state_set_int(yoke_state *state, const char *path, int64_t value);
YOKE_API yoke_status yoke_state_set_float(yoke_state *state, const char *path, double value);
/* Sets a text. `length` is in bytes; -1: up to the first NUL. */
YOKE_API yoke_status yoke_state_set_string(yoke_state *state, const char *path, const char *value,
                                           int64_t length);
/* Sets the tensor itself, not a copy. */
YOKE_API yoke_status yoke_state_set_tensor(yoke_state *state, const char *path, yoke_tensor *value);
/* Sets an empty list; `is_tuple` 1: Python has it as a tuple. */
YOKE_API yoke_status yoke_state_set_list(yoke_state *state, const char *path, int32_t is_tuple);
YOKE_API yoke_status yoke_state_set_dict(yoke_state *state, const char *path);
/* Sets another node; the tree then shares this node. Errors: as above, and VALUE if a node would lie within itself,
 * or more than 64 lists and dicts would nest. */
YOKE_API yoke_status yoke_state_set(yoke_state *state, const char *path, yoke_state *value);

/* Reads the value at a path. Errors: VALUE if there is no value, with the nearest key; TYPE for another kind. A whole
 * number is also a float. [any-thread] */
YOKE_API yoke_status yoke_state_get_bool(yoke_state *state, const char *path, int32_t *value);
YOKE_API yoke_status yoke_state_get_int(yoke_state *state, const char *path, int64_t *value);
YOKE_API yoke_status yoke_state_get_float(yoke_state *state, const char *path, double *value);
/* Reads a text, borrowed until the node is set or released; `length`, in bytes, may be NULL. */
YOKE_API yoke_status yoke_state_get_string(yoke_state *state, const char *path, const char **value,
                                           int64_t *length);
YOKE_API yoke_status yoke_state_get_tensor(yoke_state *state, const char *path, yoke_tensor **out);
/* Returns the node itself, of any kind. */
YOKE_API yoke_status yoke_state_get(yoke_state *state, const char *path, yoke_state **out);

/* ---- Entries ------------------------------------------------------------------------------------------ */

typedef struct yoke_state_key {
    uint32_t struct_size; /* sizeof(yoke_state_key) */
    int32_t is_int;
    int64_t number;   /* where is_int is 1 */
    const char *text; /* else; borrowed until the dict changes */
    int64_t length;   /* text length in bytes; -1 as input: up to the first NUL */
} yoke_state_key;

/* Adds to a list. Errors: TYPE for another kind; VALUE as in yoke_state_set. [any-thread] */
YOKE_API yoke_status yoke_state_append(yoke_state *list, yoke_state *value);

/* Sets the value of a dict under a key with any characters. Errors: as above. [any-thread] */
YOKE_API yoke_status yoke_state_put(yoke_state *dict, const yoke_state_key *key, yoke_state *value);

/* Reads entry `index`, from 0, of a list or a dict. `key` (or NULL) receives its key; struct_size of `key` limits the
 * written size; the key of a list entry is its place. `out` (or NULL) receives its node. Errors: INDEX; TYPE for
 * another kind. [any-thread] */
YOKE_API yoke_status yoke_state_entry(yoke_state *state, int64_t index, yoke_state_key *key,
                                      yoke_state **out);

/* ---- Files -------------------------------------------------------------------------------------------- */

typedef struct yoke_save_options {
    uint32_t struct_size;  /* sizeof(yoke_save_options) */
    int32_t non_blocking;  /* 0, or 1: it is written while work goes on */
    yoke_state *metadata;  /* NULL, or a dict of strings, which the file has beside the state */
    const char *max_shard; /* NULL, or the maximum bytes of tensors in one file, "5GiB" */
} yoke_save_options;

/* Writes a state to a safetensors file. At any stop of the machine the file is whole: the former or the new file;
 * after the end of the work it is the new file. A dict of tensors under string keys gives the same file as other
 * writers. For another tree the plain values stand in the metadata, and a tensor's name is its path with "." between
 * the parts. A tensor under two paths is written once. `options` NULL: none. `out` is NULL, or receives the work; if
 * the call blocks, the work has ended.
 * With `max_shard` (bytes, with or without a unit) a larger state becomes a set, as in HuggingFace's libraries. The
 * set of "model.safetensors" is an index, "model.safetensors.index.json", and files beside it with names that no
 * other set has, "model-0123abcd-00001-of-00002.safetensors". A tensor larger than `max_shard` has its own file. The
 * index comes last, in one step; then the former file or set is removed. yoke_load takes either name.
 * With `non_blocking` the call returns at once, and a thread of the library writes the state of this moment. Calls of
 * the library that would change a tensor copy it first, if the tensor is not written yet; code that writes its memory
 * by a pointer must wait. The next save waits for this save. If this save fails and no yoke_work_wait reports it, the
 * next save with `non_blocking` fails with the error. A blocking save, yoke_shutdown and exit() write the error to
 * the log instead. Without memory for copies of the tensors, or without a thread, the call blocks and a warning says
 * so.
 * Errors: VALUE and TYPE with the path of a value that cannot be saved; VALUE also for a path with the ending of an
 * index; STATE while this thread captures a graph; IO with the path and the system's error. Calls that a file system
 * does not support are no error: the log has a warning for each file system and call, with the missing guarantee.
 * [any-thread] */
YOKE_API yoke_status yoke_save(const char *path, yoke_state *state,
                               const yoke_save_options *options, yoke_work **out);

/* Returns whether a tensor is to be loaded. The arguments are borrowed for the call; the function must not use the
 * library. */
typedef int32_t (*yoke_load_wanted_fn)(void *user, const char *name);

typedef struct yoke_load_options {
    uint32_t struct_size;       /* sizeof(yoke_load_options) */
    int32_t copy;               /* 1: copies on the CPU too, which need the file no more */
    yoke_device *device;        /* NULL: the CPU */
    yoke_dtype dtype;           /* for floating tensors; 0: as in the file */
    int32_t reserved;           /* 0 */
    const char *prefix;         /* NULL, or what the names of the tensors to load begin with */
    yoke_load_wanted_fn wanted; /* NULL, or selects tensors */
    void *user;
} yoke_load_options;

/* Loads the state at a path, from any writer; `options` NULL: all of it. A path names a safetensors file; the index
 * of a set of files, `{"weight_map": {NAME: FILE}}`, which loads as a single file of all its tensors; a file that
 * such a set replaces, `model.safetensors` for `model.safetensors.index.json`; or a folder with one of these.
 * On the CPU a tensor is pages of the file, read at the first access and private to the process after a write. On
 * other devices, and if the file has an unaligned element, the tensor is a copy. Without a tree of yoke_save, or with
 * a prefix or `wanted`, the result is a dict of tensors by their names in the file, in the order of their data.
 * Errors: CHECKPOINT for a file that breaks a rule of the format, with the rule, the tensor and its offsets; for a
 * tensor with a dtype unknown to Yoke; for a set with a missing file or with an index that leads out of its folder;
 * and for a folder with no state or several. Its native code is EINVAL if the path has no state at all, or no single
 * state, and 0 if the state is damaged. A file of PyTorch, NumPy, HDF5 or another known format is named as such. IO
 * with the path and the system's error. [any-thread] */
YOKE_API yoke_status yoke_load(const char *path, const yoke_load_options *options,
                               yoke_state **out);

/* Describes the state at a path without its data, as a dict. The dict has "path" (of the file or the index), "kind"
 * ("file" or "set"), "bytes", "header_bytes", "files" (the bytes of each by its name), "has_tree", "metadata" (a dict
 * of strings) and "tensors". "tensors" is a dict by name of dicts of "dtype" (the format's own name if Yoke has
 * none), "shape", "bytes", "offset" in the file, and for a set "file". Errors: as yoke_load. [any-thread] */
YOKE_API yoke_status yoke_load_info(const char *path, yoke_state **out);

/* ---- Objects of a training ---------------------------------------------------------------------------- */

/* State with which an object continues, in one layout for all languages. Its tensors are the live tensors, so save
 * the state at once, or copy it. yoke_*_load_state takes copies, all or nothing. Errors: VALUE and TYPE with the
 * place of a missing, extra, mistyped or out-of-range entry; STATE while another thread is inside. */

/* Returns {"state": {NUMBER: {NAME: tensor}}, "param_groups": [{OPTION: value, "params": [NUMBER]}]}, PyTorch's layout
 * and names: parameters are numbered through all groups; SGD has "momentum_buffer", Adam and AdamW "exp_avg",
 * "exp_avg_sq" and "step", with master_weights "master" too. A state of PyTorch's loads if its further options are off.
 * [any-thread] */
YOKE_API yoke_status yoke_optimizer_state(yoke_optimizer *optimizer, yoke_state **out);
YOKE_API yoke_status yoke_optimizer_load_state(yoke_optimizer *optimizer, yoke_state *state);

/* Returns {"scale", "growth_factor", "backoff_factor", "growth_interval", "_growth_tracker"}, as in PyTorch. A disabled
 * scaler has {}, and then nothing is loaded. Waits for the device. [any-thread] */
YOKE_API yoke_status yoke_grad_scaler_state(yoke_grad_scaler *scaler, yoke_state **out);
YOKE_API yoke_status yoke_grad_scaler_load_state(yoke_grad_scaler *scaler, yoke_state *state);

/* Returns {"decay", "averages": [tensor]}. [any-thread] */
YOKE_API yoke_status yoke_ema_state(yoke_ema *ema, yoke_state **out);
YOKE_API yoke_status yoke_ema_load_state(yoke_ema *ema, yoke_state *state);

/* Returns the state of this thread's random numbers: a uint8 tensor of 16 bytes, seed and offset. [any-thread] */
YOKE_API yoke_status yoke_rng_state(yoke_state **out);
YOKE_API yoke_status yoke_rng_load_state(yoke_state *state);

/* A schedule is a state from the first: {"kind": "cosine", "total_steps": 100, "min_lr": 0.0, "warmup_steps": 0,
 * "base_lrs": [0.1], "last_step": 0}. Kinds and their options: "constant": factor, total_steps; "linear": start, end,
 * total_steps; "cosine": as above; "step": step_size, gamma; "one_cycle": max_lr, total_steps, pct_start, div_factor,
 * final_div_factor (the functions of yoke/optim.h). base_lrs has the rate with which each group began. */

/* Checks that a schedule is whole, for an optimizer of so many groups (-1: of any number). Errors: VALUE, TYPE.
 * [any-thread] */
YOKE_API yoke_status yoke_schedule_check(yoke_state *schedule, int64_t groups);

/* Sets "last_step", and all groups of the optimizer to their rates of this step. Errors: as above. [any-thread] */
YOKE_API yoke_status yoke_schedule_apply(yoke_state *schedule, yoke_optimizer *optimizer,
                                         int64_t step);

#ifdef __cplusplus
}
#endif
#endif /* YOKE_STATE_H */
