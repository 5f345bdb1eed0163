#include "tests/core/memory/walk.h"

#include "core/base/error.h"
#include "core/memory/alloc_conf.h"
#include "core/memory/graph_pool.h"

#include <algorithm>
#include <set>

namespace yoke::test {

namespace {

using Count = unsigned long long;

uint64_t rounded(uint64_t bytes, uint64_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

// Launches of a graph name addresses of the arena.
bool is_fixed(const Arena &arena)
{
    return arena.pool.present() && !arena.pool->is_gone();
}

uint64_t free_bytes(const Block *block)
{
    return block && block->state == BlockState::kFree ? block->size : 0;
}

// Returns the fewest bytes of new memory that would make a run of `size` bytes about a hole.
uint64_t bytes_to_fill(const Block &hole, uint64_t size, uint64_t unit)
{
    const uint64_t before = free_bytes(hole.before), behind = free_bytes(hole.behind);
    uint64_t least = ~uint64_t{0};
    for (const uint64_t beside : {before, behind}) {
        const uint64_t gap = beside >= size ? unit : rounded(size - beside, unit);
        if (gap <= hole.size) least = std::min(least, gap);
    }
    if (before + hole.size + behind >= size) least = std::min(least, hole.size);
    return least;
}

}  // namespace

Walk::Walk(Machine &machine) : memory_(machine.hollow.memory())
{
    Growth &growth = memory_of(machine.device).growth();
    const Growth::Hold hold(growth);
    for (const auto &arena : growth.arenas()) look_at(*arena);
    mapped += static_cast<uint64_t>(growth.chunks().spare_bytes());
    uint64_t all = 0, most = 0;
    for (const uint64_t bytes : free_by_lane_) {
        all += bytes;
        most = std::max(most, bytes);
    }
    stranded = all - most;
}

void Walk::expect(bool holds, const Arena &arena, uint64_t address, const char *promise)
{
    if (holds || faults_.size() > 5) return;
    faults_.push_back(format("arena %llu (lane %d, %s), 0x%llx: %s", static_cast<Count>(arena.id),
                             arena.lane, arena.is_small ? "small" : "large",
                             static_cast<Count>(address), promise));
}

void Walk::look_at(const Arena &arena, const Block &block)
{
    const bool is_backed = memory_.is_backed(block.address, block.size);
    if (block.state == BlockState::kHole) {
        expect(block.extent->is_range, arena, block.address, "a hole lies in a segment");
        expect(!is_backed, arena, block.address, "a hole has memory");
    } else {
        expect(is_backed, arena, block.address, "a block has no memory");
    }
    if (block.state == BlockState::kUsed || !block.before) return;
    expect(block.before->state != block.state, arena, block.address,
           "two neighbours of one kind are not one block");
}

void Walk::look_at(const Arena &arena, const Extent &extent)
{
    const Block *before = nullptr;
    uint64_t at = extent.address;
    for (const Block *block = extent.first; block; before = block, block = block->behind) {
        expect(block->address == at && block->size, arena, at, "blocks do not fill their extent");
        expect(block->before == before && block->extent == &extent, arena, at,
               "a block does not know its neighbour");
        look_at(arena, *block);
        at += block->size;
    }
    expect(before == extent.last && at == extent.end(), arena, at,
           "the last block does not end the extent");
}

void Walk::look_at(Arena &arena)
{
    arena.with_space([&](Space &space) {
        std::set<const Block *> listed;
        space.free().each(1, [&](const Block &run) {
            expect(listed.insert(&run).second, arena, run.address, "a free run is listed twice");
            return true;
        });
        uint64_t sums[3] = {}, end = 0;
        for (const auto &extent : space.extents()) {
            expect(extent->address >= end, arena, extent->address, "extents are not in order");
            end = extent->end();
            look_at(arena, *extent);
            for (const Block *block = extent->first; block; block = block->behind) {
                sums[static_cast<int>(block->state)] += block->size;
                if (block->state != BlockState::kFree) continue;
                expect(listed.erase(block), arena, block->address, "a free run is not listed");
                if (arena.pool.present()) continue;
                largest = std::max(largest, block->size);
                free_by_lane_[arena.lane] += block->size;
            }
        }
        expect(listed.empty(), arena, 0, "a run is listed that no extent has");
        const uint64_t free_here = sums[static_cast<int>(BlockState::kFree)],
                       used_here = sums[static_cast<int>(BlockState::kUsed)];
        expect(space.free().bytes() == free_here, arena, 0, "the sum of free bytes is wrong");
        expect(space.used_bytes() == used_here, arena, 0, "the sum of used bytes is wrong");
        expect(space.hole_bytes() == sums[static_cast<int>(BlockState::kHole)], arena, 0,
               "the sum of holes is wrong");
        expect(arena.mapped == used_here + free_here, arena, 0,
               "the arena's memory is not that of its blocks");
        used += used_here;
        free += free_here;
        mapped += arena.mapped;
        if (arena.is_small) small += arena.mapped;
    });
}

std::string way_on(Machine &machine, const Refused &refused)
{
    const HollowMemory &memory = machine.hollow.memory();
    Growth &growth = memory_of(machine.device).growth();
    const Growth::Hold hold(growth);
    const uint64_t unit = memory.unit();
    const bool grows_ranges =
        machine.hollow.table().vmm_reserve && alloc_conf().expandable_segments;
    const auto spare = static_cast<uint64_t>(growth.chunks().spare_bytes());
    const uint64_t left = memory.capacity() - memory.used() + spare;
    if (left >= refused.size) return format("the device has %llu bytes", static_cast<Count>(left));
    std::string found;
    for (const auto &arena : growth.arenas())
        arena->with_space([&](Space &space) {
            const bool is_own = arena.get() == refused.arena;
            const bool serves =
                is_own || (refused.arena && !refused.arena->pool.present() && !is_fixed(*arena));
            const bool could_go = refused.may_wait && !is_fixed(*arena);
            const auto note = [&](const Block &block, const char *what) {
                found += format(
                    "arena %llu (lane %d, %s), 0x%llx: %s of %llu bytes; ",
                    static_cast<Count>(arena->id), arena->lane, arena->is_small ? "small" : "large",
                    static_cast<Count>(block.address), what, static_cast<Count>(block.size));
            };
            for (const auto &extent : space.extents()) {
                if (!extent->is_range && could_go && space.is_idle(*extent))
                    note(*extent->first, "an idle segment");
                for (const Block *block = extent->first; block; block = block->behind) {
                    const bool is_free = block->state == BlockState::kFree;
                    if (is_free && serves && block->size >= refused.size)
                        note(*block, "a free run");
                    if (is_free && could_go && extent->is_range &&
                        growth.chunks().last_within(block->address, block->end()))
                        note(*block, "a whole chunk in a run");
                    if (block->state == BlockState::kHole && is_own && grows_ranges &&
                        bytes_to_fill(*block, refused.size, unit) <= left)
                        note(*block, "a hole that there is memory for");
                }
            }
        });
    return found;
}

}  // namespace yoke::test
