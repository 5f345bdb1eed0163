// lent.h: table of functions that higher layers give to lower layers, since lower layers may not include them.
//
// core/lent.cpp fills the table with constants before any code runs, so no entry is ever null. The layer of an
// entry's function is named beside the entry. The caller holds no lock, unless the entry's comment says so.
#pragma once

#include "yoke/types.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

struct yoke_stream;

namespace yoke {

class Autocast;
class Graph;
class Scope;
struct ThreadCache;

// Function that adds the names of at most `most` things that live on the device to `names`, and returns how many
// things live there.
using LiveFn = int64_t (*)(yoke_device &device, size_t most, std::vector<std::string> &names);

struct Lent {
    // Drops the contents of an ending thread's ThreadState. Each function gets a present object, never null, and does
    // not raise.
    void (*drop_graph)(Graph *graph) noexcept;  // ops: a capture that the thread leaves unfinished
    void (*drop_autocast)(Autocast *region) noexcept;  // ops: the reference to the region in force
    void (*drop_scope)(
        Scope *scope) noexcept;  // ops: the reference to the checkpoint scope that is open
    void (*drop_memory_cache)(
        ThreadCache *cache) noexcept;  // memory: already taken out of the ThreadState
    void (*drop_stream)(
        yoke_stream *stream) noexcept;  // device: the reference to a stream it has chosen

    // Counts the objects that live on a device, since a kind of devices with such an object cannot be switched off.
    // May raise.
    LiveFn live_tensors;  // tensor
    LiveFn live_memory;   // memory: blocks that no tensor has
    LiveFn live_groups;   // comm: of collectives, with a stream or communicator there

    // Returns facts about the ranks on this machine: see core/comm/local_rank.h. Each may raise.
    std::optional<int32_t> (*local_rank)();         // comm
    bool (*is_rank_beside)(int32_t process);        // comm
    bool (*is_variable_of_rank)(const char *name);  // comm
    // Releases the host memory kept for the copies of the next save, when a device has no memory left.
    void (*empty_snapshot_cache)() noexcept;  // tensor

    // Implements host->scratch_alloc and host->scratch_free: see core/backend/backend.h.
    yoke_status (*alloc_scratch)(void *device, uint64_t bytes, void *stream, uint32_t flags,
                                 void **out) noexcept;                         // memory
    void (*free_scratch)(void *device, void *pointer, void *stream) noexcept;  // memory
};

extern Lent lent;  // tests alone put others in place

}  // namespace yoke
