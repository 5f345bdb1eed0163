/*
 * yoke/runtime.h: the library itself: version, failures, configuration, log, shutdown, and the table of ops, with
 * which a host program can bind every op without a generator.
 */
#ifndef YOKE_RUNTIME_H
#define YOKE_RUNTIME_H

#include "yoke/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Version ------------------------------------------------------------------------------------- */

/* Returns the version of the library, "0.1.0"; static. [any-thread] */
YOKE_API const char *yoke_version(void);

/* Returns the compiler, then a line for each kind of device: its engines and their versions, or why the kind is not
 * used. For people. Borrowed for the life of the library; never NULL. [any-thread] */
YOKE_API const char *yoke_build_info(void);

/* ---- Failures -------------------------------------------------------------------------------------- */

/* Returns the last failure on the calling thread, never NULL. Without a failure, status is YOKE_OK and the texts are
 * "". Success never changes the last failure. Valid until this thread's next failure. [any-thread] */
YOKE_API const yoke_error *yoke_last_error(void);

/* Returns "value" for YOKE_E_VALUE, "ok" for YOKE_OK; "unknown" for a number that is no status. Static.
 * [any-thread] */
YOKE_API const char *yoke_status_name(yoke_status status);

/* ---- Configuration --------------------------------------------------------------------------------- */

/* Sets a variable such as "YOKE_NUM_THREADS" in place of the environment; NULL or "" counts as not
 * set. Each is read once, at its first use. Errors: VALUE for an unknown key, listing those known; STATE
 * after its first use. [any-thread] */
YOKE_API yoke_status yoke_config_set(const char *key, const char *value);

/* Returns the value in force, or NULL if there is none; the call does not count as a use. Borrowed for the life of the
 * library. Errors: VALUE for an unknown key. [any-thread] */
YOKE_API yoke_status yoke_config_get(const char *key, const char **value);

/* Function that receives a line of the log. `level` is a YOKE_LOG_* number; the text is borrowed for the call. Called
 * on the logging thread, with no lock held; it must not fail. */
typedef void (*yoke_log_fn)(void *user, int32_t level, const char *message);

/* Sends the log to `fn`, the host program's own callback. NULL removes the callback; at first there is none, so
 * nothing is printed. `drop` (or NULL) is called once with `user` when the callback is replaced or at shutdown, after
 * its last call. [any-thread] */
YOKE_API yoke_status yoke_log_set_callback(yoke_log_fn fn, void *user, yoke_drop_fn drop);

/* Adds a callback beside all others, for a binding or a plugin in a process with unknown host programs. Each callback
 * gets every line, in the order of addition. *id is its number, from 1, never used again. `drop` (or NULL) is called
 * once with `user` after the callback was removed and its last call has returned; yoke_shutdown leaves the callback
 * in place.
 * Errors: VALUE if fn is NULL; nothing is dropped then. [any-thread] */
YOKE_API yoke_status yoke_log_add_callback(yoke_log_fn fn, void *user, yoke_drop_fn drop,
                                           int64_t *id);

/* Removes a callback. A line on its way from another thread may still arrive until `drop` is called.
 * Errors: VALUE for an unknown number. [any-thread] */
YOKE_API yoke_status yoke_log_remove_callback(int64_t id);

/* ---- Lines of scripts ------------------------------------------------------------------------------- */

/* Where the calling thread's script is: 1, with the file, the line from 1 on and the function, or 0 where that is not
 * known; file and function may stay NULL, the line 0. Texts are UTF-8 and are read before the call goes on. Called on
 * the thread that makes a call, from any number of threads at once, with no lock of the library's held; it must not
 * call the library, nor fail. */
typedef int32_t (*yoke_stack_fn)(void *user, const char **file, int32_t *line,
                                 const char **function);

/* Sets the function that gives the current lines of a script, for the records and failures of collectives. A process
 * has one such function; a binding sets its function when it is loaded. NULL removes the function. `drop` (or NULL)
 * is called once with `user` when the function is replaced, after its last call has returned; yoke_shutdown leaves
 * the function in place. [any-thread] */
YOKE_API yoke_status yoke_set_stack_provider(yoke_stack_fn fn, void *user, yoke_drop_fn drop);

/* ---- Interrupts ------------------------------------------------------------------------------------- */

/* Returns whether the waiting call of this thread shall end: not 0 after Ctrl-C of the user, for example. Called on
 * the thread that made the call, ten times a second during the wait, with no lock of the library held. The function
 * may run the host program's handlers, and these may call the library. */
typedef int32_t (*yoke_interrupt_fn)(void *user);

/* Sets the function with which a host program ends waits. These are the waits of yoke_comm_init; of a group's split,
 * shrink, empty and monitored_barrier; of yoke_run, whose ranks are then ended; of a backward, whose group is then
 * ended; and of yoke_work_wait, yoke_work_follow and the collectives without a work, whose work goes on. Such a call
 * then returns CANCELLED and leaves nothing else behind. Ranks that waited for this rank are notified. A process has
 * one such function; a binding sets its function when it is loaded. NULL removes the function, and no wait ends
 * early. `drop` (or NULL) is called once with `user` when the function is replaced, after its last call has returned;
 * yoke_shutdown leaves the function in place. [any-thread] */
YOKE_API yoke_status yoke_set_interrupt_hook(yoke_interrupt_fn fn, void *user, yoke_drop_fn drop);

/* ---- The end --------------------------------------------------------------------------------------- */

/* Waits for the work of all devices, at most `timeout_s` seconds, ends the threads that no other thread
 * of the program has work for, and gives cached memory back. Live tensors stay valid, and any later call
 * starts the library again. It need not be called before exit.
 * Errors: TIMEOUT, naming the device that is not done. [any-thread] */
YOKE_API yoke_status yoke_shutdown(double timeout_s);

/* ---- The table of ops ------------------------------------------------------------------------------ */

/* Argument of an op. `type` is written as in docs/ops.md: tensor, tensor?, tensors, mut, muts, operand (tensor or
 * script scalar), int, int?, ints, ints?, float, floats?, bool, dtype, scalar, scalar?, str, device, generator?. A "?"
 * allows YOKE_ARG_NONE. */
typedef struct yoke_op_arg {
    const char *name;
    const char *type;
    int32_t has_default;
    int32_t by_name; /* 1: bindings take it by name only, as PyTorch has another argument here */
    yoke_arg default_value;
} yoke_op_arg;

/* Description of an op. Read no further than struct_size, set by the library. */
typedef struct yoke_op {
    uint32_t struct_size;
    int32_t id;            /* number in this version of the library; only names are stable */
    const char *name;      /* "softmax" */
    const char *signature; /* "softmax(x: tensor, axis: int = -1, dtype: dtype = none) -> tensor" */
    const char *doc;       /* a single line */
    const char *family;    /* "softmax" */
    const yoke_op_arg *args;
    int32_t arg_count;
    int32_t result_count; /* tensors that yoke_op_invoke returns; 0: in place, -1: a list */
    int32_t mut_arg;      /* the argument that an in-place op changes and scripts return, else -1 */
    int32_t reserved;
} yoke_op;

/* Returns the number of ops; ids run from 0 to the number less 1. [any-thread] */
YOKE_API int32_t yoke_op_count(void);

/* Returns the op with this id, static. NULL, with a last error, for an invalid id. [any-thread] */
YOKE_API const yoke_op *yoke_op_info(int32_t op);

/* Returns the id of a name. Further forms of an op have names that begin with "_" and ids above those of the other
 * ops: _add_scaled(x, y, alpha) is add with alpha. core/ops/forms.def lists the forms.
 * Errors: VALUE for an unknown name. [any-thread] */
YOKE_API yoke_status yoke_op_find(const char *name, int32_t *op);

/* Returns the word among `count` words that `text` probably stands for: Yoke's word for another library's ("dim" for
 * "axis"), else a word that begins with `text` ("out_features" for "out"), else the nearest word. NULL if no word is
 * near. Borrowed. Bindings use it for messages about an unknown keyword. [any-thread] */
YOKE_API const char *yoke_meant_word(const char *text, const char *const *words, int64_t count);

/* Returns the remedy for an argument name of other libraries that no call of Yoke has: "leave it out; …". NULL for
 * any other name. Static. A binding shows it unless the result of yoke_meant_word() begins with the name.
 * [any-thread] */
YOKE_API const char *yoke_word_advice(const char *text);

/* Calls an op. `args` are in the order of its signature; missing arguments at the end, and arguments of kind NONE,
 * take their defaults. An INT is accepted for a float, a BOOL for an int, a tensor or a scalar for an operand. `outs`
 * receives exactly result_count tensors.
 * Errors: TYPE for a wrong kind, VALUE for a wrong number of arguments or results, and the errors of the op; each
 * names the op and the argument. [any-thread] */
YOKE_API yoke_status yoke_op_invoke(int32_t op, const yoke_arg *args, int32_t arg_count,
                                    yoke_tensor **outs, int32_t out_count);

/* Calls an op whose results are a list, such as split. `outs` has space for `capacity` results; *count is the number
 * of results. Errors: VALUE if the space is too small, with the needed number in *count, or if the list has more than
 * 2^24 results, with *count 0; and the errors of yoke_op_invoke. `outs` is then unchanged. [any-thread] */
YOKE_API yoke_status yoke_op_invoke_list(int32_t op, const yoke_arg *args, int32_t arg_count,
                                         yoke_tensor **outs, int64_t capacity, int64_t *count);

#ifdef __cplusplus
}
#endif
#endif /* YOKE_RUNTIME_H */
