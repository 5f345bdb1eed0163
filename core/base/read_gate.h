// read_gate.h: a resource that any number of threads may read, until a thread closes it.
//
// No thread waits: readers enter without a lock, and closing turns later readers away. The last thread to leave drops
// the closed resource.
#pragma once

#include <atomic>
#include <cstdint>

namespace yoke {

class ReadGate {
public:
    // Enters as a reader. Returns false if the gate is closed. leave() follows in any case.
    bool enter() noexcept { return !(state_.fetch_add(1, std::memory_order_acquire) & kClosed); }
    // Leaves, after every enter(), whatever its result. Returns true if the caller must drop the resource behind the
    // gate.
    bool leave() noexcept
    {
        return state_.fetch_sub(1, std::memory_order_acq_rel) == (kClosed | 1) && take();
    }
    // Closes the gate. Returns true as leave() does. Closing the gate again has no effect.
    bool close() noexcept
    {
        state_.fetch_or(kClosed, std::memory_order_acq_rel);
        return take();
    }

private:
    static constexpr uint32_t kClosed = 1u << 31, kTaken = 1u << 30;

    // Returns true to the first thread that sees the gate closed and empty.
    bool take() noexcept
    {
        uint32_t empty = kClosed;
        return state_.compare_exchange_strong(empty, kClosed | kTaken, std::memory_order_acq_rel);
    }

    std::atomic<uint32_t> state_{0};  // the two bits, and how many are inside
};

}  // namespace yoke
