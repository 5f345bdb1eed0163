// Arenas of several streams that share the memory of a device: core/memory/growth.cpp, ladder.cpp.
#include "tests/core/memory/arenas.h"
#include "core/memory/graph_pool.h"
#include "tests/core/expect_error.h"
#include "tests/core/heard.h"
#include "tests/core/memory/conf.h"
#include "tests/core/memory/units.h"

#include <random>

namespace yoke {
namespace {

using test::Arenas;
using test::Conf;
using test::expect_error;
using test::kGiB;
using test::kMiB;

TEST_P(Arenas, MemoryThatIsIdleOnOneStreamServesAnother)
{
    Block *block = freed(100 * kMiB, *one);
    machine.hollow.work().finish();
    block = machine.alloc(90 * kMiB, two->lane);
    EXPECT_LE(reserved(), static_cast<int64_t>(100 * kMiB));
    EXPECT_EQ(memory_of(device).counters().events(MemoryEvent::kSteal), GetParam() ? 1 : 0)
        << "chunks are taken, segments go back";
    free_block(device, block);
}

TEST_P(Arenas, MemoryThatWaitedForAnotherStreamServesThatStream)
{
    Block *block = freed(100 * kMiB, *two);
    machine.hollow.work().finish();
    block = machine.alloc(90 * kMiB, two->lane);
    EXPECT_LE(reserved(), static_cast<int64_t>(100 * kMiB));
    free_block(device, block);
}

TEST_P(Arenas, WhatAStreamStillUsesServesNoOther)
{
    Block *block = freed(100 * kMiB, *one);
    Block *other = machine.alloc(100 * kMiB, two->lane);
    EXPECT_GE(reserved(), static_cast<int64_t>(200 * kMiB));
    Block *again = machine.alloc(100 * kMiB, one->lane);
    EXPECT_EQ(again, block) << "its own stream has its order";
    free_block(device, other);
    free_block(device, again);
}

TEST_P(Arenas, BeforeARequestIsRefusedItsStreamWaitsForOthers)
{
    Block *block = freed(900 * kMiB, *one);
    Block *other = machine.alloc(800 * kMiB, two->lane);
    EXPECT_FALSE(machine.hollow.work().is_idle()) << "nobody waited on the host";
    EXPECT_EQ(memory_of(device).counters().events(MemoryEvent::kSteal), 1);
    machine.use(*other, two->lane);
    free_block(device, other);
    block = machine.alloc(900 * kMiB, one->lane);
    free_block(device, block);
}

TEST(Ranges, ARangeThatIsRefusedIsAskedForInTheSizeOfTheRequest)
{
    test::Machine machine({.capacity = kGiB});
    machine.hollow.fail_at(HollowEntry::vmm_reserve, 1, YOKE_E_OOM);
    Block *block = allocate_block(machine.device, 100 * kMiB, 0);
    EXPECT_EQ(machine.hollow.calls(HollowEntry::alloc), 0) << "it became a segment";
    free_block(machine.device, block);
}

TEST_P(Arenas, ABlockThatOthersUsedServesAgainOnceTheirWorkIsDone)
{
    const Conf conf("ask_fences:True");
    Block *block = freed(300 * kMiB, *two);
    Block *second = machine.alloc(300 * kMiB, one->lane);
    EXPECT_NE(second->address, block->address);
    machine.hollow.work().finish();
    Block *third = machine.alloc(300 * kMiB, one->lane);
    EXPECT_LE(reserved(), static_cast<int64_t>(600 * kMiB));
    free_block(device, second);
    free_block(device, third);
}

// The default: whether that work is done makes no difference to addresses.
TEST_P(Arenas, ABlockThatOthersUsedServesAgainBehindAWaitOfItsStream)
{
    for (const bool is_done : {false, true}) {
        Block *block = freed(300 * kMiB, *two);
        if (is_done) machine.hollow.work().finish();
        Block *second = machine.alloc(300 * kMiB, one->lane);
        EXPECT_EQ(second, block);
        EXPECT_EQ(machine.hollow.work().is_idle(), is_done) << "nobody waits on the host";
        machine.use(*second, one->lane);
        free_block(device, second);
    }
}

TEST_P(Arenas, ABlockThatOthersUsedIsWaitedForBeforeARequestIsRefused)
{
    Block *block = freed(600 * kMiB, *two);
    block = machine.alloc(600 * kMiB, one->lane);
    EXPECT_FALSE(machine.hollow.work().is_idle());
    free_block(device, block);
}

// Two threads wait for the device at once: the first began before the work, the second behind the work.
TEST_P(Arenas, AWaitSettlesWhatWasFreeWhenItBegan)
{
    Growth &growth = memory_of(device).growth();
    Block *first = machine.alloc(3 * kMiB, one->lane);  // the arena is there
    const auto mark = [&] {
        const Growth::Hold hold(growth);
        return growth.mark_wait();
    };
    const auto end_wait = [&](const std::vector<Arena::Mark> &marks) {
        const Growth::Hold hold(growth);
        growth.note_waited(marks);
        growth.give_back_idle();
    };
    const std::vector<Arena::Mark> before = mark();
    freed(100 * kMiB, *one);
    const std::vector<Arena::Mark> behind = mark();
    end_wait(before);
    EXPECT_GE(reserved(), static_cast<int64_t>(100 * kMiB)) << "its work is not done";
    machine.hollow.work().finish();
    end_wait(behind);
    EXPECT_LT(reserved(), static_cast<int64_t>(100 * kMiB));
    free_block(device, first);
}

TEST_P(Arenas, SmallBlocksThatWaitServeALargeRequestBeforeItIsRefused)
{
    std::vector<Block *> small;
    for (int i = 0; i < 1000; ++i) small.push_back(allocate_block(device, kMiB, 0));
    for (Block *block : small) free_block(device, block);
    Block *large = allocate_block(device, 1000 * kMiB, 0);
    free_block(device, large);
}

TEST_P(Arenas, AFreeRunOfTheOtherKindServesBeforeARequestIsRefused)
{
    // The whole device, in runs that are no whole chunk or segment.
    std::vector<Block *> pinned;
    while (reserved() < static_cast<int64_t>(kGiB)) {
        pinned.push_back(allocate_block(device, 1200 << 10, 0));
        pinned.push_back(allocate_block(device, 900 << 10, 0));
    }
    for (size_t i = 0; i < pinned.size(); i += 4)
        free_block(device, std::exchange(pinned[i], nullptr));
    std::vector<Block *> served;
    const size_t freed = (pinned.size() + 3) / 4;
    for (size_t i = 0; i < freed; ++i) served.push_back(allocate_block(device, 1000 << 10, 0));
    for (Block *block : served) free_block(device, block);
    for (Block *block : pinned) free_block(device, block);
}

TEST(Losses, MemoryThatCannotGoBackIsTold)
{
    for (const auto &[entry, name] : {std::pair(HollowEntry::vmm_unmap, "vmm_unmap"),
                                      {HollowEntry::vmm_destroy, "vmm_destroy"},
                                      {HollowEntry::free, "free"}}) {
        test::Machine machine({.has_virtual_memory = entry != HollowEntry::free});
        free_block(machine.device, allocate_block(machine.device, 100 * kMiB, 0));
        machine.hollow.fail_at(entry, 1, YOKE_E_INTERNAL);
        const test::Heard heard;
        empty_cache(&machine.device);
        ASSERT_EQ(heard.lines.size(), 1u);
        EXPECT_NE(heard.lines[0].find("could not be released: " + std::string(name)),
                  std::string::npos)
            << heard.lines[0];
    }
}

// The wait began before the graph's end. Later replays are not behind the wait.
TEST_P(Arenas, AWaitThatBeganBeforeAGraphsEndSettlesNothingOfTheGraph)
{
    Growth &growth = memory_of(device).growth();
    const Ref<GraphPool> pool = GraphPool::make(device, one->lane.id);
    pool->serve_thread();
    Block *block = machine.alloc(100 * kMiB, one->lane);
    const uint64_t address = block->address;
    free_block(device, block);
    pool->stop_serving_thread();
    const auto mark = [&] {
        const Growth::Hold hold(growth);
        return growth.mark_wait();
    }();
    machine.hollow.use(one->lane.native, address, 100 * kMiB);  // a replay
    pool->let_go();
    {
        const Growth::Hold hold(growth);
        growth.note_waited(mark);
        growth.give_back_idle();
    }
    EXPECT_GE(reserved(), static_cast<int64_t>(100 * kMiB)) << "the replay's work is not done";
    machine.hollow.work().finish();
}

// Each replay uses memory freed by the capture.
TEST_P(Arenas, MemoryOfAGraphIsNotSettledByAWaitBeforeItsLastReplay)
{
    const Ref<GraphPool> pool = GraphPool::make(device, one->lane.id);
    pool->serve_thread();
    Block *block = machine.alloc(100 * kMiB, one->lane);
    const uint64_t address = block->address;
    free_block(device, block);
    pool->stop_serving_thread();
    empty_cache(&device);
    machine.hollow.use(one->lane.native, address, 100 * kMiB);  // a replay
    pool->let_go();
    block = machine.alloc(100 * kMiB, two->lane);
    empty_cache(&device);
    free_block(device, block);
}

TEST_P(Arenas, ACaptureIsLentNothingThatOthersGetAgain)
{
    Block *block = machine.alloc(900 * kMiB, two->lane);
    machine.use(*block, two->lane);
    free_block(device, block);
    const Ref<GraphPool> pool = GraphPool::make(device, one->lane.id);
    pool->serve_thread();
    expect_error(YOKE_E_OOM, {"hollow:0"}, [&] { machine.alloc(300 * kMiB, one->lane); });
    machine.hollow.work().finish();
    block = machine.alloc(300 * kMiB, one->lane);
    EXPECT_TRUE(pool->owns(*block));
    free_block(device, block);
    pool->stop_serving_thread();
    pool->let_go();
}

TEST_P(Arenas, ConstantShapesNeedNoCallOfTheDriver)
{
    std::mt19937 random(3);
    std::vector<uint64_t> sizes;
    for (int i = 0; i < 60; ++i) sizes.push_back(1 + random() % (i % 3 ? 4096 : 20 * kMiB));
    const auto pass = [&] {
        std::vector<Block *> live;
        for (const uint64_t size : sizes) {
            live.push_back(allocate_block(device, size, 0));
            if (live.size() % 3 == 0) {
                free_block(device, live[live.size() / 2]);
                live.erase(live.begin() + static_cast<int64_t>(live.size() / 2));
            }
        }
        for (Block *block : live) free_block(device, block);
    };
    pass();
    pass();
    const int64_t calls = machine.hollow.calls();
    for (int i = 0; i < 5; ++i) pass();
    EXPECT_EQ(machine.hollow.calls(), calls);
}

TEST_P(Arenas, AFailureOfAnyEntryLosesNothing)
{
    for (const HollowEntry entry :
         {HollowEntry::alloc, HollowEntry::vmm_reserve, HollowEntry::vmm_create,
          HollowEntry::vmm_map, HollowEntry::vmm_unmap, HollowEntry::event_record,
          HollowEntry::event_query, HollowEntry::event_wait, HollowEntry::event_create})
        for (int nth = 1; nth <= 12; ++nth) {
            machine.hollow.fail_at(entry, nth, nth % 2 ? YOKE_E_OOM : YOKE_E_INTERNAL);
            std::vector<Block *> live;
            for (int i = 0; i < 8; ++i) try {
                    const Lane &lane = i % 2 ? one->lane : two->lane;
                    live.push_back(machine.alloc((i + 1) * 7 * kMiB, lane));
                    machine.use(*live.back(), lane);
                    if (i % 3 == 0) {
                        free_block(device, live.back(), i % 2 ? 0 : lane_bit(one->lane.id));
                        live.pop_back();
                    }
                } catch (const Error &error) {
                    EXPECT_EQ(error.status(), nth % 2 ? YOKE_E_OOM : YOKE_E_INTERNAL)
                        << error.what();
                }
            for (Block *block : live) free_block(device, block);
            EXPECT_EQ(memory_stats(device).allocated, 0);
            machine.hollow.work().finish();
            machine.hollow.fail_at(entry, 0, YOKE_OK);
            if (nth % 4 == 0) empty_cache(&device);
            EXPECT_EQ(reserved(), static_cast<int64_t>(machine.hollow.memory().used()));
        }
}

// Work and requests of four streams at random, in an order of the work that is drawn too.
TEST_P(Arenas, NoBytesAreUsedBeforeTheirLastUseIsOrderedAhead)
{
    std::vector<Ref<Stream>> streams;
    for (int i = 0; i < 4; ++i) streams.push_back(make_stream(device, 0));
    struct Live {
        Block *block;
        uint16_t uses;
    };
    std::vector<Live> live;
    std::mt19937 random(11);
    const auto any = [&]() -> const Lane & { return streams[random() % streams.size()]->lane; };
    int refused = 0;
    for (int step = 0; step < 6000; ++step) {
        const auto kind = random() % 16;
        if (kind < 6 || live.empty()) {
            const uint64_t bytes = 1 + random() % (random() % 3 ? 200 << 10 : 60 * kMiB);
            const Lane &lane = any();
            try {
                live.push_back({machine.alloc(bytes, lane), 0});
                machine.use(*live.back().block, lane);
            } catch (const Error &error) {
                ASSERT_EQ(error.status(), YOKE_E_OOM) << error.what();
                ++refused;
            }
        } else if (kind < 11) {
            std::swap(live[random() % live.size()], live.back());
            free_block(device, live.back().block, live.back().uses);
            live.pop_back();
        } else if (kind < 13) {
            Live &some = live[random() % live.size()];
            const Lane &lane = any();
            machine.use(*some.block, lane);
            if (lane.id != some.block->lane) some.uses |= lane_bit(lane.id);
        } else if (kind == 13 && random() % 40 == 0) {
            empty_cache(&device);
        } else {
            const Lane &lane = any();
            for (uint64_t i = random() % 6; i > 0; --i) machine.hollow.work().run_step(lane.native);
        }
        ASSERT_EQ(reserved(), static_cast<int64_t>(machine.hollow.memory().used()));
        ASSERT_TRUE(machine.ordering.races().empty()) << machine.ordering.races().front();
    }
    EXPECT_GT(refused, 0) << "memory never ran out";
    for (const Live &each : live) free_block(device, each.block, each.uses);
    EXPECT_EQ(memory_stats(device).allocated, 0);
}

INSTANTIATE_TEST_SUITE_P(Hollow, Arenas, testing::Bool(),
                         [](const auto &each) { return each.param ? "Virtual" : "Plain"; });

}  // namespace
}  // namespace yoke
