// Free blocks by size, beside a slow model: sets of (size, address).
#include "core/memory/free_runs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <vector>

namespace yoke {
namespace {

class FreeBlocks : public testing::Test {
protected:
    Block *add(uint64_t address, uint64_t size)
    {
        auto &block = blocks[address] = std::make_unique<Block>();
        block->address = address;
        block->size = size;
        runs.insert(block.get());
        return block.get();
    }
    void remove(Block *block)
    {
        runs.erase(block);
        blocks.erase(block->address);
    }
    bool any_fits(uint64_t size) const
    {
        return std::ranges::any_of(blocks,
                                   [size](const auto &each) { return each.second->size >= size; });
    }

    std::map<uint64_t, std::unique_ptr<Block>> blocks;
    FreeRuns runs;
};

TEST_F(FreeBlocks, TheLowestAddressOfABinIsGiven)
{
    add(3000, 512);
    add(1000, 512);
    add(2000, 512);
    EXPECT_EQ(runs.find(512)->address, 1000u);
    EXPECT_EQ(runs.find(500)->address, 1000u);
    EXPECT_EQ(runs.find(513), nullptr);
    EXPECT_EQ(runs.bytes(), 1536u);
    remove(runs.find(512));
    EXPECT_EQ(runs.find(512)->address, 2000u);
    remove(blocks.at(3000).get());
    remove(blocks.at(2000).get());
    EXPECT_EQ(runs.find(1), nullptr);
    EXPECT_EQ(runs.largest(), nullptr);
    EXPECT_TRUE(runs.empty());
}

TEST_F(FreeBlocks, WhatIsFoundFitsAndIsAtMostTwoStepsLarger)
{
    for (uint64_t size = 1; size < (uint64_t{1} << 40); size += 1 + size / 37)
        add(blocks.size() + 1, size);
    for (uint64_t size = 1; size < (uint64_t{1} << 40); size += 1 + size / 41) {
        const Block *found = runs.find(size);
        if (!found) {
            EXPECT_FALSE(any_fits(size + size / 8)) << size;
            continue;
        }
        EXPECT_GE(found->size, size);
        EXPECT_LE(found->size, size + size / 4 + 16) << size;
    }
}

TEST_F(FreeBlocks, EndsOfTheRangeHaveBinsOfTheirOwn)
{
    for (const uint64_t size :
         {uint64_t{1}, uint64_t{15}, uint64_t{16}, uint64_t{17}, uint64_t{1} << 62, ~uint64_t{0}}) {
        Block *const block = add(size, size);
        EXPECT_EQ(runs.find(size), block);
        EXPECT_EQ(runs.largest(), block);
    }
}

TEST_F(FreeBlocks, RandomOnesAreAsTheModelHasThem)
{
    for (int seed = 0; seed < 8; ++seed) {
        std::mt19937_64 random(static_cast<uint64_t>(seed));
        std::vector<Block *> all;
        for (int step = 0; step < 1500; ++step) {
            if (all.empty() || random() % 5 < 3) {
                uint64_t address = 0;
                do address = random() % 1000000;
                while (blocks.contains(address));
                const uint64_t size = 64 + (random() % 5000 >> (random() % 12)) * 64;
                all.push_back(add(address, size));
            } else {
                std::swap(all[random() % all.size()], all.back());
                remove(all.back());
                all.pop_back();
            }
            const uint64_t size = 64 * (1 + random() % 4000);
            if (const Block *found = runs.find(size)) {
                EXPECT_GE(found->size, size);
                // A block of the same size at a lower address would have been the right one.
                for (const auto &[address, each] : blocks) {
                    if (each->size == found->size) {
                        EXPECT_GE(address, found->address);
                    }
                }
            } else {
                EXPECT_FALSE(any_fits(size + size / 8));
            }
            uint64_t bytes = 0, most = 0;
            for (const auto &each : blocks) {
                bytes += each.second->size;
                most = std::max(most, each.second->size);
            }
            ASSERT_EQ(runs.bytes(), bytes);
            if (!blocks.empty()) {
                ASSERT_LE(most - runs.largest()->size, most / 16 + 1);
            }
            size_t seen = 0;
            runs.each(size, [&](const Block &block) {
                EXPECT_GE(block.size, size);
                return ++seen > 0;
            });
            ASSERT_EQ(seen,
                      static_cast<size_t>(std::ranges::count_if(
                          blocks, [size](const auto &each) { return each.second->size >= size; })));
        }
        while (!blocks.empty()) remove(blocks.begin()->second.get());
        ASSERT_TRUE(runs.empty());
    }
}

TEST_F(FreeBlocks, DeepHeapsAreWalkedWithoutAStack)
{
    for (uint64_t i = 100000; i > 0; --i) add(i, 64);
    uint64_t seen = 0;
    runs.each(64, [&](const Block &) { return ++seen < 90000; });
    EXPECT_EQ(seen, 90000u);
    for (uint64_t i = 1; i <= 100000; ++i) {
        ASSERT_EQ(runs.find(64)->address, i);
        runs.erase(runs.find(64));
    }
}

TEST(BlockDescriptors, AreUsedAgain)
{
    BlockSlab slab;
    std::vector<Block *> taken;
    ASSERT_TRUE(slab.reserve(1000));
    for (int i = 0; i < 1000; ++i) taken.push_back(slab.take());
    std::ranges::sort(taken);
    EXPECT_EQ(std::ranges::adjacent_find(taken), taken.end()) << "one was given twice";
    for (Block *block : taken) slab.give(block);
    ASSERT_TRUE(slab.reserve(1000));
    for (int i = 0; i < 1000; ++i) EXPECT_TRUE(std::ranges::binary_search(taken, slab.take()));
}

}  // namespace
}  // namespace yoke
