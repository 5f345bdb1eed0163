// growth.h: memory of a device as it comes from the backend, moves between arenas and goes back.
//
// Where the device has virtual memory, an arena has ranges of addresses, and chunks of memory are mapped where they are
// wanted; a chunk that is idle in one arena serves another one. Elsewhere memory comes in segments, which stay where
// they are, and go back to the backend as a whole.
#pragma once

#include "core/base/log.h"
#include "core/memory/arena.h"
#include "core/memory/backend_memory.h"
#include "core/memory/chunks.h"
#include "core/memory/counters.h"

#include <memory>
#include <vector>

namespace yoke {

class Growth {
public:
    Growth(Device &device, MemoryCounters &counters) : device_(device), counters_(counters) {}
    Growth(const Growth &) = delete;
    Growth &operator=(const Growth &) = delete;
    ~Growth();

    // The lock, which the caller of every function below holds, over calls of the backend too. No lock
    // of an arena is held when it is taken. What went wrong meanwhile is told once it is free.
    class Hold {
    public:
        explicit Hold(Growth &growth);
        ~Hold();
        Hold(const Hold &) = delete;
        Hold &operator=(const Hold &) = delete;

    private:
        const LogLater later_;  // what a backend logs is told once the lock is free
        Growth &growth_;
    };

    // Takes an arena, or raises std::bad_alloc: its owner then ends it once the lock is free.
    Arena &add(std::unique_ptr<Arena> &arena);

    // Returns a used block of `size` bytes of the arena's in *block, with memory of idle chunks, and new memory for the
    // rest: OOM where the backend has none. Raises std::bad_alloc.
    yoke_status grow(Arena &arena, uint64_t size, Block **block);
    // Returns a block of the arena's, in which blocks serve again that other streams have used, or null.
    Block *take_used(Arena &arena, uint64_t size);
    // Returns a block of the arena's own in which blocks serve again whose fences are reached, or null.
    Block *take_reached(Arena &arena, uint64_t size);
    // Returns a block of another stream's arena whose work the arena's stream comes behind already, or null.
    Block *take_known(Arena &arena, uint64_t size);
    // Returns a block of any arena that serves the arena's stream once that waits for other streams, or null.
    Block *take_behind_waits(Arena &arena, uint64_t size);

    const std::vector<std::unique_ptr<Arena>> &arenas() const noexcept { return arenas_; }
    const Chunks &chunks() const noexcept { return chunks_; }

    // Returns the fences of other backends that blocks wait for.
    Guards foreign_fences() const;
    // Around a wait for the whole device, which is done without the lock. Without host memory nothing is marked.
    std::vector<Arena::Mark> mark_wait() noexcept;
    void note_waited(const std::vector<Arena::Mark> &marks) noexcept;

    // Gives what is idle and settled back to the backend.
    void give_back_idle() noexcept;
    void give_back_idle(Arena &arena) noexcept;
    // Gives idle segments of `wanted` bytes in all back, as far as there are; returns their bytes.
    uint64_t give_back_segments(Arena &arena, uint64_t wanted, uint64_t settled);
    // Makes idle memory of graphs that are gone spare, for whoever grows next.
    void retire_gone() noexcept;
    // Takes out the arenas of graphs that are gone and have no memory; they end once no lock is held.
    std::vector<std::unique_ptr<Arena>> take_ended() noexcept;

private:
    bool is_virtual();
    yoke_status grow_range(Arena &arena, uint64_t size, uint64_t unit, Block **block);
    yoke_status grow_segment(Arena &arena, uint64_t size, Block **block);
    yoke_status add_range(Arena &arena, uint64_t size, uint64_t unit);
    // Maps chunks to [address, address + bytes); *mapped receives how many bytes got one.
    yoke_status fill(Arena &arena, uint64_t address, uint64_t bytes, uint64_t unit,
                     uint64_t *mapped);
    // Makes chunks of `most` bytes in all spare that are idle elsewhere.
    void gather(Arena &grower, uint64_t most);
    bool is_fixed(const Arena &arena) const noexcept;
    // Takes the chunks of these blocks out of the arena; they are spare then.
    void unmap(Arena &arena, const std::vector<Block *> &cut) noexcept;
    bool is_ended(const Arena &arena) const noexcept;

    Device &device_;
    MemoryCounters &counters_;
    Mutex mutex_{LockRank::kGrowth};
    uint64_t last_id_ = 0;
    Losses losses_;  // to be told
    BackendMemory backend_{device_, counters_, losses_};
    std::vector<std::unique_ptr<Arena>> arenas_;
    Chunks chunks_{device_, counters_, losses_};
};

}  // namespace yoke
