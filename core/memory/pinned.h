// pinned.h: host memory that devices copy from and to without the processor, kept for the next use.
//
// A block that streams may still copy from or to carries a fence for each of them, behind the last copy. It is not used
// again before they are reached, which the host asks for when it wants a block: nothing waits.
#pragma once

#include "core/memory/guards.h"

#include <mutex>

namespace yoke {

struct PinnedBlock {
    Device *device;  // whose backend pinned it; it serves all devices of that backend
    void *data;
    uint64_t capacity;
    std::mutex mutex = {};  // threads that read one pinned tensor add fences at once
    Guards fences = {};
};

// At least `bytes` (not 0). Raises YOKE_E_OOM, YOKE_E_UNSUPPORTED where the device needs or knows no pinned memory.
PinnedBlock *allocate_pinned(Device &device, uint64_t bytes);

// Keeps the block from its next use until the fence is reached.
void use_pinned(PinnedBlock &block, Ref<Fence> fence);
// Keeps the block from its next use until the device has done what its current stream was given.
void use_pinned(PinnedBlock &block, Device &device);

void free_pinned(PinnedBlock *block) noexcept;
void drop_pinned(void *block);  // free_pinned as a yoke_drop_fn

// Gives back what waits, after the work on it.
void empty_pinned_cache() noexcept;

// The device for which pin_memory() pins: the current one, else the first that has pinned memory of its own, else the
// host, all of whose memory serves.
Device &pinning_device();

}  // namespace yoke
