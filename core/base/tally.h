// tally.h: a counter stepped by every op. The first thread to step the counter is mostly the only thread, so it uses
// no locked instruction. Four locked instructions would take a seventh of a small op's time.
#pragma once

#include "core/base/thread_state.h"

#include <atomic>

namespace yoke {

// The sum is exact wherever no step is under way; a thread that adds meanwhile may not see the first thread's last step
// yet.
class Tally {
public:
    // Adds n and returns the sum.
    int64_t add(int64_t n) noexcept
    {
        // If two threads' states have the same address, the second thread began after the first thread's end.
        const ThreadState *self = try_thread_state(),
                          *first = first_.load(std::memory_order_relaxed);
        if (first != self || !self) [[unlikely]]
            if (!self || first ||
                !first_.compare_exchange_strong(first, self, std::memory_order_relaxed))
                return add_shared(n);
        own_.store(own_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
        return sum();
    }
    // Adds n and returns the sum, in a common order of all threads: each such step sees all such steps before.
    int64_t add_shared(int64_t n) noexcept
    {
        const int64_t before = shared_.fetch_add(n, std::memory_order_relaxed);
        return before + n + own_.load(std::memory_order_relaxed);
    }
    int64_t sum() const noexcept
    {
        return own_.load(std::memory_order_relaxed) + shared_.load(std::memory_order_relaxed);
    }

private:
    std::atomic<const ThreadState *> first_{nullptr};
    std::atomic<int64_t> own_{0}, shared_{0};
};

}  // namespace yoke
