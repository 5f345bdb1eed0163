// growth.h: memory of a device: its way from the backend, between arenas and back.
//
// If the device has virtual memory, an arena has ranges of addresses, and chunks of memory are mapped on demand. A
// chunk idle in an arena can move to another arena. Otherwise memory comes in segments, which stay in place and go
// back to the backend as a whole.
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

    // Lock held by the caller of every function below, also during calls of the backend. No lock of an arena is held
    // when this lock is taken. Problems met under the lock are logged after its release.
    class Hold {
    public:
        explicit Hold(Growth &growth);
        ~Hold();
        Hold(const Hold &) = delete;
        Hold &operator=(const Hold &) = delete;

    private:
        const LogLater later_;  // logs a backend's messages after the lock is free
        Growth &growth_;
    };

    // Takes over an arena and returns it. If this raises std::bad_alloc, the caller destroys the arena after
    // releasing the lock.
    Arena &add(std::unique_ptr<Arena> &arena);

    // Grows the arena until a block of `size` bytes is free, and puts this block, used, into *block. Takes memory of
    // idle chunks, and new memory for the rest. Returns YOKE_E_OOM if the backend has no memory. Raises
    // std::bad_alloc.
    yoke_status grow(Arena &arena, uint64_t size, Block **block);
    // Returns a block of the arena, after making blocks used by other streams available, or null.
    Block *take_used(Arena &arena, uint64_t size);
    // Returns a block of the arena, after making blocks with reached fences available, or null.
    Block *take_reached(Arena &arena, uint64_t size);
    // Returns a block of another stream's arena whose work the arena's stream comes behind already, or null.
    Block *take_known(Arena &arena, uint64_t size);
    // Returns a block of any arena, usable by the arena's stream after waits for other streams, or null.
    Block *take_behind_waits(Arena &arena, uint64_t size);

    const std::vector<std::unique_ptr<Arena>> &arenas() const noexcept { return arenas_; }
    const Chunks &chunks() const noexcept { return chunks_; }

    // Returns the fences of other backends that blocks wait for.
    Guards foreign_fences() const;
    // Returns a mark of each arena, before a wait for the whole device without the lock. After the wait,
    // note_waited() counts all memory free at the marks as settled. Without host memory, returns no marks.
    std::vector<Arena::Mark> mark_wait() noexcept;
    void note_waited(const std::vector<Arena::Mark> &marks) noexcept;

    // Gives idle and settled segments back to the backend, of all arenas or of this arena, and makes idle chunks
    // spare. For all arenas, gives the spare chunks back too.
    void give_back_idle() noexcept;
    void give_back_idle(Arena &arena) noexcept;
    // Gives idle segments of `wanted` bytes in all back, as far as there are; returns their bytes.
    uint64_t give_back_segments(Arena &arena, uint64_t wanted, uint64_t settled);
    // Makes idle memory of ended graphs spare, for the next growth.
    void retire_gone() noexcept;
    // Takes out the arenas of ended graphs without memory; the caller destroys them after releasing all locks.
    std::vector<std::unique_ptr<Arena>> take_ended() noexcept;

private:
    bool is_virtual();
    yoke_status grow_range(Arena &arena, uint64_t size, uint64_t unit, Block **block);
    yoke_status grow_segment(Arena &arena, uint64_t size, Block **block);
    yoke_status add_range(Arena &arena, uint64_t size, uint64_t unit);
    // Maps spare, idle or new chunks to [address, address + bytes). *mapped receives the number of mapped bytes, also
    // if the backend fails. Returns the backend's status.
    yoke_status fill(Arena &arena, uint64_t address, uint64_t bytes, uint64_t unit,
                     uint64_t *mapped);
    // Takes idle chunks of at most `most` bytes in all out of the arenas, the grower's last; the chunks are spare
    // then.
    void gather(Arena &grower, uint64_t most);
    bool is_fixed(const Arena &arena) const noexcept;
    // Takes the chunks of these blocks out of the arena; they are spare then.
    void unmap(Arena &arena, const std::vector<Block *> &cut) noexcept;
    bool is_ended(const Arena &arena) const noexcept;

    Device &device_;
    MemoryCounters &counters_;
    Mutex mutex_{LockRank::kGrowth};
    uint64_t last_id_ = 0;
    Losses losses_;  // to be reported
    BackendMemory backend_{device_, counters_, losses_};
    std::vector<std::unique_ptr<Arena>> arenas_;
    Chunks chunks_{device_, counters_, losses_};
};

}  // namespace yoke
