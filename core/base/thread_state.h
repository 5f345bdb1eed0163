// thread_state.h: everything that belongs to one host thread: its current device, modes, random stream, last error.
//
// The state is plain memory behind a trivial thread-local pointer, made at first use and freed when the thread ends, so
// that unloading and thread exit never run destructors in an order that we do not control.
#pragma once

#include "core/base/pool_cache.h"
#include "yoke/types.h"

struct yoke_stream;

namespace yoke {

class Autocast;      // core/ops/autocast.h
class Graph;         // core/ops/graph.h
class GraphPool;     // core/memory/graph_pool.h
class Replays;       // core/ops/recompute/replay.h
class Scope;         // core/ops/recompute/scope.h
struct OpDef;        // core/ops/op_def.h
struct ThreadCache;  // core/memory/magazines.h

struct ErrorRecord {
    yoke_error error;
    char call[64];
    char device[32];
    char message[4096];
};

// Where the memory is of a request that found none, in bytes; -1: not known. Of core/memory/oom.h.
struct OomRecord {
    bool is_new;      // its error has not become the thread's last one yet
    bool is_of_last;  // it has
    char device[32];
    char limit[160];  // what allows less than the machine has
    int64_t requested;
    int64_t allocated, rounding, reserved;
    int64_t free_in_cache, largest_free, stranded, waiting, graphs, foreign;
    int64_t others, free, total;
};

// A position in a stream of random numbers: Philox key and counter (kernels/common/philox.h).
struct RandomState {
    uint64_t seed;
    uint64_t offset;
};

// Devices of which a thread may choose a stream; those beyond have the default stream alone.
inline constexpr int kStreamDevices = 64;

struct ThreadState {
    // Modes that scripts switch. A Lua coroutine carries its own copy and swaps it in and out.
    int32_t grad_disabled;  // 0: the tape records
    int32_t fits_tf32;      // not 0: what is multiplied loses nothing in TF32 (core/ops/tf32.h)
    Autocast *autocast;     // the region in force, one reference; null: none
    yoke_device *device;    // null: the process default
    Graph *graph;           // that is being captured, or null
    GraphPool *graph_pool;  // whence its memory comes, or null
    Scope *scope;           // the innermost open checkpoint scope, one reference; null: none
    Scope *scope_aside;     // while a walk over the tape has set it aside
    Replays *replays;       // what that walk has made again; null: no walk
    const OpDef *
        composing;  // the op that the script called, while the ops run of which it is made, in a scope
    int32_t threads;     // that work of the host may use; 0: as many as any thread's
    RandomState random;  // valid if random_epoch equals the process's seeding epoch
    uint64_t random_epoch;
    ErrorRecord last_error;     // what yoke_last_error() shows
    ErrorRecord backend_error;  // from host->set_error until the core picks it up
    OomRecord oom;              // of the last request that found no memory
    PoolCache pool;
    ThreadCache *memory_cache;             // small device blocks; null: none yet
    yoke_stream *streams[kStreamDevices];  // by ordinal, one reference each; null: the default one
};

namespace detail {
// constinit: read without asking first whether it is initialised.
extern constinit thread_local ThreadState *current __attribute__((tls_model("initial-exec")));
ThreadState &make_thread_state();
ThreadState *try_make_thread_state() noexcept;
}  // namespace detail

// Raises std::bad_alloc where the thread has none yet and there is no memory for it. Every call of the C API that can
// fail asks first of all, so that what it calls has one.
inline ThreadState &thread_state()
{
    ThreadState *state = detail::current;
    return state ? *state : detail::make_thread_state();
}

// For what cannot raise and may be a thread's first use of the library: nullptr where there is no memory for one.
inline ThreadState *try_thread_state() noexcept
{
    ThreadState *state = detail::current;
    return state ? state : detail::try_make_thread_state();
}

// For what only looks: nullptr for a thread that has set nothing yet.
inline const ThreadState *known_thread_state() noexcept
{
    return detail::current;
}

}  // namespace yoke
