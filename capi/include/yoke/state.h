/*
 * yoke/state.h: the state of a run as a tree of plain values and tensors, in memory and in files.
 *
 *     yoke_state_create(&state);
 *     yoke_state_set_int(state, "epoch", 3);   yoke_state_set_tensor(state, "net/weight", weight);
 *     yoke_save("run.safetensors", state, NULL, NULL);   yoke_state_release(state);
 *
 * A node is one of the kinds below. A path names a node below another: parts with "/" between them, "" the node itself.
 * In a list a part is a place, counted from 0; in a dict it is a string, or, written in digits, the whole number if
 * there is such a key. "~1" is a "/" within a part, "~0" a "~". Lists and dicts hold references to nodes: a node that
 * is set under two paths is one. Texts are UTF-8. A tree is for one thread at a time.
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
#define YOKE_STATE_DICT 7 /* keys are strings or whole numbers, in the order in which they came */

/* ---- Nodes -------------------------------------------------------------------------------------------- */

/* A node of kind NONE, which set_* with the path "" makes another. [any-thread] */
YOKE_API yoke_status yoke_state_create(yoke_state **out);

/* One more reference; returns its argument, which may be NULL. [any-thread] */
YOKE_API yoke_state *yoke_state_retain(yoke_state *state);

/* One reference less; the last one releases what only this node has. NULL is ignored. [any-thread] */
YOKE_API void yoke_state_release(yoke_state *state);

/* The kind of the node at a path; -1 where there is none. Errors (also -1): VALUE for a path that is none.
 * [any-thread] */
YOKE_API int32_t yoke_state_kind(yoke_state *state, const char *path);

/* How many nodes a list or a dict has; 0 for the other kinds, -1 on NULL. [any-thread] */
YOKE_API int64_t yoke_state_count(yoke_state *state);

/* Whether a list is one that Python had as a tuple. [any-thread] */
YOKE_API int32_t yoke_state_is_tuple(yoke_state *state);

/* ---- Values by path ----------------------------------------------------------------------------------- */

/* Set what is at a path, in place of what was there. Dicts that lack on the way are made, and a new node, which is
 * NONE, becomes one; in a list the place behind
 * the last is one more. Errors: VALUE for a place beyond that, a path that is none, a text that is no UTF-8; TYPE
 * where the way leads through what is neither list nor dict. [any-thread] */
YOKE_API yoke_status yoke_state_set_none(yoke_state *state, const char *path);
YOKE_API yoke_status yoke_state_set_bool(yoke_state *state, const char *path, int32_t value);
YOKE_API yoke_status yoke_state_set_int(yoke_state *state, const char *path, int64_t value);
YOKE_API yoke_status yoke_state_set_float(yoke_state *state, const char *path, double value);
/* `length` in bytes; -1: up to the first NUL. */
YOKE_API yoke_status yoke_state_set_string(yoke_state *state, const char *path, const char *value,
                                           int64_t length);
/* The tensor itself, not a copy. */
YOKE_API yoke_status yoke_state_set_tensor(yoke_state *state, const char *path, yoke_tensor *value);
/* An empty one; `is_tuple` 1: Python has it as a tuple. */
YOKE_API yoke_status yoke_state_set_list(yoke_state *state, const char *path, int32_t is_tuple);
YOKE_API yoke_status yoke_state_set_dict(yoke_state *state, const char *path);
/* Another node, which the tree then shares. Errors: as above, and VALUE if one would lie within itself, or more than
 * 64 lists and dicts in each other. */
YOKE_API yoke_status yoke_state_set(yoke_state *state, const char *path, yoke_state *value);

/* What is at a path. Errors: VALUE where there is nothing, with the nearest key; TYPE for another kind. A whole number
 * is also a float. [any-thread] */
YOKE_API yoke_status yoke_state_get_bool(yoke_state *state, const char *path, int32_t *value);
YOKE_API yoke_status yoke_state_get_int(yoke_state *state, const char *path, int64_t *value);
YOKE_API yoke_status yoke_state_get_float(yoke_state *state, const char *path, double *value);
/* Borrowed until the node is set or released; `length`, in bytes, may be NULL. */
YOKE_API yoke_status yoke_state_get_string(yoke_state *state, const char *path, const char **value,
                                           int64_t *length);
YOKE_API yoke_status yoke_state_get_tensor(yoke_state *state, const char *path, yoke_tensor **out);
/* The node itself, of any kind. */
YOKE_API yoke_status yoke_state_get(yoke_state *state, const char *path, yoke_state **out);

/* ---- Entries ------------------------------------------------------------------------------------------ */

typedef struct yoke_state_key {
    uint32_t struct_size; /* sizeof(yoke_state_key) */
    int32_t is_int;
    int64_t number;   /* where is_int is 1 */
    const char *text; /* else; borrowed until the dict changes */
    int64_t length;   /* of text in bytes; given as -1: up to the first NUL */
} yoke_state_key;

/* Adds to a list. Errors: TYPE for another kind; VALUE as in yoke_state_set. [any-thread] */
YOKE_API yoke_status yoke_state_append(yoke_state *list, yoke_state *value);

/* Sets what a dict has under a key, whatever stands in it. Errors: as above. [any-thread] */
YOKE_API yoke_status yoke_state_put(yoke_state *dict, const yoke_state_key *key, yoke_state *value);

/* Entry `index`, from 0, of a list or a dict: its key, whose struct_size says how much of it (NULL: not wanted; of a
 * list the place), and its node (NULL: not wanted). Errors: INDEX; TYPE for another kind. [any-thread] */
YOKE_API yoke_status yoke_state_entry(yoke_state *state, int64_t index, yoke_state_key *key,
                                      yoke_state **out);

/* ---- Files -------------------------------------------------------------------------------------------- */

typedef struct yoke_save_options {
    uint32_t struct_size;  /* sizeof(yoke_save_options) */
    int32_t non_blocking;  /* 0, or 1: it is written while work goes on */
    yoke_state *metadata;  /* NULL, or a dict of strings, which the file has beside the state */
    const char *max_shard; /* NULL, or the most bytes of tensors that one file is to have, "5GiB" */
} yoke_save_options;

/* Writes a state to a safetensors file: whenever the machine stops, the file there is the former or the new one,
 * whole, and after the work's end the new one. A dict of tensors under string keys is a file as any other writer's; of
 * another tree the plain values stand in the metadata, and a tensor's name is its path with "." between the parts. A
 * tensor under two paths is written once. `options` NULL: none; `out` NULL, or the work, which has ended unless it does
 * not block.
 * With `max_shard`, bytes with their unit or without, a state with more of them is a set, as HuggingFace's libraries
 * have it: "model.safetensors" is then an index, "model.safetensors.index.json", and files beside it whose names no
 * other set has, "model-0123abcd-00001-of-00002.safetensors"; a larger tensor has a file of its own. The index comes
 * last, in one step; then the file or the set that was there before goes. yoke_load takes either name.
 * With `non_blocking` the call returns at once, and a thread of the library writes the state as it was at the call:
 * calls of the library that would change a tensor copy it first, if that is not done; who writes its memory by a
 * pointer must wait. The next save waits for this one. What this failed with, if yoke_work_wait told nobody, a next one
 * with `non_blocking` fails with; one that blocks, yoke_shutdown and exit() write it to the log. Without room for
 * copies of the tensors, or without a thread, the call blocks and a warning says so.
 * Errors: VALUE and TYPE with the path of what cannot be saved; VALUE also for a path that ends as that of an index;
 * STATE while this thread captures a graph; IO with the path and what the system says. Calls that a file system lacks
 * are none: the log has one warning for each file system and call, with what is not promised there. [any-thread] */
YOKE_API yoke_status yoke_save(const char *path, yoke_state *state,
                               const yoke_save_options *options, yoke_work **out);

/* Whether a tensor is to be loaded. What it is given is borrowed for the call, in which it must not use the library. */
typedef int32_t (*yoke_load_wanted_fn)(void *user, const char *name);

typedef struct yoke_load_options {
    uint32_t struct_size;       /* sizeof(yoke_load_options) */
    int32_t copy;               /* 1: copies on the CPU too, which need the file no more */
    yoke_device *device;        /* NULL: the CPU */
    yoke_dtype dtype;           /* of what floats; 0: as it is in the file */
    int32_t reserved;           /* 0 */
    const char *prefix;         /* NULL, or what the names of the tensors to load begin with */
    yoke_load_wanted_fn wanted; /* NULL, or says which of them */
    void *user;
} yoke_load_options;

/* The state at a path, whoever wrote it; `options` NULL: all of it. A path names a safetensors file; or the index of a
 * set of them, `{"weight_map": {NAME: FILE}}`, which loads as one file of all its tensors would; or a file in the place
 * of which such a set stands, `model.safetensors` for `model.safetensors.index.json`; or a folder with one of these.
 * On the CPU a tensor is pages of the
 * file, read when they are touched and private to the process once written; elsewhere, and where the file has an
 * element out of its alignment, a copy. Without a tree of yoke_save, or with a prefix or `wanted`, it is a dict of
 * tensors by their names in the file, in the order of their data.
 * Errors: CHECKPOINT for a file that breaks a rule of the format, with the rule, the tensor and its offsets, for a
 * tensor of a dtype that is none of Yoke's, for a set that lacks a file or whose index leads out of its folder, and for
 * a folder with no state or several; its native code is EINVAL for what is no state at all, or no single one, and 0 for
 * one that is damaged, and a file of PyTorch, NumPy, HDF5 or another known format is named as that; IO with the path
 * and what the system says. [any-thread] */
YOKE_API yoke_status yoke_load(const char *path, const yoke_load_options *options,
                               yoke_state **out);

/* What is at a path, without the data: a dict of "path" (of the file or the index), "kind" ("file" or "set"), "bytes",
 * "header_bytes", "files" (the bytes of each by its name), "has_tree", "metadata" (a dict of strings) and "tensors", a
 * dict by name of dicts of "dtype" (the format's own name where Yoke has none), "shape", "bytes", "offset" in the file,
 * and of a set "file". Errors: as yoke_load. [any-thread] */
YOKE_API yoke_status yoke_load_info(const char *path, yoke_state **out);

/* ---- Objects of a training ---------------------------------------------------------------------------- */

/* What an object goes on from, in one layout for all languages; its tensors are the live ones, so save it, or copy
 * what must stay. yoke_*_load_state takes copies, and all or nothing. Errors: VALUE and TYPE with the place of what
 * lacks, is left over, of another kind or out of range; STATE while another thread is inside. */

/* {"state": {NUMBER: {NAME: tensor}}, "param_groups": [{OPTION: value, "params": [NUMBER]}]}, PyTorch's layout and
 * names: parameters are numbered through all groups; SGD has "momentum_buffer", Adam and AdamW "exp_avg", "exp_avg_sq"
 * and "step", with master_weights "master" too. A state of PyTorch's loads if its further options are off.
 * [any-thread] */
YOKE_API yoke_status yoke_optimizer_state(yoke_optimizer *optimizer, yoke_state **out);
YOKE_API yoke_status yoke_optimizer_load_state(yoke_optimizer *optimizer, yoke_state *state);

/* {"scale", "growth_factor", "backoff_factor", "growth_interval", "_growth_tracker"}, as PyTorch has it; {} if it is
 * disabled, and then nothing is loaded. Waits for the device. [any-thread] */
YOKE_API yoke_status yoke_grad_scaler_state(yoke_grad_scaler *scaler, yoke_state **out);
YOKE_API yoke_status yoke_grad_scaler_load_state(yoke_grad_scaler *scaler, yoke_state *state);

/* {"decay", "averages": [tensor]}. [any-thread] */
YOKE_API yoke_status yoke_ema_state(yoke_ema *ema, yoke_state **out);
YOKE_API yoke_status yoke_ema_load_state(yoke_ema *ema, yoke_state *state);

/* Where the random numbers of this thread stand: a uint8 tensor of 16 bytes, seed and offset. [any-thread] */
YOKE_API yoke_status yoke_rng_state(yoke_state **out);
YOKE_API yoke_status yoke_rng_load_state(yoke_state *state);

/* A schedule is a state from the first: {"kind": "cosine", "total_steps": 100, "min_lr": 0.0, "warmup_steps": 0,
 * "base_lrs": [0.1], "last_step": 0}. Kinds and their options: "constant": factor, total_steps; "linear": start, end,
 * total_steps; "cosine": as above; "step": step_size, gamma; "one_cycle": max_lr, total_steps, pct_start, div_factor,
 * final_div_factor (the functions of yoke/optim.h). base_lrs has the rate with which each group began. */

/* Whether it is whole, for an optimizer of so many groups (-1: of any number). Errors: VALUE, TYPE. [any-thread] */
YOKE_API yoke_status yoke_schedule_check(yoke_state *schedule, int64_t groups);

/* Sets "last_step", and all groups of the optimizer to their rates of that step. Errors: as above. [any-thread] */
YOKE_API yoke_status yoke_schedule_apply(yoke_state *schedule, yoke_optimizer *optimizer,
                                         int64_t step);

#ifdef __cplusplus
}
#endif
#endif /* YOKE_STATE_H */
