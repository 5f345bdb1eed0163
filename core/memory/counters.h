// counters.h: bytes of a device's memory: allocated to requests, reserved from the backend.
//
// A thread counts small blocks for itself (ThreadCache::counted), up to kApart bytes, so that threads do not write one
// cache line at each request. Sums are exact where no step is under way. A peak is exact if one thread allocates; each
// other thread may add kApart bytes that the peak does not have.
#pragma once

#include "core/memory/magazines.h"
#include "core/memory/memory.h"

#include <algorithm>
#include <atomic>

namespace yoke {

class MemoryCounters {
public:
    explicit MemoryCounters(const Device &device) : device_(device) {}

    // `own`: what the calling thread has counted for itself, or null.
    void count_alloc(ThreadCache::Count *own, uint64_t size) noexcept
    {
        raise_peak(max_allocated_, step(own, static_cast<int64_t>(size)));
    }
    void count_free(ThreadCache::Count *own, uint64_t size) noexcept
    {
        step(own, -static_cast<int64_t>(size));
    }
    // Adds what a thread counted that has ended.
    void add(int64_t bytes) noexcept { allocated_.fetch_add(bytes, std::memory_order_relaxed); }
    void count_reserved(int64_t bytes) noexcept
    {
        const int64_t reached = reserved_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
        raise_peak(max_reserved_, reached);
    }
    void count_foreign(int64_t bytes) noexcept
    {
        count_reserved(bytes);
        raise_peak(max_allocated_, allocated_.fetch_add(bytes, std::memory_order_relaxed) + bytes);
    }

    MemoryStats read() const
    {
        MemoryStats stats;
        stats.allocated = sum();
        stats.reserved = reserved_.load(std::memory_order_relaxed);
        // Read after the present values, a peak may lag behind them for an instant.
        stats.max_allocated =
            std::max({stats.allocated, max_allocated_.load(), past_max_allocated_.load()});
        stats.max_reserved = std::max(stats.reserved, max_reserved_.load());
        return stats;
    }
    void reset_peaks()
    {
        past_max_allocated_.store(0);
        max_allocated_.store(sum());
        max_reserved_.store(reserved_.load());
    }
    int64_t lap()
    {
        const int64_t most = max_allocated_.load();
        raise_peak(past_max_allocated_, most);
        const int64_t now = sum();
        max_allocated_.store(now);
        return std::max(most, now);
    }

private:
    static constexpr int64_t kApart = int64_t{64} << 10;
    using Counter = std::atomic<int64_t>;

    // Returns the sum after the step, less what other threads have counted for themselves.
    int64_t step(ThreadCache::Count *own, int64_t n) noexcept
    {
        const int64_t mine = own ? own->load(std::memory_order_relaxed) + n : n;
        if (own && mine >= -kApart && mine <= kApart) {
            own->store(mine, std::memory_order_relaxed);
            return allocated_.load(std::memory_order_relaxed) + mine;
        }
        if (own) own->store(0, std::memory_order_relaxed);
        return allocated_.fetch_add(mine, std::memory_order_relaxed) + mine;
    }
    int64_t sum() const
    {
        return allocated_.load(std::memory_order_relaxed) + ThreadCache::sum_counted(device_);
    }
    static void raise_peak(Counter &peak, int64_t reached) noexcept
    {
        int64_t most = peak.load(std::memory_order_relaxed);
        while (reached > most &&
               !peak.compare_exchange_weak(most, reached, std::memory_order_relaxed)) {
        }
    }

    const Device &device_;
    alignas(64) Counter allocated_{0};
    alignas(64) Counter max_allocated_{0};  // since the last lap
    Counter past_max_allocated_{0};         // before that
    Counter reserved_{0};
    Counter max_reserved_{0};
};

}  // namespace yoke
