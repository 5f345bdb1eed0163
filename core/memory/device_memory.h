// device_memory.h: the allocator's state of a device: its arenas, their growth, its counters.
#pragma once

#include "core/memory/counters.h"
#include "core/memory/growth.h"
#include "core/memory/seldom_asked.h"

#include <atomic>

namespace yoke {

// Keeps the failure of a wait before a free, for the next call that waits for the device. The block is free in both
// cases, but a device may report a failure only once.
void tell_wait(const Device &device, yoke_status status) noexcept;

class DeviceMemory {
public:
    explicit DeviceMemory(Device &device) : device_(device), growth_(device, counters_) {}
    DeviceMemory(const DeviceMemory &) = delete;
    DeviceMemory &operator=(const DeviceMemory &) = delete;

    Device &device() const noexcept { return device_; }
    MemoryCounters &counters() noexcept { return counters_; }
    Growth &growth() noexcept { return growth_; }

    // Returns the lane's arena for requests of all callers. Raises std::bad_alloc.
    Arena &arena(uint8_t lane, bool is_small)
    {
        Arena *known = arenas_[is_small][lane].load(std::memory_order_acquire);
        return known ? *known : make_arena(lane, is_small);
    }

    // Gives idle memory back to the backend. Waits for the device first, unless the calling thread captures a graph
    // of the device; other threads' magazines stay unchanged.
    void give_back_idle() noexcept;
    // Makes idle and settled memory of ended graphs available to all callers.
    void retire_graphs() noexcept;
    // Waits for the device, so all memory free at the call is settled.
    void wait_until_settled() noexcept;

    // Returns whether the kernel would end the process for a block of the backend's own; asks every 16 MiB.
    bool would_end(uint64_t bytes);
    // Allocates a block of the backend's own, of the very size, without caching; release_bare() frees it. Returns the
    // backend's status, or YOKE_E_OOM without host memory for a descriptor.
    yoke_status obtain_bare(uint64_t bytes, Block **block) noexcept;
    void release_bare(Block *block) noexcept;

private:
    Arena &make_arena(uint8_t lane, bool is_small);
    void give_back(uint64_t address, uint64_t bytes) noexcept;

    Device &device_;
    MemoryCounters counters_;
    Growth growth_;
    std::atomic<Arena *> arenas_[2][kMaxLanes] = {};
    Mutex bare_mutex_{LockRank::kMemory};
    BlockSlab bare_;
    SeldomAsked group_;  // for blocks of the backend's own
};

// Returns the memory of a device, made at the first call.
DeviceMemory &make_memory(Device &device);
inline DeviceMemory &memory_of(Device &device)
{
    DeviceMemory *memory = device.memory.load(std::memory_order_acquire);
    return memory ? *memory : make_memory(device);
}

}  // namespace yoke
