// Blocks of device memory over a fake device that counts calls. The device has plain memory alone.
#include "core/memory/memory.h"
#include "core/base/thread_state.h"
#include "core/memory/device_memory.h"
#include "core/memory/magazines.h"
#include "tests/core/expect_error.h"
#include "tests/core/fake_backend.h"
#include "tests/core/memory/kept.h"

#include <random>
#include <thread>

namespace yoke {
namespace {

using test::expect_error;
using test::fake;

// A device of its own for each test, outside the registry.
class MemoryBlocks : public testing::Test {
protected:
    MemoryBlocks() : was_caching_(is_caching())
    {
        fake.capacity = int64_t{1} << 40;
        fake.alloc_status = YOKE_OK;
        fake.allocs = fake.frees = fake.waits = 0;
        fake.held = 0;
        table = test::fake_table("fake");
        device.backend = &table;
        device.handle = &table;
        static int32_t next_ordinal = 10;
        device.ordinal = next_ordinal++;
        device.name = "fake:0";
        device.info.alignment = 64;
        set_caching(true);
    }
    ~MemoryBlocks() override
    {
        empty_cache(&device);
        delete device.memory.exchange(nullptr);
        set_caching(was_caching_);
        EXPECT_EQ(fake.held, 0) << "a block was lost";
    }
    Block *alloc(uint64_t bytes, uint8_t lane = 0) { return allocate_block(device, bytes, lane); }
    void free(Block *block) { free_block(device, block); }

    yoke_backend &table = test::make_kept<yoke_backend>();
    Device &device = test::make_kept<Device>();

private:
    bool was_caching_;
};

TEST_F(MemoryBlocks, NothingIsAskedForZeroBytes)
{
    EXPECT_EQ(alloc(0), nullptr);
    free(nullptr);
    EXPECT_EQ(fake.allocs, 0);
}

TEST_F(MemoryBlocks, AFreedBlockServesTheNextRequestOfItsClass)
{
    for (const uint64_t bytes : {100u, 4096u, 5000u, 3000000u}) {
        Block *block = alloc(bytes);
        EXPECT_GE(block->capacity, bytes);
        const int allocs = fake.allocs;
        free(block);
        EXPECT_EQ(alloc(bytes), block);
        EXPECT_EQ(fake.allocs, allocs);
        free(block);
    }
    EXPECT_EQ(fake.frees, 0);
}

TEST_F(MemoryBlocks, ABlockOfOneStreamNeverServesAnother)
{
    for (const uint64_t bytes : {256u, 100000u}) {
        Block *first = alloc(bytes, 1);
        free(first);
        Block *second = alloc(bytes, 2);
        EXPECT_NE(second, first);
        free(second);
        EXPECT_EQ(alloc(bytes, 1), first);
        EXPECT_EQ(alloc(bytes, 2), second);
        free(first);
        free(second);
    }
}

TEST_F(MemoryBlocks, FiguresAreExactThroughAllCaches)
{
    std::mt19937 random(7);
    std::vector<Block *> live;
    int64_t allocated = 0, peak = 0;
    for (int step = 0; step < 20000; ++step) {
        if (live.empty() || random() % 2) {
            const uint64_t bytes = 1 + random() % (random() % 8 ? 4096 : 300000);
            live.push_back(alloc(bytes));
            EXPECT_EQ(live.back()->capacity, rounded_size(bytes, 64));
            allocated += static_cast<int64_t>(live.back()->capacity);
            peak = std::max(peak, allocated);
        } else {
            std::swap(live[random() % live.size()], live.back());
            allocated -= static_cast<int64_t>(live.back()->capacity);
            free(live.back());
            live.pop_back();
        }
        const MemoryStats stats = memory_stats(device);
        ASSERT_EQ(stats.allocated, allocated);
        ASSERT_EQ(stats.max_allocated, peak);
        ASSERT_EQ(stats.reserved, fake.held);
        ASSERT_GE(stats.reserved, stats.allocated);
    }
    for (Block *block : live) free(block);
    EXPECT_EQ(memory_stats(device).allocated, 0);
    reset_peak_memory_stats(device);
    EXPECT_EQ(memory_stats(device).max_allocated, 0);
    EXPECT_EQ(memory_stats(device).max_reserved, fake.held);
}

TEST_F(MemoryBlocks, EmptyCacheGivesIdleMemoryBackAndKeepsLiveBlocks)
{
    Block *live = alloc(1000), *small = alloc(64), *large = alloc(30 << 20);
    free(small);
    free(large);
    EXPECT_EQ(memory_stats(device).reserved, 32 << 20);
    empty_cache(&device);
    EXPECT_EQ(memory_stats(device).reserved, 2 << 20) << "a segment goes back as a whole";
    EXPECT_EQ(fake.held, 2 << 20);
    EXPECT_GT(fake.waits, 0) << "work on the blocks must have finished";
    free(live);
    empty_cache(&device);
    EXPECT_EQ(memory_stats(device).reserved, 0);
}

TEST_F(MemoryBlocks, NeighboursServeALargerRequestTogether)
{
    Block *first = alloc(5 << 20), *second = alloc(5 << 20), *third = alloc(5 << 20);
    const void *data = first->data();
    EXPECT_EQ(second->data(), static_cast<char *>(first->data()) + (5 << 20));
    free(first);
    free(third);
    free(second);
    Block *both = alloc(14 << 20);
    EXPECT_EQ(both->data(), data);
    EXPECT_EQ(fake.allocs, 1);
    free(both);
}

TEST_F(MemoryBlocks, WithoutCachingEveryFreeReachesTheBackend)
{
    set_caching(false);
    EXPECT_FALSE(is_caching());
    for (int i = 1; i <= 3; ++i) {
        Block *block = alloc(128);
        EXPECT_EQ(memory_stats(device).reserved, memory_stats(device).allocated);
        free(block);
        EXPECT_EQ(fake.frees, i);
        EXPECT_EQ(fake.waits, i);
    }
    EXPECT_EQ(memory_stats(device).reserved, 0);
}

TEST_F(MemoryBlocks, TheEndOfAThreadWithoutCachingWaitsForNothing)
{
    set_caching(false);
    int waits = 0;
    std::thread([&] {
        free(alloc(1000));
        waits = fake.waits;
    }).join();
    EXPECT_EQ(fake.waits, waits);
}

// The other thread is often amid a free when caching goes off.
TEST_F(MemoryBlocks, SwitchingCachingOffBesideFreesLeavesNothingReserved)
{
    for (int round = 0; round < 40; ++round) {
        set_caching(true);
        std::atomic<bool> stops{false}, has_stopped{false}, ends{false};
        std::atomic<int> frees{0};
        std::thread other([&] {
            for (; !stops; ++frees) free(alloc(1000));
            has_stopped = true;
            has_stopped.notify_all();
            ends.wait(false);
        });
        while (frees < 1000 * (round % 7)) std::this_thread::yield();
        set_caching(false);
        memory_of(device).give_back_idle();  // the switch does so for devices of the registry
        stops = true;
        has_stopped.wait(false);
        EXPECT_EQ(memory_stats(device).reserved, 0);
        ends = true;
        ends.notify_all();
        other.join();
    }
}

TEST_F(MemoryBlocks, WithoutCachingABlockHasTheVerySize)
{
    set_caching(false);
    Block *small = alloc(100), *large = alloc(5000);
    EXPECT_EQ(fake.held, 100 + 5000);
    EXPECT_EQ(memory_stats(device).allocated, 100 + 5000);
    set_caching(true);
    free(small);  // no other block keeps the memory
    EXPECT_EQ(fake.held, 5000);
    free(large);
    EXPECT_EQ(fake.held, 0);
}

TEST_F(MemoryBlocks, WithoutCachingMemoryOfBeforeGoesBackWhenItIsWhole)
{
    Block *first = alloc(3 << 20), *second = alloc(3 << 20), *small = alloc(64);
    std::thread([&] { free_block(device, allocate_block(device, 128, 0)); }).join();
    set_caching(false);
    EXPECT_EQ(memory_stats(device).reserved, 22 << 20);
    free(first);
    EXPECT_EQ(memory_stats(device).reserved, 22 << 20) << "the other half lives";
    free(second);
    EXPECT_EQ(memory_stats(device).reserved, 2 << 20);
    free(small);
    EXPECT_EQ(memory_stats(device).reserved, 0);
    EXPECT_EQ(fake.held, 0);
}

TEST_F(MemoryBlocks, AShortageGivesWaitingBlocksBackAndTriesAgain)
{
    fake.capacity = 24 << 20;
    free(alloc(12 << 20));
    free(alloc(64));
    Block *block = alloc(23 << 20);  // fits only after all waiting memory is gone
    EXPECT_EQ(fake.held, 23 << 20);
    free(block);
}

TEST_F(MemoryBlocks, WhatAnotherThreadKeepsGoesBeforeARequestIsRefused)
{
    fake.capacity = 3 << 20;
    std::atomic<int> step{0};
    std::thread keeper([&] {
        free_block(device, allocate_block(device, 256, 0));
        step = 1;
        while (step != 2) std::this_thread::yield();
    });
    while (step != 1) std::this_thread::yield();
    Block *block = alloc(5 << 19);
    EXPECT_NE(block, nullptr);
    free(block);
    step = 2;
    keeper.join();
}

TEST_F(MemoryBlocks, OutOfMemoryTellsWhatIsHeldAndLosesNothing)
{
    fake.capacity = 4 << 20;
    Block *block = alloc(3 << 20);
    expect_error(YOKE_E_OOM,
                 {"fake:0", "2.00 MiB (2097152 bytes)", "3.00 MiB allocated", "3.00 MiB reserved",
                  "1.00 MiB of 4.00 MiB are free", "smaller batch", "the fake is full"},
                 [&] { alloc(2 << 20); });
    EXPECT_EQ(memory_stats(device).allocated, 3 << 20);
    free(block);
    free(alloc(2 << 20));
}

TEST_F(MemoryBlocks, ALargeBlockThatASmallSegmentHadRoomForGoesBackThere)
{
    fake.capacity = 2 << 20;
    Block *small = alloc(64);
    for (int i = 0; i < 3; ++i) {
        Block *large = alloc(3 << 19);
        EXPECT_EQ(fake.held, 2 << 20);
        free(large);
    }
    free(small);
}

TEST_F(MemoryBlocks, ASegmentIsNoLargerThanThereIsRoomFor)
{
    fake.capacity = 3 << 20;
    Block *block = alloc(2 << 20), *small = alloc(1 << 20);
    EXPECT_EQ(fake.held, 3 << 20);
    free(block);
    free(small);
}

TEST_F(MemoryBlocks, ASizeThatNoMachineHasIsOutOfMemory)
{
    for (const uint64_t bytes : {kMaxBlock + 1, UINT64_MAX, kMaxBlock})
        expect_error(YOKE_E_OOM, {"fake:0", std::to_string(bytes).c_str()}, [&] { alloc(bytes); });
}

TEST_F(MemoryBlocks, AnyOtherFailureOfTheBackendIsPassedOn)
{
    fake.alloc_status = YOKE_E_DEVICE_LOST;
    expect_error(YOKE_E_DEVICE_LOST, {"fake:0", "told to fail"}, [&] { alloc(64); });
    EXPECT_EQ(memory_stats(device).allocated, 0);
    EXPECT_EQ(memory_stats(device).reserved, 0);
}

TEST_F(MemoryBlocks, AThreadThatEndsLeavesItsBlocksToOthers)
{
    uint64_t address = 0;
    std::thread([&] {
        Block *block = alloc(256);
        address = block->address;
        free(block);
    }).join();
    Block *block = alloc(256);
    EXPECT_EQ(block->address, address);
    free(block);
}

TEST_F(MemoryBlocks, AThreadKeepsOnlySoMuchForItself)
{
    constexpr int kCount = 1500;
    std::vector<Block *> blocks;
    for (int i = 0; i < kCount; ++i) blocks.push_back(alloc(4096));
    for (Block *block : blocks) free(block);
    // Blocks beyond the limit lie in the arena, where other threads find them.
    constexpr uint64_t kMost = ThreadCache::kMaxBytes / 2;
    const auto kept = static_cast<int>(kMost / 4096);
    EXPECT_EQ(thread_state().memory_cache->bytes_of(device), kMost);
    std::thread([&] {
        const int before = fake.allocs;
        std::vector<Block *> again;
        for (int i = 0; i < kCount - kept; ++i) again.push_back(alloc(4096));
        EXPECT_EQ(fake.allocs, before);
        for (Block *block : again) free(block);
    }).join();
}

TEST_F(MemoryBlocks, AThreadThatOnlyFreesKeepsNothing)
{
    std::vector<Block *> blocks;
    for (int i = 0; i < 100; ++i) blocks.push_back(alloc(512));
    std::thread([&] {
        for (Block *block : blocks) free(block);
        ThreadCache *cache = thread_state().memory_cache;
        EXPECT_EQ(cache ? cache->bytes_of(device) : 0, 0u);
    }).join();
}

TEST_F(MemoryBlocks, ManyThreadsNeverShareALiveBlock)
{
    std::vector<std::thread> threads;
    std::atomic<int> clashes{0}, running{4};
    for (int id = 1; id <= 4; ++id)
        threads.emplace_back([&, id] {
            std::mt19937 random(static_cast<unsigned>(id));
            std::vector<Block *> live;
            const auto owner = [](Block *block) { return static_cast<int *>(block->data()); };
            for (int step = 0; step < 4000; ++step) {
                if (live.size() < 20 || random() % 2) {
                    live.push_back(allocate_block(device, 4 + random() % 9000, 0));
                    *owner(live.back()) = id * 100000 + step;
                } else {
                    std::swap(live[random() % live.size()], live.back());
                    clashes += *owner(live.back()) / 100000 != id;
                    free(live.back());
                    live.pop_back();
                }
            }
            for (Block *block : live) free(block);
            --running;
        });
    // Empties the threads' magazines meanwhile.
    while (running) empty_cache(&device);
    for (std::thread &thread : threads) thread.join();
    EXPECT_EQ(clashes, 0);
    EXPECT_EQ(memory_stats(device).allocated, 0);
}

TEST_F(MemoryBlocks, RawBlocksRememberTheirSize)
{
    void *block = raw_alloc(device, 1000, nullptr), *empty = raw_alloc(device, 0, nullptr);
    EXPECT_NE(empty, nullptr);
    EXPECT_EQ(memory_stats(device).allocated, 1024 + 64);
    raw_free(block);
    raw_free(empty);
    raw_free(nullptr);
    EXPECT_EQ(memory_stats(device).allocated, 0);
}

TEST_F(MemoryBlocks, ARawBlockIsFreedOnce)
{
    void *block = raw_alloc(device, 64, nullptr);
    raw_free(block);
    expect_error(YOKE_E_VALUE, {"not an allocated block", "once"}, [&] { raw_free(block); });
    int other = 0;
    expect_error(YOKE_E_VALUE, {"not an allocated block"}, [&] { raw_free(&other); });
    EXPECT_EQ(memory_stats(device).allocated, 0);
}

}  // namespace
}  // namespace yoke
