// Addresses of an arena: blocks fill extents, neighbours of a kind become a single block, and no address is given
// twice.
#include "core/memory/space.h"

#include <gtest/gtest.h>

#include <malloc.h>
#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <vector>

namespace yoke {
namespace {

constexpr uint64_t kUnit = 4096, kBase = 1 << 20;

class AddressSpace : public testing::Test {
protected:
    Block *take(uint64_t size)
    {
        EXPECT_TRUE(space.reserve());
        return space.take(size);
    }
    // Grows a range as an arena does: takes the addresses, maps the memory, returns the block.
    Block *grow(uint64_t size, uint64_t most_mapped = ~uint64_t{0})
    {
        EXPECT_TRUE(space.reserve());
        const Space::Growth growth = space.begin_growth(size, kUnit);
        if (!growth.gap) return nullptr;
        const uint64_t mapped = std::min(growth.gap->size, most_mapped / kUnit * kUnit);
        for (uint64_t at = 0; at < mapped; at += kUnit)
            EXPECT_TRUE(backed.emplace(growth.gap->address + at).second);
        return space.end_growth(growth, mapped, size);
    }
    // Takes a unit of memory out of a free block; returns false if no block has a whole unit.
    bool steal()
    {
        Block *found = nullptr;
        uint64_t address = 0;
        space.free().each(kUnit, [&](const Block &block) {
            address = (block.address + kUnit - 1) / kUnit * kUnit;
            if (!block.extent->is_range || address + kUnit > block.end()) return true;
            found = const_cast<Block *>(&block);
            return false;
        });
        if (!found) return false;
        EXPECT_TRUE(space.reserve());
        Block *const cut = space.cut_free(found, address, kUnit);
        EXPECT_EQ(cut->address, address);
        EXPECT_EQ(cut->size, kUnit);
        EXPECT_EQ(backed.erase(address), 1u);
        space.make_hole(cut);
        return true;
    }
    // Every invariant, block by block.
    void walk()
    {
        uint64_t used = 0, free = 0, holes = 0;
        for (const auto &extent : space.extents()) {
            uint64_t at = extent->address;
            const Block *last = nullptr;
            for (const Block *block = extent->first; block; block = block->behind) {
                ASSERT_EQ(block->address, at) << "a gap between blocks, or an overlap";
                ASSERT_GT(block->size, 0u);
                ASSERT_EQ(block->before, last);
                ASSERT_EQ(block->extent, extent.get());
                if (last) {
                    ASSERT_TRUE(block->state == BlockState::kUsed || block->state != last->state)
                        << "two neighbours of one kind";
                }
                (block->state == BlockState::kUsed   ? used
                 : block->state == BlockState::kFree ? free
                                                     : holes) += block->size;
                if (extent->is_range && block->state == BlockState::kHole) {
                    ASSERT_EQ(block->size % kUnit, 0u);
                    ASSERT_TRUE(backed.lower_bound(block->address) ==
                                backed.lower_bound(block->end()));
                }
                if (extent->is_range && block->state != BlockState::kHole) {
                    for (uint64_t unit = block->address / kUnit * kUnit; unit < block->end();
                         unit += kUnit) {
                        ASSERT_TRUE(backed.contains(unit)) << "no memory there";
                    }
                }
                at = block->end();
                last = block;
            }
            ASSERT_EQ(at, extent->end());
            ASSERT_EQ(extent->last, last);
        }
        ASSERT_EQ(used, space.used_bytes());
        ASSERT_EQ(free, space.free().bytes());
        ASSERT_EQ(holes, space.hole_bytes());
    }

    Space space;
    std::set<uint64_t> backed;  // units of ranges with memory
};

TEST_F(AddressSpace, ASegmentIsSplitAndBecomesOneAgain)
{
    Extent &segment = space.add(kBase, 10000, false);
    EXPECT_TRUE(space.is_idle(segment));
    Block *const a = take(1000), *const b = take(2000), *const c = take(7000);
    EXPECT_EQ(a->address, kBase);
    EXPECT_EQ(b->address, kBase + 1000);
    EXPECT_EQ(c->address, kBase + 3000);
    EXPECT_EQ(take(1), nullptr);
    walk();
    space.give(b);
    EXPECT_EQ(take(2000), b) << "the hole that fits";
    space.give(b);
    space.give(a);
    EXPECT_EQ(space.free().largest()->size, 3000u);
    walk();
    space.give(c);
    EXPECT_TRUE(space.is_idle(segment));
    walk();
    space.remove(segment);
    EXPECT_TRUE(space.extents().empty());
    EXPECT_TRUE(space.free().empty());
}

TEST_F(AddressSpace, ARangeGrowsBehindItsLastFreeBlock)
{
    space.add(kBase, 16 * kUnit, true);
    Block *const a = grow(kUnit + 1);
    EXPECT_EQ(a->address, kBase);
    EXPECT_EQ(backed.size(), 2u);
    Block *const b = grow(3 * kUnit);
    EXPECT_EQ(b->address, a->end()) << "the free end of the second unit serves";
    EXPECT_EQ(backed.size(), 5u);
    walk();
    EXPECT_EQ(grow(20 * kUnit), nullptr) << "beyond the range";
    space.give(a);
    space.give(b);
    walk();
    EXPECT_EQ(space.free().bytes(), 5 * kUnit);
}

TEST_F(AddressSpace, AHoleBetweenFreeBlocksIsFilledFirst)
{
    space.add(kBase, 64 * kUnit, true);
    Block *const a = grow(3 * kUnit), *const b = grow(kUnit);
    space.give(a);
    Block *const middle = space.cut_free(a, kBase + kUnit, kUnit);
    backed.erase(middle->address);
    space.make_hole(middle);
    walk();
    EXPECT_EQ(take(2 * kUnit), nullptr);
    Block *const again = grow(3 * kUnit);
    EXPECT_EQ(again->address, kBase) << "one unit of memory makes three";
    EXPECT_EQ(backed.size(), 4u);
    walk();
    space.give(again);
    space.give(b);
    walk();
}

TEST_F(AddressSpace, OfSeveralHolesTheOneIsFilledThatWantsTheLeastMemory)
{
    space.add(kBase, 64 * kUnit, true);
    std::vector<Block *> blocks;
    for (const uint64_t units : {1, 3, 1, 6, 1}) blocks.push_back(grow(units * kUnit));
    const auto make_hole = [&](Block *block, uint64_t address, uint64_t units) {
        space.give(block);
        EXPECT_TRUE(space.reserve());
        Block *const cut = space.cut_free(block, address, units * kUnit);
        for (uint64_t at = 0; at < cut->size; at += kUnit) backed.erase(cut->address + at);
        space.make_hole(cut);
    };
    make_hole(blocks[1], blocks[1]->address, 3);
    make_hole(blocks[3], blocks[3]->address + 2 * kUnit, 4);
    walk();
    Block *const block = grow(3 * kUnit);
    EXPECT_EQ(block->address, kBase + 5 * kUnit)
        << "two units are free in front of the second hole";
    EXPECT_EQ(backed.size(), 6u);
    walk();
}

TEST_F(AddressSpace, AHoleIsFilledBesideTheLargerOfItsFreeNeighbours)
{
    space.add(kBase, 64 * kUnit, true);
    Block *const a = grow(kUnit), *const b = grow(9 * kUnit), *const c = grow(6 * kUnit);
    Block *const d = grow(kUnit);
    space.give(b);
    Block *const middle = space.cut_free(b, kBase + 2 * kUnit, 8 * kUnit);
    for (uint64_t at = 0; at < middle->size; at += kUnit) backed.erase(middle->address + at);
    space.make_hole(middle);
    space.give(c);
    walk();
    Block *const again = grow(8 * kUnit);
    EXPECT_EQ(again->end(), d->address) << "six units lie behind the hole, one before";
    EXPECT_EQ(backed.size(), 11u);
    walk();
    for (Block *block : {a, d, again}) space.give(block);
    walk();
}

TEST_F(AddressSpace, WhatCouldNotBeMappedLeavesAHole)
{
    space.add(kBase, 16 * kUnit, true);
    Block *const a = grow(kUnit / 2);
    EXPECT_EQ(grow(4 * kUnit, 2 * kUnit), nullptr);
    walk();
    EXPECT_EQ(space.free().bytes(), 2 * kUnit + kUnit / 2) << "two units came, and serve others";
    EXPECT_EQ(grow(8 * kUnit, 0), nullptr);
    walk();
    space.give(a);
    EXPECT_EQ(space.used_bytes(), 0u);
}

TEST_F(AddressSpace, BlocksThatJoinLeaveTheirDescriptorsForOthers)
{
    space.add(kBase, 64 * kUnit, false);
    const auto come_and_go = [&] {
        Block *blocks[] = {take(kUnit), take(kUnit), take(kUnit)};
        for (const int i : {0, 2, 1}) space.give(blocks[i]);
        Extent &more = space.add(64 * kBase, kUnit, false);
        space.remove(more);
    };
    come_and_go();
    const size_t before = mallinfo2().uordblks;
    for (int i = 0; i < 10000; ++i) come_and_go();
    EXPECT_LE(mallinfo2().uordblks, before + (64 << 10));
}

TEST_F(AddressSpace, RandomRequestsKeepEveryInvariant)
{
    for (int seed = 0; seed < 30; ++seed) {
        std::mt19937_64 random(static_cast<uint64_t>(seed));
        Space &s = space;
        const uint64_t base = kBase * static_cast<uint64_t>(1 + seed) * 64;
        s.add(base, 64 * kUnit, true);
        s.add(base + 100 * kUnit, 10 * kUnit, false);
        std::vector<Block *> live;
        for (int step = 0; step < 400; ++step) {
            const uint64_t kind = random() % 16;
            if (kind < 8) {
                const uint64_t size = 64 * (1 + random() % (random() % 2 ? 8 : 300));
                Block *block = take(size);
                if (!block) block = grow(size, random() % 4 ? ~uint64_t{0} : random() % 8 * kUnit);
                if (block) {
                    ASSERT_EQ(block->size, size);
                    live.push_back(block);
                }
            } else if (kind < 14 && !live.empty()) {
                std::swap(live[random() % live.size()], live.back());
                s.give(live.back());
                live.pop_back();
            } else {
                steal();
            }
            if (step % 8 == 0) walk();
            std::map<uint64_t, uint64_t> taken;
            for (const Block *block : live)
                ASSERT_TRUE(taken.emplace(block->address, block->end()).second);
            uint64_t end = 0;
            for (const auto &[from, to] : taken) {
                ASSERT_GE(from, end);
                end = to;
            }
            if (HasFatalFailure()) return;
        }
        for (Block *block : live) s.give(block);
        walk();
        while (steal()) {
        }
        walk();
        while (!s.extents().empty()) {
            Extent &extent = *s.extents().back();
            ASSERT_TRUE(s.is_idle(extent));
            s.remove(extent);
        }
        ASSERT_TRUE(backed.empty());
        ASSERT_EQ(s.free().bytes() + s.hole_bytes() + s.used_bytes(), 0u);
    }
}

}  // namespace
}  // namespace yoke
