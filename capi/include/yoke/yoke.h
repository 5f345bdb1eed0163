/*
 * yoke/yoke.h: the whole C API of Yoke, one library through which any program drives any number of
 * GPUs. This page tells the conventions once; the other headers rely on it.
 *
 * Calls
 *   A function that can fail returns yoke_status, 0 for success. The details of a failure stay with the
 *   thread that saw it until its next failure; yoke_last_error() reads them, success never touches them.
 *   Nothing in Yoke exits, aborts or prints. No exception leaves it.
 *
 *   Arguments come in this order: inputs, parameters, outputs. An output is set to NULL (a handle) or
 *   left as it was (a number) on failure. A NULL where a handle, an array of elements or an output is
 *   needed is YOKE_E_VALUE and names the function and the argument; a comment says where NULL is allowed.
 *
 * Handles
 *   Tensors, devices, streams, events and optimizers are opaque and reference counted. What arrives through an `out`
 *   parameter is one reference of the caller's own, to be released once. What a function returns
 *   directly is borrowed: it lives as long as the handle it was asked of. Arguments are borrowed for the
 *   call; a function that keeps one takes a reference itself. retain and release are atomic and take
 *   NULL; a release never blocks. With YOKE_CHECKS=1 in the environment (or yoke_config_set before the
 *   first handle) a handle that was released, is of another kind or was never given out is CLOSED, TYPE or
 *   VALUE, and a line of the log that names the call which released it; handles are no addresses then.
 *
 * Types
 *   Ops map their arguments as follows. tensor: handle; an optional one may be NULL. A list: pointer and
 *   int64_t count. int: int64_t; an optional one is a pointer, NULL for none. An optional list of ints
 *   is NULL for none. float: double. bool: int32_t. dtype: int32_t, YOKE_NONE for none. A script scalar
 *   is a const yoke_scalar *. str: UTF-8, NUL-terminated. device: handle, NULL for the current one.
 *   Where the table of ops gives a default to a scalar or a str, NULL stands for it.
 *   Axes and indices count from 0; negative ones count from the end. Sizes in memory are bytes, strides
 *   are elements, times are seconds.
 *
 * Text
 *   Strings are UTF-8. A string that is returned is borrowed, as its comment says.
 *
 * Structs
 *   A struct that may grow begins with uint32_t struct_size, set to its sizeof by the caller. A smaller
 *   one than the library knows is completed with zeros, which always mean the old behaviour; a larger
 *   one is accepted if its unknown tail is zero. Public structs have no padding, enum, bool or bit-field.
 *
 * Threads
 *   Every function carries a tag. [any-thread]: may be called from any thread, at the same time as any
 *   other call, as long as no two threads change one tensor at once. [one-thread]: the comment says
 *   which. Current device, its current stream, grad mode, autocast and random state
 *   belong to the thread.
 *
 * Processes
 *   In a forked child CPU work goes on, with threads of its own; calls that need another device give FORKED.
 *   The library is never unloaded, whatever dlclose is told, and live handles at exit are no error.
 *
 * Versions
 *   A released function keeps its signature; one more parameter makes a new function with _v2. Programs
 *   that load the library with dlopen need one symbol, yoke_get_api: see api.h.
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
