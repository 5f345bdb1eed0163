// pinned.h: host memory from and to which devices copy without the processor, kept for the next use.
//
// A block in a running copy carries a fence for each stream, behind the stream's last copy. The block is reused only
// after all fences are reached. A request for a block asks the fences, and does not wait.
#pragma once

#include "core/memory/guards.h"

#include <mutex>

namespace yoke {

struct PinnedBlock {
    Device *device;  // device whose backend pinned the block; serves all devices of the backend
    void *data;
    uint64_t capacity;
    std::mutex mutex = {};  // threads reading the same pinned tensor add fences at once
    Guards fences = {};
};

// Returns a pinned block of at least `bytes` (not 0). Raises YOKE_E_OOM, and YOKE_E_UNSUPPORTED if the device needs
// or knows no pinned memory.
PinnedBlock *allocate_pinned(Device &device, uint64_t bytes);

// Keeps the block from its next use until the fence is reached.
void use_pinned(PinnedBlock &block, Ref<Fence> fence);
// Keeps the block from its next use until the device has done the work given to its current stream so far.
void use_pinned(PinnedBlock &block, Device &device);

// Keeps the block for the next request; with caching off, waits for the work on the block and gives it back.
void free_pinned(PinnedBlock *block) noexcept;
void drop_pinned(void *block);  // free_pinned as a yoke_drop_fn

// Waits for the work on the blocks kept without a user, and gives these blocks back.
void empty_pinned_cache() noexcept;

// Returns the device for which pin_memory() pins: the current device, else the first device with pinned memory of its
// own. Else returns the host, whose memory always serves.
Device &pinning_device();

}  // namespace yoke
