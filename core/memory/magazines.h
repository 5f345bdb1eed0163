// magazines.h: small blocks kept by a thread, by class: the thread takes and gives them without a lock.
//
// If memory is short, other threads empty a magazine too. The owner marks by a plain store that it is inside. A
// thread emptying another thread's magazines first sets a mark, then makes every running thread pass a barrier
// (membarrier(2)). So each of the two threads sees the other mark. If the barrier is refused, the owner uses a fence
// instead.
#pragma once

#include "core/base/thread_state.h"
#include "core/device/device.h"
#include "core/memory/account.h"
#include "core/memory/block.h"
#include "core/memory/page_table.h"
#include "core/memory/sizes.h"

#include <atomic>
#include <cstdlib>

namespace yoke {

struct ThreadCache {
    // Bytes of one device at most. A garbage collector drops small tensors by the thousand: most should still be here
    // when the script goes on.
    static constexpr uint64_t kMaxBytes = uint64_t{4} << 20;
    // Size up to which blocks have half of kMaxBytes for themselves, so a few large blocks do not displace small
    // blocks.
    static constexpr uint64_t kSmaller = uint64_t{64} << 10;

    // Blocks of a class, all of the same stream, linked by `child`.
    struct Magazine {
        Block *top;
        uint8_t lane;
    };
    // A thread's magazines and account of one device.
    struct Slot {
        // Returns a block of that class, or null. size is index_size(index).
        Block *take(int index, uint64_t size, uint8_t lane) noexcept;
        // Keeps a block, which has the lane's arena. Returns false if the thread keeps kMaxBytes / 2 of such blocks,
        // has never allocated, or another thread is in the cache.
        bool keep(Block *block, int index, uint8_t lane) noexcept;

        ThreadCache *owner;
        Device *device;
        uint64_t bytes[2];  // in blocks up to kSmaller, and in larger blocks
        Account account;
        bool allocates;  // a thread that only frees keeps no blocks
        Magazine magazines[kSmallClasses];
    };
    static constexpr int kMaxDevices = 256;

    std::atomic<bool> inside;                // the owner is
    std::atomic<bool> closed;                // another thread is, or wants to be
    std::atomic<Slot *> slots[kMaxDevices];  // by ordinal, made at first use
    RecentBlocks *recent;                    // made at first use
    ThreadCache *next, *before;              // links of all threads' caches

    // Returns the calling thread's cache, made at the first call; nullptr without host memory.
    static ThreadCache *of_thread() noexcept
    {
        ThreadState *thread = try_thread_state();
        if (!thread) [[unlikely]]
            return nullptr;
        return thread->memory_cache ? thread->memory_cache : make(*thread);
    }

    // Returns the blocks that the calling thread has noted lately; null without host memory.
    static RecentBlocks *recent_of_thread() noexcept
    {
        ThreadCache *const cache = of_thread();
        if (cache && !cache->recent) [[unlikely]]
            cache->recent = static_cast<RecentBlocks *>(calloc(1, sizeof(RecentBlocks)));
        return cache ? cache->recent : nullptr;
    }
    // Returns the calling thread's slot of a device, made at the first call; null without host memory.
    static Slot *slot_of_thread(Device &device) noexcept
    {
        ThreadCache *const cache = of_thread();
        return cache ? cache->slot_of(device) : nullptr;
    }
    // Returns the bytes kept of a device; 0 while another thread is in the cache.
    uint64_t bytes_of(const Device &device) noexcept;

    // Gives this cache's blocks of a device (nullptr: of every device) to the arenas.
    void drain(const Device *device) noexcept;
    // Gives the blocks of a device (nullptr: of every device) in the caches of all threads to the arenas.
    static void drain_all(const Device *device) noexcept;
    // Gives the blocks in the cache of an ending thread to the arenas, closes its accounts, and frees the cache.
    static void drop(ThreadCache *cache) noexcept;
    // Adds the thread's accounts to the devices' counters, and closes the accounts.
    void close_accounts() noexcept;

private:
    class Visit;
    static ThreadCache *make(ThreadState &thread) noexcept;
    Slot *make_slot(Device &device) noexcept;
    Slot *slot_of(Device &device) noexcept
    {
        if (device.ordinal >= kMaxDevices) [[unlikely]]
            return nullptr;
        Slot *const slot = slots[device.ordinal].load(std::memory_order_relaxed);
        return slot ? slot : make_slot(device);
    }
    void drain_slots(const Device *device) noexcept;
    static void drain_magazine(Slot &slot, int index) noexcept;
    void close_and_drain(const Device *device) noexcept;
};

namespace detail {
// True if every running thread can be made to pass a barrier.
extern const bool has_membarrier;
}  // namespace detail

// The owner's visit of its cache. False while another thread is there: the block then comes from, or goes to, an arena.
class ThreadCache::Visit {
public:
    explicit Visit(ThreadCache &cache) noexcept : cache_(cache)
    {
        if (detail::has_membarrier) [[likely]] {
            cache_.inside.store(true, std::memory_order_relaxed);
            std::atomic_signal_fence(std::memory_order_seq_cst);
            entered_ = !cache_.closed.load(std::memory_order_acquire);
        } else {
            cache_.inside.store(true, std::memory_order_seq_cst);
            entered_ = !cache_.closed.load(std::memory_order_seq_cst);
        }
    }
    ~Visit() { cache_.inside.store(false, std::memory_order_release); }
    Visit(const Visit &) = delete;
    Visit &operator=(const Visit &) = delete;
    explicit operator bool() const noexcept { return entered_; }

private:
    ThreadCache &cache_;
    bool entered_;
};

inline Block *ThreadCache::Slot::take(int index, uint64_t size, uint8_t lane) noexcept
{
    const Visit visit(*owner);
    if (!visit) [[unlikely]]
        return nullptr;
    allocates = true;
    Magazine &magazine = magazines[index];
    Block *const block = magazine.top;
    if (!block || magazine.lane != lane) return nullptr;
    magazine.top = block->child;
    __builtin_prefetch(magazine.top);  // for the next request of the class
    bytes[size > kSmaller] -= size;
    return block;
}

inline bool ThreadCache::Slot::keep(Block *block, int index, uint8_t lane) noexcept
{
    const Visit visit(*owner);
    if (!visit || !allocates) return false;
    uint64_t &kept = bytes[block->size > kSmaller];
    if (kept + block->size > kMaxBytes / 2) return false;
    Magazine &magazine = magazines[index];
    if (magazine.top && magazine.lane != lane) [[unlikely]]
        drain_magazine(*this, index);  // the thread has gone on to another stream
    magazine.lane = lane;
    block->child = magazine.top;
    magazine.top = block;
    kept += block->size;
    return true;
}

}  // namespace yoke
