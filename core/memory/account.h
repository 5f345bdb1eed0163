// account.h: a thread's own counters of a device's blocks, so that threads do not write the same cache line at each
// request (counters.h). Only the thread writes; other threads read.
#pragma once

#include "core/base/relaxed.h"

#include <atomic>
#include <cstdint>

namespace yoke {

// Number of blocks, their counted sizes, and the requested bytes.
struct Amounts {
    int64_t count = 0, bytes = 0, requested = 0;

    Amounts &operator+=(const Amounts &other)
    {
        count += other.count;
        bytes += other.bytes;
        requested += other.requested;
        return *this;
    }
    Amounts operator+(const Amounts &other) const { return Amounts(*this) += other; }
    Amounts operator-() const { return {-count, -bytes, -requested}; }
    void raise_to(const Amounts &other)
    {
        if (other.count > count) count = other.count;
        if (other.bytes > bytes) bytes = other.bytes;
        if (other.requested > requested) requested = other.requested;
    }
};

// Account of a thread. All zeros are a valid empty account.
struct Account {
    using Number = std::atomic<int64_t>;
    struct Numbers {
        Number count, bytes, requested;

        Amounts read() const noexcept
        {
            return {count.load(std::memory_order_relaxed), bytes.load(std::memory_order_relaxed),
                    requested.load(std::memory_order_relaxed)};
        }
        void write(const Amounts &amounts) noexcept
        {
            count.store(amounts.count, std::memory_order_relaxed);
            bytes.store(amounts.bytes, std::memory_order_relaxed);
            requested.store(amounts.requested, std::memory_order_relaxed);
        }
        // Adds the amounts and returns the sum.
        __attribute__((always_inline)) Amounts add(const Amounts &more) noexcept
        {
            const Amounts sum = read() + more;
            write(sum);
            return sum;
        }
        __attribute__((always_inline)) void raise_to(const Amounts &reached) noexcept
        {
            raise(count, reached.count);
            raise(bytes, reached.bytes);
            raise(requested, reached.requested);
        }
        static void raise(Number &number, int64_t reached) noexcept
        {
            if (reached > number.load(std::memory_order_relaxed)) [[unlikely]]
                number.store(reached, std::memory_order_relaxed);
        }
    };

    uint64_t seen;               // MemoryCounters::version_ at the last publication; 0: never
    int64_t limit;               // bytes from which the account is published
    Relaxed<int64_t> published;  // bytes of `now` that other threads know of
    uint32_t publications;
    // Changes since then, for small and large blocks: living blocks, and freed blocks.
    Numbers now[2], freed[2];
    Numbers most[3];  // the greatest of `now` meanwhile: small, large, both
    // Guarded by the counters' lock.
    int64_t
        assumed;  // additional bytes of `now`, published for the thread when a second thread began to count
    uint64_t epoch;
};

}  // namespace yoke
