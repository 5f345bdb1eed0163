// backend_memory.h: memory from the backend, and checks of its amount. Growth's lock guards this class, and is held
// during calls of the backend.
#pragma once

#include "core/memory/counters.h"
#include "core/memory/losses.h"

namespace yoke {

class BackendMemory {
public:
    BackendMemory(Device &device, MemoryCounters &counters, Losses &losses)
        : device_(device), counters_(counters), losses_(losses)
    {
    }
    BackendMemory(const BackendMemory &) = delete;
    BackendMemory &operator=(const BackendMemory &) = delete;

    // Allocates plain memory of the backend for *data and counts the bytes; release() frees such memory. Returns the
    // backend's status.
    yoke_status obtain(Pool pool, uint64_t bytes, void **data) noexcept;
    void release(Pool pool, uint64_t address, uint64_t bytes) noexcept;

    // Returns whether growth by so many bytes exceeds the part of the device from which on idle memory goes back.
    bool exceeds_threshold(uint64_t bytes) const;
    // Returns a failure if the backend does not have `bytes` in all, so that a refused request has not used up the
    // memory. A kernel that overcommits would refuse all the bytes at once, but grant them in chunks and then end the
    // process.
    yoke_status ask(uint64_t bytes);

    static constexpr uint64_t kMostChunk = uint64_t{32} << 20;

private:
    Device &device_;
    MemoryCounters &counters_;
    Losses &losses_;
};

// Returns YOKE_E_OOM, with the message that the kernel would end the process that touches the memory.
yoke_status fail_ended() noexcept;

}  // namespace yoke
