// Blocks of device memory over a fake device that counts what reaches it.
#include "core/memory/blocks.h"
#include "core/base/thread_state.h"
#include "core/memory/memory.h"
#include "core/select/select.h"
#include "tests/core/expect_error.h"
#include "tests/core/fake_backend.h"
#include "tests/core/fresh_process.h"

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
        device.ordinal = 3;
        device.name = "fake:0";
        device.info.alignment = 64;
        set_caching(true);
    }
    ~MemoryBlocks() override
    {
        empty_cache(&device);
        if (void *cache = thread_state().memory_cache)
            static_cast<ThreadCache *>(cache)->slots[device.ordinal].device = nullptr;
        delete device.memory.load();
        set_caching(was_caching_);
        EXPECT_EQ(fake.held, 0) << "a block was lost";
    }
    void *alloc(uint64_t bytes, uint8_t lane = 0)
    {
        return allocate_block(device, bytes, lane, &capacity);
    }
    void free(void *block, uint64_t bytes, uint8_t lane = 0)
    {
        free_block(device, block, class_size(bytes, device.info.alignment), lane);
    }

    yoke_backend table;
    Device device;
    uint64_t capacity = 0;

private:
    bool was_caching_;
};

TEST(MemoryClasses, EveryClassHoldsItsRequestsAndWastesAtMostAnEighth)
{
    for (const uint64_t alignment : {1u, 64u, 512u, 4096u})
        for (uint64_t bytes = 1; bytes < (uint64_t{1} << 61); bytes += 1 + bytes / 97) {
            const uint64_t size = class_size(bytes, alignment);
            EXPECT_GE(size, bytes);
            EXPECT_EQ(size % alignment, 0u);
            EXPECT_EQ(index_size(class_index(size)), size) << bytes << " aligned to " << alignment;
            const uint64_t step = std::max<uint64_t>({64, alignment, bytes / 8 + 1});
            EXPECT_LT(size - bytes, step) << bytes;
        }
    EXPECT_EQ(class_size(kMaxBlock, 64), kMaxBlock);
    EXPECT_LT(class_index(kMaxBlock), kClasses);
}

TEST(MemoryClasses, ClassesGrowWithTheirNumber)
{
    for (int index = 1; index < kClasses - 1; ++index) {
        EXPECT_GT(index_size(index), index_size(index - 1));
        EXPECT_EQ(class_index(index_size(index)), index);
    }
}

TEST_F(MemoryBlocks, NothingIsAskedForZeroBytes)
{
    EXPECT_EQ(alloc(0), nullptr);
    EXPECT_EQ(capacity, 0u);
    free_block(device, nullptr, 0, 0);
    EXPECT_EQ(fake.allocs, 0);
}

TEST_F(MemoryBlocks, AFreedBlockServesTheNextRequestOfItsClass)
{
    for (const uint64_t bytes : {100u, 4096u, 5000u, 3000000u}) {
        void *block = alloc(bytes);
        EXPECT_GE(capacity, bytes);
        const int allocs = fake.allocs;
        free(block, bytes);
        EXPECT_EQ(alloc(bytes), block);
        EXPECT_EQ(fake.allocs, allocs);
        free(block, bytes);
    }
    EXPECT_EQ(fake.frees, 0);
}

TEST_F(MemoryBlocks, ABlockOfOneStreamNeverServesAnother)
{
    for (const uint64_t bytes : {256u, 100000u}) {
        void *first = alloc(bytes, 1);
        free(first, bytes, 1);
        void *second = alloc(bytes, 2);
        EXPECT_NE(second, first);
        free(second, bytes, 2);
        EXPECT_EQ(alloc(bytes, 1), first);
        EXPECT_EQ(alloc(bytes, 2), second);
        free(first, bytes, 1);
        free(second, bytes, 2);
    }
}

TEST_F(MemoryBlocks, FiguresAreExactThroughAllCaches)
{
    std::mt19937 random(7);
    std::vector<std::pair<void *, uint64_t>> live;
    int64_t allocated = 0, peak = 0;
    for (int step = 0; step < 20000; ++step) {
        if (live.empty() || random() % 2) {
            const uint64_t bytes = 1 + random() % (random() % 8 ? 4096 : 300000);
            live.emplace_back(alloc(bytes), capacity);
            allocated += static_cast<int64_t>(capacity);
            peak = std::max(peak, allocated);
        } else {
            std::swap(live[random() % live.size()], live.back());
            free_block(device, live.back().first, live.back().second, 0);
            allocated -= static_cast<int64_t>(live.back().second);
            live.pop_back();
        }
        const MemoryStats stats = memory_stats(device);
        ASSERT_EQ(stats.allocated, allocated);
        ASSERT_EQ(stats.max_allocated, peak);
        ASSERT_EQ(stats.reserved, fake.held);
        ASSERT_GE(stats.reserved, stats.allocated);
    }
    for (const auto &[block, size] : live) free_block(device, block, size, 0);
    EXPECT_EQ(memory_stats(device).allocated, 0);
    reset_peak_memory_stats(device);
    EXPECT_EQ(memory_stats(device).max_allocated, 0);
    EXPECT_EQ(memory_stats(device).max_reserved, fake.held);
}

TEST_F(MemoryBlocks, EmptyCacheGivesEveryWaitingBlockBackAndKeepsLiveOnes)
{
    void *live = alloc(1000);
    void *small = alloc(64), *large = alloc(1 << 20);
    free(small, 64);
    free(large, 1 << 20);
    EXPECT_GT(memory_stats(device).reserved, 1 << 20);
    empty_cache(&device);
    EXPECT_EQ(memory_stats(device).reserved, 1024);
    EXPECT_EQ(fake.held, 1024);
    EXPECT_GT(fake.waits, 0) << "work on the blocks must have finished";
    free(live, 1000);
}

TEST_F(MemoryBlocks, WithoutCachingEveryFreeReachesTheBackend)
{
    set_caching(false);
    EXPECT_FALSE(is_caching());
    for (int i = 1; i <= 3; ++i) {
        void *block = alloc(128);
        EXPECT_EQ(memory_stats(device).reserved, memory_stats(device).allocated);
        free(block, 128);
        EXPECT_EQ(fake.frees, i);
        EXPECT_EQ(fake.waits, i);
    }
    EXPECT_EQ(memory_stats(device).reserved, 0);
}

TEST_F(MemoryBlocks, WithoutCachingABlockHasTheVerySize)
{
    set_caching(false);
    void *small = alloc(100), *large = alloc(5000), *even = alloc(128);
    EXPECT_EQ(fake.held, 100 + 5000 + 128);
    EXPECT_EQ(memory_stats(device).allocated, 100 + 5000 + 128);
    // With caching again, those that are of no class are not kept for who asks for their class.
    set_caching(true);
    free_block(device, small, 100, 0);
    free_block(device, large, 5000, 0);
    free_block(device, even, 128, 0);
    EXPECT_EQ(fake.held, 128);
    EXPECT_EQ(alloc(120), even);
    free(even, 120);
}

TEST_F(MemoryBlocks, AShortageGivesWaitingBlocksBackAndTriesAgain)
{
    fake.capacity = 1 << 20;
    void *block = alloc(600 << 10);
    free(block, 600 << 10);
    void *small = alloc(64);
    free(small, 64);
    block = alloc(1000 << 10);  // fits only once all that waits is gone
    EXPECT_EQ(fake.frees, 2);
    free(block, 1000 << 10);
}

TEST_F(MemoryBlocks, OutOfMemoryTellsWhatIsHeldAndLosesNothing)
{
    fake.capacity = 4 << 20;
    void *block = alloc(3 << 20);
    expect_error(YOKE_E_OOM,
                 {"fake:0", "2.00 MiB (2097152 bytes)", "3.00 MiB allocated", "3.00 MiB reserved",
                  "1.00 MiB of 4.00 MiB are free", "smaller batch", "the fake is full"},
                 [&] { alloc(2 << 20); });
    EXPECT_EQ(capacity, 0u);
    EXPECT_EQ(memory_stats(device).allocated, 3 << 20);
    free(block, 3 << 20);
    free(alloc(2 << 20), 2 << 20);
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
    void *block = nullptr;
    std::thread([&] {
        block = alloc(256);
        free(block, 256);
    }).join();
    EXPECT_EQ(alloc(256), block);
    free(block, 256);
}

TEST_F(MemoryBlocks, AThreadKeepsOnlySoMuchForItself)
{
    std::vector<void *> blocks;
    for (int i = 0; i < 1000; ++i) blocks.push_back(alloc(4096));
    for (void *block : blocks) free(block, 4096);
    // What does not fit waits in the device's own lists, where other threads find it.
    int reused = 0;
    std::thread([&] {
        const int before = fake.allocs;
        std::vector<void *> again;
        for (int i = 0; i < 1000; ++i) again.push_back(alloc(4096));
        reused = 1000 - (fake.allocs - before);
        for (void *block : again) free(block, 4096);
    }).join();
    EXPECT_EQ(reused, 1000 - static_cast<int>(ThreadCache::kMaxBytes / 4096));
}

TEST_F(MemoryBlocks, ManyThreadsNeverShareALiveBlock)
{
    std::vector<std::thread> threads;
    std::atomic<int> clashes{0};
    for (int id = 1; id <= 4; ++id)
        threads.emplace_back([&, id] {
            std::mt19937 random(static_cast<unsigned>(id));
            std::vector<std::pair<int *, uint64_t>> live;
            for (int step = 0; step < 4000; ++step) {
                if (live.size() < 20 || random() % 2) {
                    uint64_t size = 0;
                    void *block = allocate_block(device, 4 + random() % 9000, 0, &size);
                    live.emplace_back(static_cast<int *>(block), size);
                    *live.back().first = id * 100000 + step;
                } else {
                    std::swap(live[random() % live.size()], live.back());
                    clashes += *live.back().first / 100000 != id;
                    free_block(device, live.back().first, live.back().second, 0);
                    live.pop_back();
                }
            }
            for (auto &[block, size] : live) free_block(device, block, size, 0);
        });
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
    expect_error(YOKE_E_VALUE, {"no live block", "once"}, [&] { raw_free(block); });
    int other = 0;
    expect_error(YOKE_E_VALUE, {"no live block"}, [&] { raw_free(&other); });
    EXPECT_EQ(memory_stats(device).allocated, 0);
}

TEST(MemoryFork, AChildForgetsBlocksOfADeviceThatItLost)
{
    test::in_fresh_process([] {
        register_backend("fake", test::get_fake);
        Device &device = open_device("fake");
        set_caching(true);
        uint64_t size = 0;
        void *block = allocate_block(device, 10000, 0, &size);
        EXPECT_TRUE(test::passes_in_child([&] {
            free_block(device, block, size, 0);
            empty_cache(nullptr);
            EXPECT_EQ(fake.frees, 0);
            uint64_t other = 0;
            expect_error(YOKE_E_FORKED, {"fake:0"}, [&] { allocate_block(device, 64, 0, &other); });
        }));
        free_block(device, block, size, 0);
        EXPECT_EQ(memory_stats(device).allocated, 0);
    });
}

TEST(MemoryFork, AForkWhileOthersAllocateLeavesNoLockBehind)
{
    test::in_fresh_process([] {
        register_backend("fake", test::get_fake);
        Device &device = open_device("fake");
        device.host = true;  // stands for the CPU, which a child goes on using
        set_caching(true);
        std::atomic<bool> stop{false};
        const auto churn = [&] {
            while (!stop) raw_free(raw_alloc(device, 100000, nullptr));
        };
        std::thread first(churn), second(churn);
        for (int i = 0; i < 50; ++i)
            EXPECT_TRUE(test::passes_in_child([&] {
                for (int n = 0; n < 10; ++n) raw_free(raw_alloc(device, 100000, nullptr));
            }));
        stop = true;
        first.join();
        second.join();
    });
}

TEST(MemoryBlocksOfThreads, AThreadThatEndsAfterCachingWasTurnedOffGivesItsBlocksBack)
{
    test::in_fresh_process([] {
        register_backend("fake", test::get_fake);
        Device &device = open_device("fake");
        set_caching(true);
        std::atomic<int> step{0};
        std::thread worker([&] {
            for (int i = 0; i < 10; ++i) raw_free(raw_alloc(device, 1000, nullptr));
            step = 1;
            while (step != 2) std::this_thread::yield();
        });
        while (step != 1) std::this_thread::yield();
        set_caching(false);
        EXPECT_GT(memory_stats(device).reserved, 0) << "the worker keeps a block";
        step = 2;
        worker.join();
        EXPECT_EQ(memory_stats(device).reserved, 0);
        EXPECT_EQ(fake.held, 0);
    });
}

TEST(MemoryScratch, ABackendGetsScratchThroughTheHostTable)
{
    test::in_fresh_process([] {
        register_backend("fake", test::get_fake);
        Device &device = open_device("fake");
        set_caching(true);  // with which sizes are rounded
        const yoke_host &host = detail::host_table();
        void *block = nullptr;
        EXPECT_EQ(host.scratch_alloc(device.handle, 1000, nullptr, &block), YOKE_OK);
        EXPECT_EQ(memory_stats(device).allocated, 1024);
        host.scratch_free(device.handle, block, nullptr);
        EXPECT_EQ(memory_stats(device).allocated, 0);
        fake.capacity = 0;
        set_caching(false);
        EXPECT_EQ(host.scratch_alloc(device.handle, 1000, nullptr, &block), YOKE_E_OOM);
        expect_error(YOKE_E_OOM, {"softmax", "1000 bytes"},
                     [] { rethrow_backend_error(YOKE_E_OOM, "softmax"); });
    });
}

}  // namespace
}  // namespace yoke
