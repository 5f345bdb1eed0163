#include "core/memory/space.h"

#include <algorithm>

namespace yoke {

Block *Space::split(Block *block, uint64_t size) noexcept
{
    Block *const rest = slab_.take();
    block->has_place = false;  // the place depends on the size
    rest->address = block->address + size;
    rest->size = block->size - size;
    rest->extent = block->extent;
    rest->state = block->state;
    rest->freed_at = block->freed_at;
    rest->freed_behind = block->freed_behind;
    rest->before = block;
    rest->behind = block->behind;
    (rest->behind ? rest->behind->before : rest->extent->last) = rest;
    block->behind = rest;
    block->size = size;
    return rest;
}

void Space::absorb_behind(Block *block) noexcept
{
    Block *const gone = block->behind;
    block->size += gone->size;
    block->freed_at = std::max(block->freed_at, gone->freed_at);
    block->freed_behind = std::max(block->freed_behind, gone->freed_behind);
    block->behind = gone->behind;
    (block->behind ? block->behind->before : block->extent->last) = block;
    slab_.give(gone);
}

void Space::settle(Block *block, BlockState state) noexcept
{
    used_bytes_ -= block->size;
    FreeRuns &runs = runs_of(state);
    if (Block *const behind = block->behind; behind && behind->state == state) {
        runs.erase(behind);
        absorb_behind(block);
    }
    if (Block *const before = block->before; before && before->state == state) {
        runs.erase(before);
        absorb_behind(before);
        block = before;
    }
    block->state = state;
    runs.insert(block);
}

void Space::claim(Block *block) noexcept
{
    runs_of(block->state).erase(block);
    block->state = BlockState::kUsed;
    used_bytes_ += block->size;
}

Block *Space::cut_front(Block *block, uint64_t size) noexcept
{
    claim(block);
    if (block->size > size) give(split(block, size));
    return block;
}

Block *Space::take(uint64_t size) noexcept
{
    Block *const block = free_.find(size);
    return block ? cut_front(block, size) : nullptr;
}

Block *Space::take_any(uint64_t size) noexcept
{
    Block *found = nullptr;
    free_.each(size, [&found](Block &block) {
        found = &block;
        return false;
    });
    return found ? cut_front(found, size) : nullptr;
}

Block *Space::take_freed_before(uint64_t size, uint64_t fence) noexcept
{
    Block *found = nullptr;
    free_.each(size, [&](Block &block) {
        if (block.freed_behind >= fence) return true;
        found = &block;
        return false;
    });
    return found ? cut_front(found, size) : nullptr;
}

Block *Space::take_first(Extent &extent, uint64_t size) noexcept
{
    return cut_front(extent.first, size);
}

void Space::give(Block *block) noexcept
{
    settle(block, BlockState::kFree);
}

void Space::make_hole(Block *block) noexcept
{
    settle(block, BlockState::kHole);
}

Block *Space::cut_free(Block *block, uint64_t address, uint64_t bytes) noexcept
{
    claim(block);
    Block *cut = block;
    if (address > block->address) {
        cut = split(block, address - block->address);
        give(block);
    }
    if (cut->size > bytes) give(split(cut, bytes));
    return cut;
}

Extent &Space::add(uint64_t address, uint64_t bytes, bool is_range)
{
    if (!slab_.reserve(kMostTaken)) throw std::bad_alloc();
    auto extent = std::make_unique<Extent>(Extent{address, bytes, is_range, nullptr, nullptr});
    const auto place = std::ranges::lower_bound(extents_, address, {},
                                                [](const auto &each) { return each->address; });
    Extent &added = **extents_.insert(place, std::move(extent));
    Block *const block = slab_.take();
    block->address = address;
    block->size = bytes;
    block->extent = &added;
    added.first = added.last = block;
    used_bytes_ += bytes;
    settle(block, is_range ? BlockState::kHole : BlockState::kFree);
    return added;
}

bool Space::is_idle(const Extent &extent) const noexcept
{
    const Block *const first = extent.first;
    return !first->behind &&
           first->state == (extent.is_range ? BlockState::kHole : BlockState::kFree);
}

void Space::remove(Extent &extent) noexcept
{
    runs_of(extent.first->state).erase(extent.first);
    slab_.give(extent.first);
    std::erase_if(extents_, [&extent](const auto &each) { return each.get() == &extent; });
}

Space::Growth Space::begin_growth(uint64_t size, uint64_t unit) noexcept
{
    constexpr int kMostLooks = 256;  // looks at holes left by chunks; filling such a hole is rare
    struct Gap {
        Block *hole = nullptr;
        uint64_t bytes = ~uint64_t{0};
        bool is_at_end = false;  // gap at the end of the hole, else at its begin
    } best;
    int looks = 0;
    const auto free_size = [](const Block *block) {
        return block && block->state == BlockState::kFree ? block->size : 0;
    };
    const auto look = [&](const Block &hole) {
        const uint64_t before = free_size(hole.before), behind = free_size(hole.behind);
        const uint64_t beside = std::max(before, behind);
        if (beside >= size) return true;  // find() missed this free block; it needs no growth
        Gap gap{const_cast<Block *>(&hole), (size - beside + unit - 1) / unit * unit,
                behind > before};
        if (gap.bytes > hole.size) {
            if (before + hole.size + behind < size) return true;
            gap.bytes = hole.size;
        }
        if (gap.bytes < best.bytes) best = gap;
        return ++looks < kMostLooks;
    };
    holes_.each(unit, look);
    for (const auto &extent : extents_)
        if (extent->last->state == BlockState::kHole) look(*extent->last);
    if (!best.hole) return {};
    Block *const hole = best.hole;
    claim(hole);
    Growth growth;
    growth.gap = hole;
    if (hole->size > best.bytes && best.is_at_end) {
        growth.gap = split(hole, hole->size - best.bytes);
        make_hole(hole);
    } else if (hole->size > best.bytes) {
        make_hole(split(hole, best.bytes));
    }
    if (free_size(growth.gap->before)) claim(growth.before = growth.gap->before);
    const uint64_t has = best.bytes + (growth.before ? growth.before->size : 0);
    if (has < size) claim(growth.behind = growth.gap->behind);
    return growth;
}

Block *Space::end_growth(const Growth &growth, uint64_t mapped, uint64_t size) noexcept
{
    Block *const gap = growth.gap;
    if (mapped < gap->size) {
        if (mapped == 0) {
            make_hole(gap);
        } else {
            make_hole(split(gap, mapped));
            give(gap);
        }
        if (growth.before) give(growth.before);
        if (growth.behind) give(growth.behind);
        return nullptr;
    }
    Block *const block = growth.before ? growth.before : gap;
    if (growth.before) absorb_behind(block);
    if (growth.behind) absorb_behind(block);
    if (block->size > size) give(split(block, size));
    return block;
}

}  // namespace yoke
