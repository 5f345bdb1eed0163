// memory.h: blocks of device memory: the only entrance to the caching allocator.
//
// A request is rounded (sizes.h) and served by the arena of its stream (arena.h): the order of the stream makes the
// reuse of a freed block safe. Small blocks wait in the freeing thread's magazines first (magazines.h). An arena
// grows by memory idle elsewhere, then by new memory (growth.h). If the backend has no more memory, ladder.h gives
// the steps before a request is refused. With caching off (YOKE_NO_CACHING=1) every free reaches the backend, and
// sizes are not rounded.
#pragma once

#include "core/device/stream.h"
#include "core/memory/block.h"

namespace yoke {

struct MemoryStats {
    int64_t allocated = 0;  // bytes in live blocks, rounded as they were
    int64_t max_allocated = 0;
    int64_t reserved = 0;  // bytes taken from the backend
    int64_t max_reserved = 0;
};

// Returns a block of at least `bytes` (0 gives null), ordered on the stream of `lane`. Raises YOKE_E_OOM with the
// requested, allocated, reserved and free bytes; YOKE_E_FORKED in a forked child.
Block *allocate_block(Device &device, uint64_t bytes, uint8_t lane);
// Returns a block as allocate_block() does, or null if memory at hand is not enough: if the request needs a wait, or
// the host program's help.
Block *try_allocate_block(Device &device, uint64_t bytes, uint8_t lane);

// Gives a block back on the lane of its allocation; null is ignored. `uses` are the other lanes whose work used the
// block, as a set of lane_bit(). The block does not serve again before this work is done, or before the next stream
// waits for this work. In a forked child, blocks of the parent's device are forgotten.
void free_block(Device &device, Block *block, uint16_t uses = 0) noexcept;

// Waits in the calling thread for the work of the lane and of `uses`, before memory of the host program goes back to
// the host program. Keeps a failure for the next call that waits for the device.
void wait_for_uses(Device &device, uint8_t lane, uint16_t uses) noexcept;

// Counts device memory allocated by other libraries, as by engines of groups, as allocated; below 0: no longer.
void count_foreign(Device &device, int64_t bytes) noexcept;

MemoryStats memory_stats(Device &device);
void reset_peak_memory_stats(Device &device);
// Returns the peak of allocated bytes since the last lap of the device; memory_stats does not change.
int64_t lap_peak(Device &device);

// Gives waiting memory of the device (nullptr: of all devices) back to the backend, from all threads. Waiting pinned
// memory, and the copies kept for the next save, go too.
void empty_cache(Device *device);

// Returns whether the kernel would end a process that touches `bytes` more of the device, if the device is the host:
// the kernel grants more than the machine has, and a control group may not have enough left. Reads files.
bool would_be_ended(const Device &device, uint64_t bytes);

// Turns caching on or off. Turning it off gives back waiting memory, as empty_cache does.
void set_caching(bool enabled);
bool is_caching();

// Allocates a raw block for C: like malloc, with the size remembered; 0 bytes give a block too. `stream` is a native
// handle. raw_free() frees the block. raw_free(nullptr) does nothing; a pointer that raw_alloc did not give, or that
// was given back already, raises YOKE_E_VALUE.
void *raw_alloc(Device &device, uint64_t bytes, void *stream);
void raw_free(void *pointer);

namespace detail {
// Implements entries of core/base/lent.h.
void drop_memory_cache(ThreadCache *cache) noexcept;
int64_t live_memory(Device &device, size_t most, std::vector<std::string> &names);
yoke_status alloc_scratch(void *handle, uint64_t bytes, void *stream, uint32_t flags,
                          void **out) noexcept;
void free_scratch(void *handle, void *pointer, void *stream) noexcept;
}  // namespace detail

}  // namespace yoke
