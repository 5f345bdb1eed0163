// The ladder: steps before a request for memory is refused, each rung in its turn. core/memory/ladder.cpp.
#include "core/memory/ladder.h"
#include "core/memory/pinned.h"
#include "core/memory/relief.h"
#include "core/memory/seldom_asked.h"
#include "tests/core/expect_error.h"
#include "tests/core/memory/machine.h"
#include "tests/core/memory/units.h"

#include <thread>

namespace yoke {
namespace {

using test::expect_error;
using test::kGiB;
using test::kKiB;
using test::kMiB;

TEST(Rungs, AThreadsOwnSmallBlocksServeItsLargerRequest)
{
    for (const auto serve : {allocate_block, try_allocate_block}) {
        test::Machine machine({});
        Device &device = machine.device;
        std::vector<Block *> small;
        for (int i = 0; i < 64; ++i) small.push_back(allocate_block(device, 32 * kKiB, 0));
        for (Block *block : small) free_block(device, block);
        const int64_t reserved = memory_stats(device).reserved;
        Block *block = serve(device, kMiB, 0);
        EXPECT_EQ(memory_of(device).counters().events(MemoryEvent::kMagazine), 1);
        EXPECT_EQ(memory_stats(device).reserved, reserved);
        free_block(device, block);
    }
}

TEST(Rungs, PinnedMemoryThatWaitsGoesBackBeforeARequestIsRefused)
{
    test::Machine machine({.capacity = kGiB});
    free_pinned(allocate_pinned(machine.device, 1000));
    EXPECT_EQ(machine.hollow.calls(HollowEntry::host_free), 0);
    expect_error(YOKE_E_OOM, {}, [&] { allocate_block(machine.device, 2 * kGiB, 0); });
    EXPECT_EQ(machine.hollow.calls(HollowEntry::host_free), 1);
}

TEST(Rungs, AWaitForTheDeviceServesBeforeAnyMemoryGoesBack)
{
    test::Machine machine({.capacity = 128 * kMiB, .runs_at_once = false});
    Device &device = machine.device;
    const Ref<Stream> one = make_stream(device, 0), two = make_stream(device, 0);
    Block *blocks[4];
    for (Block *&block : blocks) {
        block = machine.alloc(32 * kMiB, one->lane);
        machine.use(*block, one->lane);
    }
    for (int i : {0, 2}) free_block(device, blocks[i]);
    Block *large = machine.alloc(64 * kMiB, two->lane);
    MemoryCounters &counters = memory_of(device).counters();
    EXPECT_EQ(counters.events(MemoryEvent::kSettle), 1);
    EXPECT_EQ(counters.events(MemoryEvent::kSynchronize), 1);
    EXPECT_EQ(counters.events(MemoryEvent::kGiveBack), 0);
    EXPECT_EQ(machine.hollow.calls(HollowEntry::vmm_destroy), 0);
    for (Block *block : {blocks[1], blocks[3], large}) free_block(device, block);
}

// The first free run of the bin is too small, and so is the run that a request checks first.
TEST(Rungs, ARunThatWasMissedServesBeforeFreshMemory)
{
    test::Machine machine({});
    Device &device = machine.device;
    const auto alloc = [&](uint64_t kib) { return allocate_block(device, kib * kKiB, 0); };
    Block *blocks[] = {alloc(32900), alloc(2048), alloc(34000), alloc(2048)};
    free_block(device, blocks[0]);
    free_block(device, blocks[2]);
    const int64_t reserved = memory_stats(device).reserved;
    Block *block = alloc(33500);
    EXPECT_EQ(memory_stats(device).reserved, reserved);
    for (Block *each : {blocks[1], blocks[3], block}) free_block(device, each);
}

TEST(Rungs, AStreamsMemoryServesThoseThatWaitedForItBeforeFreshMemory)
{
    test::Machine machine({.runs_at_once = false});
    Device &device = machine.device;
    const Ref<Stream> one = make_stream(device, 0), two = make_stream(device, 0);
    Block *block = machine.alloc(14 * kMiB, one->lane);
    machine.use(*block, one->lane);
    free_block(device, block);
    wait_fence(device, two->lane.id, *fence_behind(device, one->lane.id));
    const int64_t reserved = memory_stats(device).reserved;
    block = machine.alloc(14 * kMiB, two->lane);
    machine.use(*block, two->lane);
    EXPECT_EQ(memory_stats(device).reserved, reserved);
    EXPECT_EQ(memory_of(device).counters().events(MemoryEvent::kKnown), 1);
    free_block(device, block);
}

// Without the cache a refused request is tried again once memory went back.
TEST(Rungs, AGroupWithoutRoomRefusesEachFurtherTry)
{
    SeldomAsked group;
    int asked = 0;
    bool has_room = false;
    const auto would_end = [&](uint64_t bytes) {
        return group.would_end(bytes, [&](uint64_t) { return ++asked, !has_room; });
    };
    for (int i = 0; i < 15; ++i) EXPECT_FALSE(would_end(kMiB));
    EXPECT_EQ(asked, 0);
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(would_end(kMiB));
    EXPECT_EQ(asked, 5);
    has_room = true;
    for (int i = 0; i < 10; ++i) EXPECT_FALSE(would_end(kMiB));
    EXPECT_EQ(asked, 6);
}

TEST(Rungs, WhatOtherThreadsKeepServesBeforeAnyWait)
{
    test::Machine machine({.capacity = 2 * kMiB, .runs_at_once = false});
    Device &device = machine.device;
    std::atomic<bool> has_freed{false}, ends{false};
    std::thread other([&] {
        Block *blocks[64];
        for (Block *&block : blocks) block = allocate_block(device, 32 * kKiB, 0);
        for (Block *block : blocks) free_block(device, block);
        has_freed = true;
        while (!ends) std::this_thread::yield();
    });
    while (!has_freed) std::this_thread::yield();
    Block *block = allocate_block(device, kMiB, 0);
    const MemoryCounters &counters = memory_of(device).counters();
    EXPECT_EQ(counters.events(MemoryEvent::kAllMagazines), 1);
    EXPECT_EQ(counters.events(MemoryEvent::kSynchronize), 0);
    free_block(device, block);
    ends = true;
    other.join();
}

// Host program asked for memory.
struct Helper {
    explicit Helper(Device &of, ReliefKind of_kind) : device(of), kind(of_kind)
    {
        id = add_relief(kind, help, this, nullptr);
    }
    ~Helper() { remove_relief(kind, id); }
    Helper(const Helper &) = delete;
    Helper &operator=(const Helper &) = delete;
    static int32_t help(void *self, yoke_device *, int64_t)
    {
        Helper &helper = *static_cast<Helper *>(self);
        if (++helper.asked == helper.frees_at)
            free_block(helper.device, std::exchange(helper.block, nullptr));
        return 1;
    }
    Device &device;
    const ReliefKind kind;
    Block *block = nullptr;
    int asked = 0, frees_at = 1;
    int64_t id = 0;
};

TEST(Rungs, TheCollectorIsAskedBeforeFunctionsOfTheProgram)
{
    test::Machine machine({.capacity = kGiB});
    Device &device = machine.device;
    Helper collector(device, ReliefKind::kCollector), program(device, ReliefKind::kCallback);
    collector.block = allocate_block(device, 700 * kMiB, 0);
    Block *block = allocate_block(device, 600 * kMiB, 0);
    EXPECT_EQ(collector.asked, 1);
    EXPECT_EQ(program.asked, 0);
    EXPECT_EQ(memory_of(device).counters().events(MemoryEvent::kCollector), 1);
    free_block(device, block);
}

TEST(Rungs, FunctionsOfTheProgramAreAskedThreeTimesAtMost)
{
    for (const int frees_at : {1, 3, 4}) {
        test::Machine machine({.capacity = kGiB});
        Device &device = machine.device;
        Helper program(device, ReliefKind::kCallback);
        program.frees_at = frees_at;
        program.block = allocate_block(device, 700 * kMiB, 0);
        const auto request = [&] { free_block(device, allocate_block(device, 600 * kMiB, 0)); };
        if (frees_at <= Ladder::kAsks)
            request();
        else
            expect_error(YOKE_E_OOM, {}, request);
        EXPECT_EQ(program.asked, std::min(frees_at, Ladder::kAsks));
        EXPECT_EQ(memory_of(device).counters().events(MemoryEvent::kCallback),
                  frees_at <= Ladder::kAsks);
        free_block(device, program.block);
    }
}

}  // namespace
}  // namespace yoke
