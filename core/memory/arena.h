// arena.h: memory of a stream for requests of a kind: small or large, of all callers or of a graph. An arena keeps
// its free memory for its own stream: the stream's order makes immediate reuse safe.
//
// The arena's lock covers bookkeeping only: no backend is called, and no fence is asked.
#pragma once

#include "core/base/fork.h"
#include "core/device/stream.h"
#include "core/memory/counters.h"
#include "core/memory/settled_frees.h"
#include "core/memory/sizes.h"
#include "core/memory/space.h"

#include <list>
#include <mutex>
#include <vector>

namespace yoke {

class Chunks;
class GraphPool;

class Arena {
public:
    Arena(Device &of, MemoryCounters &counters, uint8_t lane, bool is_small, Ref<GraphPool> pool);
    ~Arena();
    Arena(const Arena &) = delete;
    Arena &operator=(const Arena &) = delete;

    Device &device;
    const uint8_t lane;
    const bool is_small;
    const Ref<GraphPool> pool;  // null: of everybody

    // ---- requests ----
    // Returns a used block of exactly `size` bytes, or null. take_any() looks at every free block, which takes longer.
    Block *take(uint64_t size) noexcept;
    Block *take_any(uint64_t size) noexcept;
    // Returns a used block of `size` bytes freed before the lane's fence with number `fence`, or null.
    Block *take_freed_before(uint64_t size, uint64_t fence) noexcept;
    // Adds a segment and returns its first `size` bytes as a used block, or null without host memory for a
    // descriptor. Raises std::bad_alloc if the segment cannot be added.
    Block *take_new(uint64_t address, uint64_t bytes, uint64_t size);
    void give(Block *block) noexcept;
    // Keeps a block that other streams have used until the fences are reached. Raises std::bad_alloc, and leaves the
    // fences then.
    void give_behind(Block *block, Guards &fences);

    // ---- for Growth, whose lock is held ----
    // Makes blocks with reached fences available; returns their number.
    size_t admit_reached() noexcept;
    // Makes the arena's stream wait for all waiting blocks, as far as possible, and makes the blocks available;
    // returns their number.
    size_t admit_all();
    // Returns the fences of other backends for which blocks wait: only the calling thread can wait for these.
    Guards foreign_fences();
    // Makes the stream of `waiting_lane` wait for all work on the free memory of this arena.
    void order_behind(uint8_t waiting_lane);

    // Returns the time of the last free whose bytes no work uses any more; asks fences without waiting. On the host,
    // every free counts, since the work is done when a call returns.
    uint64_t settled_at() noexcept;
    // A moment before a wait for the whole device, of one waiter: several threads may wait at once.
    struct Mark {
        uint64_t arena, clock, forgets;
    };
    Mark mark() noexcept;
    // Counts all memory free at the mark as settled, after the wait.
    void note_waited(const Mark &mark) noexcept;
    // Forgets that any free is settled: a replay, unknown to the arena, may use the bytes.
    void forget_settled() noexcept;
    // Notes that work of these lanes, such as a replay's, uses the memory too.
    void note_use(uint16_t uses) noexcept { uses_.fetch_or(uses, std::memory_order_relaxed); }

    // Cuts whole chunks of free and settled bytes out of the space, at most `most` bytes, from high addresses down.
    // Returns each chunk as a used block. Without host memory, returns the chunks cut so far.
    std::vector<Block *> cut_chunks(const Chunks &chunks, uint64_t settled, uint64_t most,
                                    uint64_t unit);
    static constexpr uint64_t kAll = ~uint64_t{0};
    // Segment that was cut out of the space.
    struct Segment {
        uint64_t address, bytes;
    };
    // Takes whole idle and settled segments out of the space, earliest freed first, until they have `wanted` bytes. A
    // segment of more than twice as much stays. If all together have less than an eighth of `wanted`, all stay: the
    // small gain is not worth splitting a large segment for the next request of this size.
    std::vector<Segment> cut_segments(uint64_t settled, uint64_t wanted);
    void make_hole(Block *block) noexcept;

    // Runs f(space) with the arena locked.
    template <class F>
    auto with_space(const F &f)
    {
        const std::lock_guard lock(mutex_);
        return f(space_);
    }

    // Returns the space of an arena that no other thread knows any more.
    const Space &space_of_ended() const noexcept { return space_; }

    uint64_t id = 0;          // no other arena of the device ever has it
    uint64_t next_range = 0;  // bytes of the range that comes next
    uint64_t mapped = 0;      // bytes of chunks and segments

    // Freed block, and its fences.
    struct Waiting {
        Block *block;
        Guards fences;
    };

private:
    friend class GraphPool;
    // Arena's lock. A thread spins first, since the lock is held for less time than a sleep takes.
    class Lock {
    public:
        explicit Lock(Mutex &mutex) noexcept;
        ~Lock() { mutex_.unlock(); }
        Lock(const Lock &) = delete;
        Lock &operator=(const Lock &) = delete;

    private:
        Mutex &mutex_;
    };
    void settle(Block *block) noexcept;
    void settle_waiting(const std::list<Waiting> &waiting) noexcept;
    // Calls f(lane) for each stream whose work may use free memory of this arena.
    template <class F>
    void each_user(const F &f) const;

    MemoryCounters &counters_;
    const std::atomic<uint64_t> &lane_fences_;
    Mutex mutex_{LockRank::kMemory};
    Space space_;
    std::list<Waiting> waiting_;
    uint64_t clock_ = 0;  // counts frees

    SettledFrees settled_;  // guarded by Growth's lock
    std::atomic<uint16_t> uses_{0};
};

inline Pool pool_of(const Arena &arena) noexcept
{
    return arena.is_small ? kSmallPool : kLargePool;
}
// Returns the pool of the block's request. The block itself may come from an arena of the other kind.
inline Pool pool_of(const Block &block) noexcept
{
    return block.capacity <= kMaxSmall ? kSmallPool : kLargePool;
}
inline Amounts amounts_of(const Block &block) noexcept
{
    return {1, static_cast<int64_t>(block.capacity), static_cast<int64_t>(block.requested)};
}

}  // namespace yoke
