// counters.h: a device's memory in numbers: blocks of requests, and memory from the backend.
//
// An allocating thread counts in an account of its own. While only a single thread counts, no other thread needs the
// numbers. With several threads, each publishes its bytes in steps of kApart, and its whole account now and then.
// When only one is left, that thread counts alone again. Sums are exact while no step is under way. Peaks are exact
// if a single thread allocates. Otherwise the peak of all bytes is at most 64 KiB too low for each further thread,
// and never too high. 64 KiB is twice kApart, since a thread may have allocated and freed this much unpublished. The
// other peaks are the highest amounts seen when an account was published or the numbers were read.
#pragma once

#include "core/base/fork.h"
#include "core/memory/account.h"
#include "core/memory/memory.h"

#include <atomic>
#include <vector>

namespace yoke {

enum Pool { kSmallPool, kLargePool, kAllPools };

// Events that are counted.
enum class MemoryEvent {
    // Rungs of the ladder that served a request.
    kUsed,
    kMagazine,
    kKnown,
    kGrow,
    kWait,
    kAllMagazines,
    kSettle,
    kGiveBack,
    kCollector,
    kCallback,
    // Events that are not rungs.
    kRetry,
    kOutOfMemory,
    kSynchronize,
    kDeviceAlloc,
    kDeviceFree,
    kSteal,
    kCount
};

// Figures of both pools and of all: now, at most, and the sums of what came and went.
struct PoolStats {
    Amounts now[3], peak[3], came[3], gone[3];
};

class MemoryCounters {
public:
    MemoryCounters() = default;
    MemoryCounters(const MemoryCounters &) = delete;
    MemoryCounters &operator=(const MemoryCounters &) = delete;

    // Counts a block of a request. `own`: the calling thread's account, or null.
    // Inline, since every request passes here.
    __attribute__((always_inline)) void count_alloc(Account *own, Pool pool,
                                                    const Amounts &block) noexcept
    {
        if (!own || own->seen != version_.load(std::memory_order_acquire)) [[unlikely]]
            if (!prepare(own)) return count_shared(pool, block, true);
        const Amounts now = own->now[pool].add(block);
        own->most[pool].raise_to(now);
        const Amounts all = now + own->now[1 - pool].read();
        own->most[kAllPools].raise_to(all);
        if (all.bytes - own->published > own->limit) [[unlikely]]
            publish(*own, all.bytes);
    }
    __attribute__((always_inline)) void count_free(Account *own, Pool pool,
                                                   const Amounts &block) noexcept
    {
        // A thread that only frees has no account, so the peaks of a single allocating thread stay exact.
        if (!own || own->seen != version_.load(std::memory_order_acquire)) [[unlikely]]
            if (!own || own->seen == 0 || !prepare(own)) return count_shared(pool, block, false);
        own->freed[pool].add(block);
        const int64_t bytes = own->now[pool].add(-block).bytes +
                              own->now[1 - pool].bytes.load(std::memory_order_relaxed);
        if (own->published - bytes > own->limit) [[unlikely]]
            publish(*own, bytes);
    }
    // Adds the account of an ending thread to the sums, and forgets the account.
    void close(Account &account) noexcept;

    // Counts blocks that were freed and wait for work of other streams. Negative amounts end the waiting.
    void count_waiting(Pool pool, const Amounts &blocks) noexcept;
    // Counts memory of the backend, in segments and chunks; count_small counts memory moved to or from small
    // requests.
    void count_reserved(Pool pool, int64_t pieces, int64_t bytes) noexcept;
    void count_small(int64_t pieces, int64_t bytes) noexcept;
    // Counts device memory allocated by other libraries.
    void count_foreign(int64_t bytes) noexcept;
    void count(MemoryEvent event) noexcept
    {
        events_[static_cast<size_t>(event)].fetch_add(1, std::memory_order_relaxed);
    }

    MemoryStats read() const noexcept;
    PoolStats blocks() const noexcept;    // blocks of requests
    PoolStats active() const noexcept;    // blocks of requests, and waiting blocks
    PoolStats reserved() const noexcept;  // `count` in segments and chunks
    int64_t foreign() const noexcept;
    // Records a walk's result: the free blocks that cannot go back to the backend. Returns the figures of all walks
    // so far.
    PoolStats look_at_split(const Amounts (&now)[3]) noexcept;
    int64_t events(MemoryEvent event) const noexcept
    {
        return events_[static_cast<size_t>(event)].load(std::memory_order_relaxed);
    }

    void reset_peaks() noexcept;
    // Starts the totals and the events' numbers again from 0.
    void reset_totals() noexcept;
    // Returns the most bytes of blocks since the last call, and starts a new lap at the present bytes.
    int64_t lap() noexcept;

private:
    static constexpr int64_t kApart = int64_t{32} << 10;
    static constexpr uint32_t kPublications = 64;
    struct Sums {
        Amounts of[3];  // small, large, both
        void add(const Amounts (&pools)[2])
        {
            for (int pool : {kSmallPool, kLargePool}) of[pool] += pools[pool];
            of[kAllPools] += pools[kSmallPool] + pools[kLargePool];
        }
        void raise_to(const Sums &other)
        {
            for (int i = 0; i < 3; ++i) of[i].raise_to(other.of[i]);
        }
    };

    // Publishes the account; a new account first joins the counters. Returns false if the account is null, or cannot
    // join without host memory: the caller then counts in the shared sums.
    bool prepare(Account *own) noexcept;
    // Adds the account's unpublished bytes to the published sum; every kPublications times, publishes the whole
    // account.
    void publish(Account &account, int64_t bytes) noexcept
    {
        const int64_t more = bytes - account.published;
        account.published = bytes;
        raise(published_peak_, published_.fetch_add(more, std::memory_order_relaxed) + more);
        if (++account.publications % kPublications == 0) tell(account);
    }
    static void raise(std::atomic<int64_t> &peak, int64_t reached) noexcept
    {
        int64_t most = peak.load(std::memory_order_relaxed);
        while (reached > most &&
               !peak.compare_exchange_weak(most, reached, std::memory_order_relaxed)) {
        }
    }
    void tell(Account &account) noexcept;
    void count_shared(Pool pool, const Amounts &block, bool is_alloc) noexcept;

    // Adds an account; with a second account, threads begin to publish. Returns false without host memory. The lock
    // is held by callers of this and the following functions:
    bool join(Account &account) noexcept;
    void tell_held(Account &account) noexcept;
    Sums reached_by(const Account &account) const noexcept;
    Sums sum_now() const noexcept;
    PoolStats collect(const Sums &waiting, const Sums &known_peak) const noexcept;
    // Raises peaks to the amounts reached by accounts; afterwards the accounts' peaks start again from the present.
    void fold() noexcept;
    void raise_peaks(const Sums &reached) noexcept;
    void raise_bytes(int64_t reached) noexcept;
    int64_t sure_of(int64_t published) const noexcept;

    // Changes whenever accounts have something to look at.
    std::atomic<uint64_t> version_{1};
    std::atomic<int64_t> events_[static_cast<size_t>(MemoryEvent::kCount)] = {};

    // Bytes of all blocks while several threads count, without the accounts' unpublished bytes; and the peak of this
    // sum.
    alignas(64) std::atomic<int64_t> published_{0};
    alignas(64) std::atomic<int64_t> published_peak_{0};

    alignas(64) mutable Mutex mutex_{LockRank::kBlocks};
    std::vector<Account *> accounts_;
    uint64_t epoch_ = 1;
    bool is_shared_ = false;  // several threads count
    Sums now_, gone_, peak_, active_peak_;
    Sums waiting_;
    Sums gone_before_, came_before_, waiting_before_;  // when the totals started again
    int64_t lap_peak_ = 0, foreign_ = 0;
    PoolStats split_;
    Sums reserved_, reserved_peak_, reserved_came_, reserved_gone_;
};

}  // namespace yoke
