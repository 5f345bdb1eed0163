// Memory of a whole process: forks, threads, scratch of backends.
#include "core/memory/device_memory.h"
#include "core/memory/memory.h"
#include "core/select/select.h"
#include "tests/core/expect_error.h"
#include "tests/core/fake_backend.h"
#include "tests/core/fresh_process.h"

#include <thread>

namespace yoke {
namespace {

using test::expect_error;
using test::fake;

TEST(MemoryFork, AChildForgetsBlocksOfADeviceThatItLost)
{
    test::in_fresh_process([] {
        register_backend("fake", test::get_fake);
        Device &device = open_device("fake");
        set_caching(true);
        Block *block = allocate_block(device, 10000, 0);
        EXPECT_TRUE(test::passes_in_child([&] {
            free_block(device, block);
            empty_cache(nullptr);
            EXPECT_EQ(fake.frees, 0);
            expect_error(YOKE_E_FORKED, {"fake:0"}, [&] { allocate_block(device, 64, 0); });
        }));
        free_block(device, block);
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

TEST(MemoryBlocksOfThreads, TurningCachingOffReachesWhatOtherThreadsKeep)
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
        EXPECT_GT(memory_stats(device).reserved, 0);
        set_caching(false);
        EXPECT_EQ(memory_stats(device).reserved, 0);
        EXPECT_EQ(fake.held, 0);
        step = 2;
        worker.join();
    });
}

TEST(MemoryScratch, ABackendGetsScratchThroughTheHostTable)
{
    test::in_fresh_process([] {
        register_backend("fake", test::get_fake);
        Device &device = open_device("fake");
        set_caching(true);  // caching rounds sizes
        const yoke_host &host = detail::host_table();
        void *block = nullptr;
        EXPECT_EQ(host.scratch_alloc(device.handle, 1000, nullptr, 0, &block), YOKE_OK);
        EXPECT_EQ(memory_stats(device).allocated, 1024);
        host.scratch_free(device.handle, block, nullptr);
        EXPECT_EQ(memory_stats(device).allocated, 0);
        fake.capacity = 0;
        set_caching(false);
        EXPECT_EQ(host.scratch_alloc(device.handle, 1000, nullptr, YOKE_SCRATCH_OPTIONAL, &block),
                  YOKE_E_OOM);
        EXPECT_EQ(memory_of(device).counters().events(MemoryEvent::kOutOfMemory), 0);
        EXPECT_EQ(host.scratch_alloc(device.handle, 1000, nullptr, 0, &block), YOKE_E_OOM);
        expect_error(YOKE_E_OOM, {"softmax", "1000 bytes"},
                     [] { rethrow_backend_error(YOKE_E_OOM, "softmax"); });
    });
}

}  // namespace
}  // namespace yoke
