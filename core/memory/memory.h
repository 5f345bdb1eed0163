// memory.h: blocks of device memory, behind one small interface that later holds the whole caching
// allocator.
//
// Today: free lists per device and stream, known by its lane (core/device/stream.h). A freed block waits
// in the list of its size class and serves the next request of that class on that stream, after the other
// streams that have used it; small blocks wait in a cache of the freeing
// thread first, without a lock. Sizes are rounded to the device's alignment, 64 bytes at least, and
// from 4 KiB to eight classes for each power of two. When the device has no memory left, everything
// that waits is given back and the request is tried once more; what other threads keep for
// themselves (1 MiB a device each at most) stays with them until they end. With caching off
// (YOKE_NO_CACHING=1) every free reaches the backend, and sizes are not rounded.
#pragma once

#include "core/device/stream.h"

namespace yoke {

struct MemoryStats {
    int64_t allocated = 0;  // bytes in live blocks, rounded as they were
    int64_t max_allocated = 0;
    int64_t reserved = 0;  // bytes taken from the backend
    int64_t max_reserved = 0;
};

// A block of at least `bytes` (0 gives nullptr), ordered on the stream of `lane`. `capacity` receives what must
// be given back to free_block. Raises YOKE_E_OOM with what was asked, what is allocated, reserved and
// free; YOKE_E_FORKED in a forked child.
void *allocate_block(Device &device, uint64_t bytes, uint8_t lane, uint64_t *capacity);

// Gives a block back on the lane it was allocated on; nullptr is ignored. `uses` are the other lanes whose work it
// served, as a set of lane_bit(): before the block serves again, its own stream waits for what they were given so far.
// In a forked child blocks of a device that was left behind are forgotten.
void free_block(Device &device, void *block, uint64_t capacity, uint8_t lane,
                uint16_t uses = 0) noexcept;

// Waits for the lane's work and that of `uses`: memory of the host program goes back to it after that.
void wait_for_uses(Device &device, uint8_t lane, uint16_t uses) noexcept;

// Memory of the device that others have got, as engines of groups do, is counted as allocated from now on, and, below
// 0, no longer.
void count_foreign(Device &device, int64_t bytes) noexcept;

MemoryStats memory_stats(Device &device);
void reset_peak_memory_stats(Device &device);
// The most that was allocated at any time since the last lap of the device; what memory_stats tells is not touched.
int64_t lap_peak(Device &device);

// Gives the waiting blocks of the device (of all devices: nullptr) back to the backend, save those that
// other threads keep for themselves; with them go what waits pinned, and for the copies of the next save.
void empty_cache(Device *device);

// Whether the kernel would end a process that touches so many more bytes of the device, which is the host: it gives
// more than there is, and a control group has no room for them. Asked of blocks that are worth a look at files.
bool would_be_ended(const Device &device, uint64_t bytes);

// Turning it off gives back what waits, as empty_cache does; other threads give theirs back when they
// end.
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
yoke_status alloc_scratch(void *handle, uint64_t bytes, void *stream, void **out) noexcept;
void free_scratch(void *handle, void *pointer, void *stream) noexcept;
}  // namespace detail

}  // namespace yoke
