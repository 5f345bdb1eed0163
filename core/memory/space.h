// space.h: the addresses of an arena: used addresses, free addresses, and addresses without memory. A space is only
// bookkeeping: it asks no backend and takes no lock.
//
// An extent is a segment (a backend block with memory everywhere), or a range of virtual addresses with mapped
// chunks. Free neighbours are merged to a block, and so are neighbouring holes.
#pragma once

#include "core/memory/free_runs.h"

#include <memory>
#include <vector>

namespace yoke {

struct Extent {
    uint64_t address = 0, bytes = 0;
    bool is_range = false;
    Block *first = nullptr, *last = nullptr;
    uint64_t end() const { return address + bytes; }
};

class Space {
public:
    Space() = default;
    Space(const Space &) = delete;
    Space &operator=(const Space &) = delete;

    // Number of descriptors that a function below may want. Callers call reserve() before; it makes many at a time,
    // and returns false without host memory.
    static constexpr size_t kMostTaken = 4;
    bool reserve() noexcept { return slab_.reserve(kMostTaken); }

    // ---- requests ----
    // Returns a used block of exactly `size` bytes, or null if no free block serves. A block that is little larger than
    // `size` may be missed: take_any() looks at all.
    Block *take(uint64_t size) noexcept;
    Block *take_any(uint64_t size) noexcept;
    // Returns a used block of `size` bytes, freed before its lane's fence with number `fence`, or null.
    Block *take_freed_before(uint64_t size, uint64_t fence) noexcept;
    // Returns a used block of the first `size` bytes of an idle extent.
    Block *take_first(Extent &extent, uint64_t size) noexcept;
    // Makes a used block free.
    void give(Block *block) noexcept;

    // ---- extents ----
    // Adds an extent. A segment is a single free block at first, a range a single hole. Raises std::bad_alloc.
    Extent &add(uint64_t address, uint64_t bytes, bool is_range);
    // Returns whether the extent is a segment without used blocks, or a range without memory.
    bool is_idle(const Extent &extent) const noexcept;
    // Takes an idle extent out of the space; the caller gives the memory back.
    void remove(Extent &extent) noexcept;
    const std::vector<std::unique_ptr<Extent>> &extents() const { return extents_; }

    // ---- growth of ranges ----
    // Neighbours in a range, taken for a future block. Meanwhile all of them are used blocks.
    struct Growth {
        Block *before = nullptr;  // was free, or null
        Block *gap = nullptr;  // has no memory yet, whole units; null: no range has the addresses
        Block *behind = nullptr;  // was free, or null
    };
    // Chooses the place where a block of `size` bytes wants the least memory, and makes its neighbours used blocks.
    // Returns a growth without a gap if no range has the addresses.
    Growth begin_growth(uint64_t size, uint64_t unit) noexcept;
    // Ends a growth of which the first `mapped` bytes of the gap got memory. If the whole gap got memory, returns the
    // used block of `size` bytes; else returns null, and the memory that came is free.
    Block *end_growth(const Growth &growth, uint64_t mapped, uint64_t size) noexcept;

    // ---- memory of free blocks, to be used elsewhere ----
    // Cuts [address, address + bytes) out of a free block, and returns a used block of just these addresses.
    Block *cut_free(Block *block, uint64_t address, uint64_t bytes) noexcept;
    // Makes a hole of a used block whose memory is gone.
    void make_hole(Block *block) noexcept;

    const FreeRuns &free() const noexcept { return free_; }
    uint64_t used_bytes() const noexcept { return used_bytes_; }
    uint64_t hole_bytes() const noexcept { return holes_.bytes(); }

private:
    // Makes the first `size` bytes of a free block a used block.
    Block *cut_front(Block *block, uint64_t size) noexcept;
    // Splits a block in no FreeRuns: the block keeps its first `size` bytes. Returns the rest, in the same state.
    Block *split(Block *block, uint64_t size) noexcept;
    // Merges `block` with the block behind; both are in no FreeRuns.
    void absorb_behind(Block *block) noexcept;
    FreeRuns &runs_of(BlockState state) noexcept
    {
        return state == BlockState::kFree ? free_ : holes_;
    }
    // Makes a used block free or a hole, merged with neighbours of the same kind.
    void settle(Block *block, BlockState state) noexcept;
    // Makes a free block or a hole used.
    void claim(Block *block) noexcept;

    BlockSlab slab_;
    FreeRuns free_, holes_;
    uint64_t used_bytes_ = 0;
    std::vector<std::unique_ptr<Extent>> extents_;
};

}  // namespace yoke
