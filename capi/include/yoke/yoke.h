/*
 * yoke/yoke.h: the whole C API of Yoke, one library with which any program drives any number of GPUs. This page has
 * the conventions; all other headers rely on them.
 *
 * Calls
 *   A function that can fail returns yoke_status, 0 for success. The details of a failure stay with its thread until
 *   the thread's next failure; yoke_last_error() reads them, and success never changes them. Nothing in Yoke exits,
 *   aborts or prints. No exception leaves the library.
 *
 *   Arguments come in this order: inputs, parameters, outputs. On failure an output is set to NULL (a handle) or
 *   unchanged (a number). A NULL for a required handle, array of elements or output is YOKE_E_VALUE, with the
 *   function and the argument. Comments say where NULL is allowed.
 *
 * Handles
 *   Tensors, devices, streams, events and optimizers are opaque and reference counted. A handle from an `out`
 *   parameter is a reference of the caller, to be released once. A directly returned handle or text is borrowed: it
 *   lives as long as the handle in the call. Arguments are borrowed for the call; a function that keeps an argument
 *   takes its own reference. retain and release are atomic and take NULL; a release never blocks. With YOKE_CHECKS=1
 *   in the environment (or yoke_config_set before the first handle) bad handles are errors: a released handle is
 *   CLOSED, a handle of another kind is TYPE, an unknown handle is VALUE. The log then names the call that released
 *   the handle, and handles are no addresses.
 *
 * Types
 *   Ops map their arguments as follows. tensor: handle; an optional tensor may be NULL. A list: pointer and int64_t
 *   count. int: int64_t; an optional int is a pointer, NULL for none. An optional list of ints is NULL for none.
 *   float: double. bool: int32_t. dtype: int32_t, YOKE_NONE for none. A script scalar is a const yoke_scalar *. str:
 *   UTF-8, NUL-terminated. device: handle, NULL for the current device. If the table of ops has a default for a
 *   scalar or a str, NULL means the default. Axes and indices count from 0; negative numbers count from the end.
 *   Sizes in memory are bytes, strides are elements, times are seconds.
 *
 * Text
 *   Strings are UTF-8. A returned string is borrowed, as its comment says.
 *
 * Structs
 *   A struct with possible later fields begins with uint32_t struct_size, set to its sizeof by the caller. A struct
 *   smaller than the library's is completed with zeros; zeros always mean the old behaviour. A larger struct is
 *   accepted if its unknown tail is zero. Public structs have no padding, enum, bool or bit-field.
 *
 * Threads
 *   Every function carries a tag. [any-thread]: may be called from any thread, at the same time as any other call, if
 *   no two threads change the same tensor at once. [one-thread]: the comment names the thread. Current device, its
 *   current stream, grad mode, autocast and random state belong to the thread.
 *
 * Processes
 *   In a forked child CPU work goes on, with new threads; calls that need another device give FORKED. The library is
 *   never unloaded, even after dlclose, and live handles at exit are no error.
 *
 * Versions
 *   A released function keeps its signature; a new parameter makes a new function with _v2. Programs that load the
 *   library with dlopen need a single symbol, yoke_get_api: see api.h.
 */
#ifndef YOKE_YOKE_H
#define YOKE_YOKE_H

#include "yoke/amp.h"
#include "yoke/api.h"
#include "yoke/autograd.h"
#include "yoke/checkpoint.h"
#include "yoke/checkpoints.h"
#include "yoke/comm.h"
#include "yoke/data.h"
#include "yoke/device.h"
#include "yoke/doctor.h"
#include "yoke/engines.h"
#include "yoke/graph.h"
#include "yoke/inventory.h"
#include "yoke/memory.h"
#include "yoke/ops.h"
#include "yoke/optim.h"
#include "yoke/parallel.h"
#include "yoke/preempt.h"
#include "yoke/runtime.h"
#include "yoke/select.h"
#include "yoke/state.h"
#include "yoke/stream.h"
#include "yoke/tensor.h"
#include "yoke/types.h"
#include "yoke/work.h"

#endif /* YOKE_YOKE_H */
