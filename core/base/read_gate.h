// read_gate.h: something that any number of threads may read, until one lets go of it.
//
// Nobody waits: readers come in without a lock, letting go turns later readers away, and what was let go of is dropped
// by whoever leaves last.
#pragma once

#include <atomic>
#include <cstdint>

namespace yoke {

class ReadGate {
public:
    // False once it has been let go of; else leave() follows.
    bool enter() noexcept { return !(state_.fetch_add(1, std::memory_order_acquire) & kClosed); }
    // After enter(), whatever it said. True: the caller drops what stood behind the gate.
    bool leave() noexcept
    {
        return state_.fetch_sub(1, std::memory_order_acq_rel) == (kClosed | 1) && take();
    }
    // True as for leave(). Closing it again does nothing.
    bool close() noexcept
    {
        state_.fetch_or(kClosed, std::memory_order_acq_rel);
        return take();
    }

private:
    static constexpr uint32_t kClosed = 1u << 31, kTaken = 1u << 30;

    // Closed and empty: the one who sees it first.
    bool take() noexcept
    {
        uint32_t empty = kClosed;
        return state_.compare_exchange_strong(empty, kClosed | kTaken, std::memory_order_acq_rel);
    }

    std::atomic<uint32_t> state_{0};  // the two bits, and how many are inside
};

}  // namespace yoke
