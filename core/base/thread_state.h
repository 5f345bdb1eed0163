// thread_state.h: all state of a host thread: its current device, modes, random stream, last error.
//
// The state is plain memory behind a trivial thread-local pointer, made at first use and freed at the thread's end.
// So unloading and thread exit never run destructors in an unknown order.
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

// Numbers of a failed request's device memory, in bytes; -1: unknown. Used by core/memory/oom.h.
struct OomRecord {
    bool is_new;      // the error is not yet the thread's last error
    bool is_of_last;  // the error is the thread's last error
    char device[32];
    char limit[160];  // limit below the machine's memory
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

// Number of devices for which a thread may choose a stream; further devices have only the default stream.
inline constexpr int kStreamDevices = 64;

struct ThreadState {
    // Modes switched by scripts. A Lua coroutine carries its own copy and swaps it in and out.
    int32_t grad_disabled;   // 0: the tape records
    int32_t fits_tf32;       // not 0: factors of a product lose nothing in TF32 (core/ops/tf32.h)
    Autocast *autocast;      // region in force, with a reference; null: none
    yoke_device *device;     // null: the process default
    Graph *graph;            // graph under capture, or null
    GraphPool *graph_pool;   // source of the graph's memory, or null
    Scope *scope;            // innermost open checkpoint scope, with a reference; null: none
    Scope *scope_aside;      // while a walk over the tape has set it aside
    Replays *replays;        // values recomputed by this walk; null: no walk
    const OpDef *composing;  // composite op called by the script, while its parts run in a scope
    int32_t threads;         // threads for CPU work; 0: as many as in any thread
    int32_t anomaly;         // Anomaly (core/autograd/notes.h): what the tape looks for
    RandomState random;      // valid if random_epoch equals the process's seeding epoch
    uint64_t random_epoch;
    ErrorRecord last_error;     // shown by yoke_last_error()
    ErrorRecord backend_error;  // from host->set_error until the core picks it up
    OomRecord oom;              // last request without memory
    PoolCache pool;
    ThreadCache *memory_cache;  // small device blocks; null: none yet
    yoke_stream
        *streams[kStreamDevices];  // by ordinal, each with a reference; null: the default stream
};

namespace detail {
// constinit: read without asking first whether it is initialised.
extern constinit thread_local ThreadState *current __attribute__((tls_model("initial-exec")));
ThreadState &make_thread_state();
ThreadState *try_make_thread_state() noexcept;
}  // namespace detail

// Returns the thread's state. Raises std::bad_alloc if the state is missing and there is no memory for it. Every call
// of the C API that can fail calls this first, so the called code has a state.
inline ThreadState &thread_state()
{
    ThreadState *state = detail::current;
    return state ? *state : detail::make_thread_state();
}

// Returns the state, or nullptr without memory. For code that cannot raise and may be a thread's first use of the
// library.
inline ThreadState *try_thread_state() noexcept
{
    ThreadState *state = detail::current;
    return state ? state : detail::try_make_thread_state();
}

// Returns the state for reading only; nullptr for a thread that has not set any state yet.
inline const ThreadState *known_thread_state() noexcept
{
    return detail::current;
}

}  // namespace yoke
