/*
 * yoke/runtime.h: the library itself: version, failures, configuration, log, shutdown, and the table
 * of ops by which a host can bind every op without a generator.
 */
#ifndef YOKE_RUNTIME_H
#define YOKE_RUNTIME_H

#include "yoke/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- What this is -------------------------------------------------------------------------------- */

/* The version of the library, "0.1.0"; static. [any-thread] */
YOKE_API const char *yoke_version(void);

/* Compiler, then one line for each kind of device: its engines and their versions, or why it is not
 * used. For people to read. Borrowed for the life of the library; never NULL. [any-thread] */
YOKE_API const char *yoke_build_info(void);

/* ---- Failures -------------------------------------------------------------------------------------- */

/* The last failure on the calling thread, never NULL: its status is YOKE_OK and its texts are "" where
 * there was none. Success never touches it. Valid until this thread's next failure. [any-thread] */
YOKE_API const yoke_error *yoke_last_error(void);

/* "value" for YOKE_E_VALUE, "ok" for YOKE_OK; "unknown" for a number that is no status. Static.
 * [any-thread] */
YOKE_API const char *yoke_status_name(yoke_status status);

/* ---- Configuration --------------------------------------------------------------------------------- */

/* Sets a variable such as "YOKE_NUM_THREADS" in place of the environment; NULL or "" counts as not
 * set. Each is read once, at its first use. Errors: VALUE for an unknown key, listing those known; STATE
 * after its first use. [any-thread] */
YOKE_API yoke_status yoke_config_set(const char *key, const char *value);

/* The value in force, or NULL if there is none; looking is no use. Borrowed for the life of the library. Errors: VALUE
 * for an unknown key. [any-thread] */
YOKE_API yoke_status yoke_config_get(const char *key, const char **value);

/* One line of the log. `level` is a YOKE_LOG_* number; the text is borrowed for the call. Called on
 * the thread that had something to say, with no lock held; it must not fail. */
typedef void (*yoke_log_fn)(void *user, int32_t level, const char *message);

/* Sends the log to `fn`, the host program's own callback; NULL takes it away, as it is at first: nothing is
 * printed unless asked. `drop` (or NULL) is called once with `user` when it is replaced or at shutdown, after
 * its last call. [any-thread] */
YOKE_API yoke_status yoke_log_set_callback(yoke_log_fn fn, void *user, yoke_drop_fn drop);

/* One more callback beside all others, for a binding or a plugin that shares the process with hosts it does
 * not know: each hears every line, in the order in which they were added. *id is its number, from 1, which no
 * other will have. `drop` (or NULL) is called once with `user` after it was removed and its last call has
 * returned; yoke_shutdown leaves it in place.
 * Errors: VALUE where fn is NULL; nothing is dropped then. [any-thread] */
YOKE_API yoke_status yoke_log_add_callback(yoke_log_fn fn, void *user, yoke_drop_fn drop,
                                           int64_t *id);

/* Takes one away. A line that another thread is handing to it may still arrive until `drop` is called.
 * Errors: VALUE for a number that none has. [any-thread] */
YOKE_API yoke_status yoke_log_remove_callback(int64_t id);

/* ---- Lines of scripts ------------------------------------------------------------------------------- */

/* Where the calling thread's script is: 1, with the file, the line from 1 on and the function, or 0 where that is not
 * known; file and function may stay NULL, the line 0. Texts are UTF-8 and are read before the call goes on. Called on
 * the thread that makes a call, from any number of threads at once, with no lock of the library's held; it must not
 * call the library, nor fail. */
typedef int32_t (*yoke_stack_fn)(void *user, const char **file, int32_t *line,
                                 const char **function);

/* How a host tells lines of its scripts, for who wants them: the records and failures of collectives. One for the
 * process; a binding sets its own when it is loaded. NULL takes it away. `drop` (or NULL) is called once with `user`
 * when it is replaced, after its last call has returned; yoke_shutdown leaves it in place. [any-thread] */
YOKE_API yoke_status yoke_set_stack_provider(yoke_stack_fn fn, void *user, yoke_drop_fn drop);

/* ---- Interrupts ------------------------------------------------------------------------------------- */

/* Whether the call that the calling thread waits in shall end: not 0 where the host's user pressed Ctrl-C, say. Called
 * on the thread that made the call, ten times a second while it waits, with no lock of the library's held; it may run
 * the host's handlers, which may call the library. */
typedef int32_t (*yoke_interrupt_fn)(void *user);

/* How a host ends waits: those of yoke_comm_init, of a group's split, shrink, empty and monitored_barrier, of yoke_run
 * (whose ranks are ended then), of a backward, which ends the group, and of yoke_work_wait, yoke_work_follow and the
 * collectives without a work, whose work goes on. Such a call then returns CANCELLED and leaves nothing else behind;
 * ranks that waited for this one are told. One for the process; a binding sets its own when it is loaded. NULL takes it
 * away, and no wait ends early. `drop` (or NULL) is called once with `user` when it is replaced, after its last call
 * has returned; yoke_shutdown leaves it in place. [any-thread] */
YOKE_API yoke_status yoke_set_interrupt_hook(yoke_interrupt_fn fn, void *user, yoke_drop_fn drop);

/* ---- The end --------------------------------------------------------------------------------------- */

/* Waits for the work of all devices, at most `timeout_s` seconds, ends the threads that no other thread
 * of the program has work for, and gives cached memory back. Live tensors stay valid, and any later call
 * starts the library again. It need not be called before exit.
 * Errors: TIMEOUT, naming the device that is not done. [any-thread] */
YOKE_API yoke_status yoke_shutdown(double timeout_s);

/* ---- The table of ops ------------------------------------------------------------------------------ */

/* One argument of an op. `type` is written as in docs/ops.md: tensor, tensor?, tensors, mut, muts,
 * operand (tensor or script scalar), int, int?, ints, ints?, float, bool, dtype, scalar, scalar?, str,
 * device. A "?" says that YOKE_ARG_NONE is a value. */
typedef struct yoke_op_arg {
    const char *name;
    const char *type;
    int32_t has_default;
    int32_t
        by_name; /* 1: bindings take it by its name alone, as PyTorch has another one in its place */
    yoke_arg default_value;
} yoke_op_arg;

/* One op. Read no further than struct_size, which the library sets. */
typedef struct yoke_op {
    uint32_t struct_size;
    int32_t id;            /* its number in this version of the library; names are what stays */
    const char *name;      /* "softmax" */
    const char *signature; /* "softmax(x: tensor, axis: int = -1, dtype: dtype = none) -> tensor" */
    const char *doc;       /* one line */
    const char *family;    /* "softmax" */
    const yoke_op_arg *args;
    int32_t arg_count;
    int32_t result_count; /* tensors that yoke_op_invoke returns; 0: in place, -1: a list */
    int32_t mut_arg;      /* the argument that an in-place op changes and scripts return, else -1 */
    int32_t reserved;
} yoke_op;

/* The number of ops; their ids run from 0 to one less. [any-thread] */
YOKE_API int32_t yoke_op_count(void);

/* One op, static. NULL, with a last error, for an id that is none. [any-thread] */
YOKE_API const yoke_op *yoke_op_info(int32_t op);

/* The id of a name. Errors: VALUE for an unknown one. [any-thread] */
YOKE_API yoke_status yoke_op_find(const char *name, int32_t *op);

/* Returns the one of `count` words that `text` was probably meant to be: ours for what other libraries call it ("axis"
 * for "dim"), else one that begins with it ("out_features" for "out"), else the nearest; NULL if none is near.
 * Borrowed. A binding tells it of a keyword that is not known. [any-thread] */
YOKE_API const char *yoke_meant_word(const char *text, const char *const *words, int64_t count);

/* Returns what to do about an argument of that name, which other libraries have and no call of Yoke's: "leave it out;
 * …". NULL for any other name. Static. A binding tells it unless yoke_meant_word() begins with the name. [any-thread]
 * */
YOKE_API const char *yoke_word_advice(const char *text);

/* Calls an op. `args` are in the order of its signature; missing ones at the end, and those of kind
 * NONE, take their defaults. An INT serves where a float is taken, a BOOL where an int is, a tensor or
 * a scalar where an operand is. `outs` receives exactly result_count tensors.
 * Errors: TYPE for a kind that does not serve, VALUE for a wrong number of arguments or results, and
 * those of the op; each names the op and the argument. [any-thread] */
YOKE_API yoke_status yoke_op_invoke(int32_t op, const yoke_arg *args, int32_t arg_count,
                                    yoke_tensor **outs, int32_t out_count);

/* The same for an op whose results are a list, as split's: `outs` has room for `capacity` of them, *count
 * says how many there are. Errors: VALUE where there is too little room, of which *count tells how much is
 * needed, or where it would be more than 2^24, with *count 0; and those of yoke_op_invoke. `outs` is then
 * left as it was. [any-thread] */
YOKE_API yoke_status yoke_op_invoke_list(int32_t op, const yoke_arg *args, int32_t arg_count,
                                         yoke_tensor **outs, int64_t capacity, int64_t *count);

#ifdef __cplusplus
}
#endif
#endif /* YOKE_RUNTIME_H */
