// Blocks freed by their address alone: core/memory/raw.cpp, page_table.cpp.
#include "core/memory/graph_pool.h"
#include "tests/core/expect_error.h"
#include "tests/core/memory/machine.h"

#include <cmath>
#include <random>
#include <thread>

namespace yoke {
namespace {

using test::expect_error;
using test::Machine;

void expect_no_live_block(void *pointer)
{
    expect_error(YOKE_E_VALUE, {"not an allocated block"}, [&] { raw_free(pointer); });
}

// Descriptors are split, joined and used for other addresses all the time; some blocks are not raw blocks.
TEST(RawBlocks, AreFoundByTheirAddressAndFreedOnce)
{
    Machine machine({.capacity = uint64_t{64} << 30});
    std::mt19937 random(5);
    std::uniform_real_distribution<double> magnitude(0, 22);
    std::vector<void *> raw, strange;
    std::vector<Block *> other;
    for (int step = 0; step < 20000; ++step) {
        const auto bytes = static_cast<uint64_t>(std::exp2(magnitude(random)));
        if (random() % 8 == 0) {
            other.push_back(allocate_block(machine.device, bytes, 0));
        } else {
            raw.push_back(raw_alloc(machine.device, bytes, nullptr));
        }
        if (raw.size() + other.size() < 600) continue;
        if (random() % 8 == 0 && !other.empty()) {
            std::swap(other[random() % other.size()], other.back());
            if (step % 16 == 0) expect_no_live_block(other.back()->data());
            free_block(machine.device, other.back());
            other.pop_back();
            continue;
        }
        std::swap(raw[random() % raw.size()], raw.back());
        void *const block = raw.back();
        raw.pop_back();
        if (random() % 4 == 0) {
            strange.push_back(block);
            if (strange.size() < 100) continue;
            std::thread([&] {
                for (void *each : strange) raw_free(each);
            }).join();
            strange.clear();
            continue;
        }
        raw_free(block);
        if (step % 16 == 0) expect_no_live_block(block);
    }
    for (void *block : strange) raw_free(block);
    for (void *block : raw) raw_free(block);
    for (void *block : raw) expect_no_live_block(block);
    for (Block *block : other) free_block(machine.device, block);
    EXPECT_EQ(memory_stats(machine.device).allocated, 0);
}

// A block gets smaller, so its former place in the page table goes to a larger block that begins in the same page.
// Another thread frees the small block, and has to search the page table.
TEST(RawBlocks, OfALesserSizeAreFoundBesideLargerOnes)
{
    Machine machine({});
    void *const before = raw_alloc(machine.device, 8192, nullptr);
    raw_free(before);
    thread_state().memory_cache->drain(&machine.device);
    void *const small = raw_alloc(machine.device, 64, nullptr);
    void *const large = raw_alloc(machine.device, 8192, nullptr);
    EXPECT_EQ(small, before);
    EXPECT_EQ(reinterpret_cast<uint64_t>(large) >> 12, reinterpret_cast<uint64_t>(small) >> 12);
    std::thread([&] {
        raw_free(small);
        raw_free(large);
    }).join();
    EXPECT_EQ(memory_stats(machine.device).allocated, 0);
}

// The page table has each size elsewhere.
TEST(RawBlocks, OfSeveralSizesBeginAtOneAddress)
{
    Machine machine({});
    void *begin = nullptr;
    for (const uint64_t bytes : {64, 8192, 64, 1 << 20, 512, 100000}) {
        void *const first = raw_alloc(machine.device, bytes, nullptr);
        void *const second = raw_alloc(machine.device, 64, nullptr);
        if (!begin) begin = first;
        EXPECT_EQ(first, begin);
        raw_free(first);
        expect_no_live_block(first);
        raw_free(second);
        thread_state().memory_cache->drain(&machine.device);
    }
}

// A thread frees another thread's block, at an address where a block of its own lay before.
TEST(RawBlocks, OfManyThreadsAreFreedByOthers)
{
    Machine machine({.capacity = uint64_t{64} << 30});
    std::atomic<void *> handed[64] = {};
    std::vector<std::thread> threads;
    for (unsigned seed = 0; seed < 4; ++seed)
        threads.emplace_back([&, seed] {
            std::mt19937 random(seed);
            for (int step = 0; step < 3000; ++step) {
                const uint64_t bytes = random() % 8 ? 1 + random() % 20000 : 3 << 20;
                void *const block = raw_alloc(machine.device, bytes, nullptr);
                raw_free(handed[random() % 64].exchange(block));
                if (step % 500 == 0) empty_cache(&machine.device);
            }
        });
    for (std::thread &thread : threads) thread.join();
    for (std::atomic<void *> &block : handed) raw_free(block);
    EXPECT_EQ(memory_stats(machine.device).allocated, 0);
}

TEST(RawBlocks, OfAGraphEndWithIt)
{
    Machine machine({});
    const Ref<GraphPool> pool = GraphPool::make(machine.device, 0);
    pool->serve_thread();
    void *const block = raw_alloc(machine.device, 100, nullptr);
    raw_free(block);
    pool->stop_serving_thread();
    pool->let_go();
    expect_no_live_block(block);
}

TEST(RawBlocks, WithoutCachingAreFoundToo)
{
    Machine machine({});
    set_caching(false);
    void *blocks[3];
    for (void *&block : blocks) block = raw_alloc(machine.device, 1000, nullptr);
    for (void *block : blocks) {
        raw_free(block);
        expect_no_live_block(block);
    }
    EXPECT_EQ(machine.hollow.memory().used(), 0u);
}

}  // namespace
}  // namespace yoke
