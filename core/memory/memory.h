// memory.h: blocks of device memory: the caching allocator's one door.
//
// A request is rounded (sizes.h) and served by the arena of its stream (arena.h): the order of one stream is what makes
// it safe to use a freed block again. Small blocks wait in the freeing thread's magazines first (magazines.h). An arena
// grows by memory that is idle elsewhere, then by new memory (growth.h). Where the backend has no more, ladder.h says
// what goes before a request is refused. With caching off (YOKE_NO_CACHING=1) every free reaches the backend, and sizes
// are not rounded.
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

// Returns a block of at least `bytes` (0 gives null), ordered on the stream of `lane`. Raises YOKE_E_OOM with what was
// asked, what is allocated, reserved and free; YOKE_E_FORKED in a forked child.
Block *allocate_block(Device &device, uint64_t bytes, uint8_t lane);
// Returns null where that would take more than memory which is at hand: a wait, or the host program's help.
Block *try_allocate_block(Device &device, uint64_t bytes, uint8_t lane);

// Gives a block back on the lane it was allocated on; null is ignored. `uses` are the other lanes whose work it served,
// as a set of lane_bit(): it does not serve again before that work is done, or waited for by the stream that gets it.
// In a forked child blocks of a device that was left behind are forgotten.
void free_block(Device &device, Block *block, uint16_t uses = 0) noexcept;

// Waits for the lane's work and that of `uses`: memory of the host program goes back to it after that.
void wait_for_uses(Device &device, uint8_t lane, uint16_t uses) noexcept;

// Memory of the device that others have got, as engines of groups do, is counted as allocated from now on, and, below
// 0, no longer.
void count_foreign(Device &device, int64_t bytes) noexcept;

MemoryStats memory_stats(Device &device);
void reset_peak_memory_stats(Device &device);
// The most that was allocated at any time since the last lap of the device; what memory_stats tells is not touched.
int64_t lap_peak(Device &device);

// Gives what waits of the device (of all devices: nullptr) back to the backend, whichever thread keeps it; with it goes
// what waits pinned, and for the copies of the next save.
void empty_cache(Device *device);

// Whether the kernel would end a process that touches so many more bytes of the device, which is the host: it gives
// more than there is, and a control group has no room for them. Reads files.
bool would_be_ended(const Device &device, uint64_t bytes);

// Turning it off gives back what waits, as empty_cache does.
void set_caching(bool enabled);
bool is_caching();

// Raw blocks for C: like malloc, with the size remembered; 0 bytes give a block too. `stream` is a native handle.
// raw_free(nullptr) does nothing; a pointer that raw_alloc did not give, or that was given back
// already, raises YOKE_E_VALUE.
void *raw_alloc(Device &device, uint64_t bytes, void *stream);
void raw_free(void *pointer);

namespace detail {
// Of core/base/lent.h.
void drop_memory_cache(ThreadCache *cache) noexcept;
int64_t live_memory(Device &device, size_t most, std::vector<std::string> &names);
yoke_status alloc_scratch(void *handle, uint64_t bytes, void *stream, uint32_t flags,
                          void **out) noexcept;
void free_scratch(void *handle, void *pointer, void *stream) noexcept;
}  // namespace detail

}  // namespace yoke
