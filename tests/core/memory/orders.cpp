// Orders between streams that the allocator knows: fences, events of scripts, waits. core/memory/guards.h, ladder.h.
#include "core/backend/registry.h"
#include "core/device/kinds.h"
#include "core/memory/guards.h"
#include "tests/core/expect_error.h"
#include "tests/core/fresh_process.h"
#include "tests/core/memory/arenas.h"

#include <random>
#include <thread>

namespace yoke {
namespace {

using test::expect_error;
using test::kGiB;
using test::kKiB;
using test::kMiB;

using Orders = test::Arenas;

// A script makes a stream wait for another stream. Memory that was free there by then needs no other wait, if memory
// runs out.
TEST_P(Orders, WhatAStreamHasWaitedForServesIt)
{
    const auto waits = [&] { return machine.hollow.calls(HollowEntry::event_wait); };
    Block *late = machine.alloc(200 * kMiB, one->lane);
    Block *between = machine.alloc(2 * kMiB, one->lane);  // keeps the two runs apart
    Block *early = freed(600 * kMiB, *one);
    const Ref<Event> event = make_event(false);
    record_event(*event, *one);
    machine.use(*late, one->lane);
    wait_event(*two, *event);
    free_block(device, late);
    const int64_t before = waits(), had = reserved();
    Block *known = machine.alloc(500 * kMiB, two->lane);  // more than the device has left
    EXPECT_EQ(reserved(), had);
    EXPECT_EQ(waits(), before);
    EXPECT_EQ(memory_of(device).counters().events(MemoryEvent::kSteal), 1);
    EXPECT_FALSE(machine.hollow.work().is_idle());
    Block *unknown = machine.alloc(150 * kMiB, two->lane);
    EXPECT_GT(reserved(), had) << "freed behind the event";
    for (Block *block : {known, unknown}) {
        machine.use(*block, two->lane);
        free_block(device, block);
    }
    early = machine.alloc(100 * kMiB, one->lane);
    free_block(device, early);
    free_block(device, between);
}

TEST_P(Orders, AWaitOfTheCoreIsKnownToo)
{
    for (const auto serve : {allocate_block, try_allocate_block}) {
        Block *block = freed(600 * kMiB, *one);
        const Ref<Fence> fence = fence_behind(device, one->lane.id);
        wait_fence(device, two->lane.id, *fence);
        const int64_t waits = machine.hollow.calls(HollowEntry::event_wait);
        block = serve(device, 500 * kMiB, two->lane.id);
        ASSERT_NE(block, nullptr);
        EXPECT_EQ(machine.hollow.calls(HollowEntry::event_wait), waits);
        EXPECT_FALSE(machine.hollow.work().is_idle());
        free_block(device, block);
        machine.hollow.work().finish();
        empty_cache(&device);
    }
}

// No fence can be put behind the second stream's work, so the host waits for all that used the block.
TEST_P(Orders, WithoutAFenceGuardsAreWaitedForToo)
{
    const Ref<Stream> three = make_stream(device, 0);
    Block *block = machine.alloc(kMiB, one->lane);
    for (const Ref<Stream> &stream : {one, two, three}) machine.use(*block, stream->lane);
    add_guard(block->guards, fence_behind(device, three->lane.id));
    machine.hollow.fail_at(HollowEntry::event_record, 1, YOKE_E_INTERNAL);
    free_block(device, block, lane_bit(two->lane.id));
    block = machine.alloc(kMiB, one->lane);
    free_block(device, block);
}

TEST_P(Orders, ABlockWithoutGuardsIsFreeAtOnce)
{
    Block *const block = machine.alloc(300 * kMiB, one->lane);
    free_block(device, block, lane_bit(one->lane.id));
    EXPECT_EQ(machine.alloc(300 * kMiB, one->lane), block);
    free_block(device, block);
}

// Two threads free behind fences of one stream, and either comes first.
TEST_P(Orders, TheLaterFenceOfAStreamIsWaitedForWhateverTheirOrder)
{
    for (const bool has_later_first : {true, false}) {
        Block *first = machine.alloc(300 * kMiB, one->lane);
        Block *second = machine.alloc(2 * kMiB, one->lane);
        machine.use(*second, two->lane);
        add_guard(second->guards, fence_behind(device, two->lane.id));
        machine.use(*first, two->lane);
        add_guard(first->guards, fence_behind(device, two->lane.id));
        Block *const inner[] = {first, second}, *const outer[] = {second, first};
        for (Block *block : has_later_first ? inner : outer)
            free_block(device, block, lane_bit(one->lane.id));
        Block *again = machine.alloc(300 * kMiB, one->lane);
        EXPECT_EQ(again, first);
        free_block(device, again);
        machine.hollow.work().finish();
    }
}

TEST_P(Orders, AnEventOfAScriptIsWaitedForAndEndsWithItsHandle)
{
    Ref<Event> event = make_event(false);
    synchronize(*event);  // never recorded, so there is no wait
    EXPECT_EQ(machine.hollow.calls(HollowEntry::event_synchronize), 0);
    freed(kMiB, *one);
    record_event(*event, *one);
    synchronize(*event);
    EXPECT_EQ(machine.hollow.calls(HollowEntry::event_synchronize), 1);
    EXPECT_TRUE(machine.hollow.work().is_idle());
    event = nullptr;
    EXPECT_EQ(machine.hollow.calls(HollowEntry::event_destroy), 1);
}

// The block lies in the first stream's arena. Work of the second stream still uses the block at its release.
TEST(Lent, ASmallBlockIsInNoMagazineOfItsArenasStream)
{
    test::Machine machine({.capacity = 2 * kMiB, .runs_at_once = false});
    Device &device = machine.device;
    const Ref<Stream> one = make_stream(device, 0), two = make_stream(device, 0);
    std::vector<Block *> blocks;
    for (int i = 0; i < 32; ++i) blocks.push_back(machine.alloc(64 * kKiB, one->lane));
    for (size_t i = 0; i < 32; i += 2) free_block(device, blocks[i]);
    Block *lent = machine.alloc(64 * kKiB, two->lane);
    EXPECT_EQ(lent->arena->lane, one->lane.id);
    machine.use(*lent, two->lane);
    free_block(device, lent);
    for (size_t i = 0; i < 32; i += 2) blocks[i] = machine.alloc(64 * kKiB, one->lane);
    for (Block *block : blocks) free_block(device, block);
}

// An event of a script is recorded on another stream while memory waits for its former record.
TEST_P(Orders, AnEventThatIsRecordedAgainStillGuardsWhatItDid)
{
    const Ref<Event> event = make_event(false);
    Block *block = machine.alloc(300 * kMiB, one->lane);
    machine.use(*block, two->lane);
    record_event(*event, *two);
    add_guard(block->guards, Ref<Fence>::share(event->fence));
    const Ref<Stream> three = make_stream(device, 0);
    for (int i = 0; i < 2; ++i) {  // the wait of the new stream may fail at first
        machine.hollow.fail_at(HollowEntry::event_wait, i == 0, YOKE_E_INTERNAL);
        if (i == 0)
            expect_error(YOKE_E_INTERNAL, {"event_wait"}, [&] { record_event(*event, *three); });
        else
            record_event(*event, *three);
    }
    free_block(device, block, lane_bit(one->lane.id));
    block = machine.alloc(300 * kMiB, one->lane);
    free_block(device, block);
}

// An optional request waits for no work: the kernel can do without the memory.
TEST_P(Orders, AnOptionalRequestTakesWhatIsAtHandAlone)
{
    const int64_t waits = machine.hollow.calls(HollowEntry::event_wait);
    Block *used = freed(600 * kMiB, *two);
    EXPECT_EQ(try_allocate_block(device, 600 * kMiB, one->lane.id), nullptr);
    EXPECT_EQ(machine.hollow.calls(HollowEntry::event_wait), waits);
    EXPECT_FALSE(machine.hollow.work().is_idle());
    const MemoryCounters &counters = memory_of(device).counters();
    EXPECT_EQ(counters.events(MemoryEvent::kOutOfMemory), 0);
    EXPECT_EQ(counters.events(MemoryEvent::kRetry), 0);
    Block *fits = try_allocate_block(device, 300 * kMiB, one->lane.id);
    ASSERT_NE(fits, nullptr);
    free_block(device, fits);
    machine.hollow.work().finish();
    used = try_allocate_block(device, 600 * kMiB, one->lane.id);
    ASSERT_NE(used, nullptr) << "its work is seen to be done";
    free_block(device, used);
    set_caching(false);
    EXPECT_EQ(try_allocate_block(device, 2 * kGiB, one->lane.id), nullptr);
    set_caching(true);
    used = machine.alloc(600 * kMiB, one->lane);
    free_block(device, used);
}

TEST_P(Orders, AnOptionalRequestTakesWhatOthersHaveLeftBeforeFreshMemory)
{
    Block *block = freed(300 * kMiB, *two);
    machine.hollow.work().finish();
    Block *const again = try_allocate_block(device, 300 * kMiB, one->lane.id);
    EXPECT_EQ(again, block);
    free_block(device, again);
}

// Adds so many guards that the list searches for reached guards.
TEST_P(Orders, GuardsAreForgottenOnceTheyAreReachedAndNotBefore)
{
    for (const bool is_done : {false, true}) {
        Guards *guards = nullptr;
        Block *block = machine.alloc(kMiB, one->lane);
        for (int i = 0; i < 64; ++i) {
            machine.use(*block, one->lane);
            add_guard(guards, fence_behind(device, one->lane.id));
            if (is_done) machine.hollow.work().finish();
        }
        const Guards taken = take_guards(guards);
        EXPECT_EQ(guards, nullptr);
        EXPECT_TRUE(is_done ? taken.size() <= 16 : taken.size() == 64) << taken.size();
        machine.hollow.work().finish();
        free_block(device, block);
    }
}

// Work of another backend used the block: the host alone can wait for it.
TEST_P(Orders, AFenceOfAnotherBackendIsWaitedForBeforeARequestIsRefused)
{
    test::Machine other({.runs_at_once = false});
    const Ref<Stream> reader = make_stream(other.device, 0);
    Block *block = machine.alloc(600 * kMiB, one->lane);
    other.hollow.work().give(reader->lane.native);
    add_guard(block->guards, fence_behind(other.device, reader->lane.id));
    free_block(device, block, lane_bit(one->lane.id));
    EXPECT_FALSE(other.hollow.work().is_idle());
    block = machine.alloc(600 * kMiB, one->lane);
    EXPECT_TRUE(other.hollow.work().is_idle());
    free_block(device, block);
}

// The wait for another stream fails, so the stream's block stays in its place.
TEST_P(Orders, ABlockThatCannotBeWaitedForStaysFree)
{
    Block *block = freed(900 * kMiB, *one);
    machine.hollow.fail_at(HollowEntry::event_wait, 1, YOKE_E_INTERNAL);
    expect_error(YOKE_E_INTERNAL, {"event_wait"},
                 [&] { allocate_block(device, 800 * kMiB, two->lane.id); });
    block = machine.alloc(900 * kMiB, one->lane);
    free_block(device, block);
}

// The host program's stream may end at any time, so the release waits for a fence. Memory for the fence's event may
// be short.
TEST_P(Orders, WithoutAFenceAStreamOfTheHostsIsWaitedForWithTheDevice)
{
    void *native = nullptr;
    ASSERT_EQ(machine.hollow.table().stream_create(device.handle, 0, &native), YOKE_OK);
    const Ref<Stream> host = wrap_stream(device, native);
    set_caching(false);
    for (const auto entry : {HollowEntry::event_create, HollowEntry::event_record}) {
        Block *block = machine.alloc(kMiB, one->lane);
        machine.use(*block, host->lane);
        machine.hollow.fail_at(entry, 1, YOKE_E_OOM);
        free_block(device, block, lane_bit(host->lane.id));
        EXPECT_TRUE(machine.hollow.work().is_idle());
        machine.hollow.fail_at(entry, 0, YOKE_OK);
    }
}

// Each of four threads has a stream. They use and free each other's blocks, with and without events.
TEST_P(Orders, OfManyThreadsAreKept)
{
    struct Live {
        Block *block;
        uint16_t uses;
    };
    std::mutex mutex;
    std::vector<Live> live;
    const Ref<Event> events[] = {make_event(false), make_event(false)};
    const auto work = [&](unsigned seed) {
        const Ref<Stream> own = make_stream(device, 0);
        std::mt19937 random(seed);
        const auto take_any = [&]() -> Live {
            const std::lock_guard lock(mutex);
            if (live.empty()) return {};
            std::swap(live[random() % live.size()], live.back());
            const Live taken = live.back();
            live.pop_back();
            return taken;
        };
        const auto put = [&](const Live &each) {
            const std::lock_guard lock(mutex);
            live.push_back(each);
        };
        for (int step = 0; step < 3000; ++step) {
            const auto kind = random() % 8;
            Event &event = *events[random() % 2];
            if (kind < 3) {
                const uint64_t bytes = 1 + random() % (random() % 2 ? 60 * kKiB : 20 * kMiB);
                Block *block = nullptr;
                try {
                    block = allocate_block(device, bytes, own->lane.id);
                } catch (const Error &error) {
                    ASSERT_EQ(error.status(), YOKE_E_OOM) << error.what();
                    continue;
                }
                machine.hollow.with_lock([&] {
                    machine.ordering.hand_out(own->lane.native, block->address, block->size);
                });
                machine.use(*block, own->lane);
                put({block, 0});
            } else if (kind < 5) {
                const Live gone = take_any();
                if (gone.block) free_block(device, gone.block, gone.uses);
            } else if (kind < 7) {
                Live some = take_any();
                if (!some.block) continue;
                machine.use(*some.block, own->lane);
                if (kind == 6 && random() % 2) {
                    add_guard(some.block->guards, fence_behind(device, own->lane.id));
                    some.uses |= lane_bit(some.block->lane);
                } else if (own->lane.id != some.block->lane) {
                    some.uses |= lane_bit(own->lane.id);
                }
                put(some);
            } else if (random() % 2) {
                record_event(event, *own);
            } else {
                wait_event(*own, event);
            }
            if (random() % 3 == 0)
                machine.hollow.with_lock([&] { machine.hollow.work().run_step(own->lane.native); });
        }
    };
    std::vector<std::thread> threads;
    for (unsigned seed = 0; seed < 4; ++seed) threads.emplace_back(work, seed);
    for (std::thread &thread : threads) thread.join();
    for (const Live &each : live) free_block(device, each.block, each.uses);
    EXPECT_EQ(memory_stats(device).allocated, 0);
}

// A device's work used a block of host memory. The child's copy waits for no device.
TEST_P(Orders, AForkedChildWaitsForNoDevice)
{
    if (!test::kMayFork) GTEST_SKIP() << "too many locks for this sanitizer";
    mark_process_used();
    Device &host = *devices_of(kHostKind).front();
    Block *block = allocate_block(host, kMiB, 0);
    machine.hollow.use(two->lane.native, HollowMemory::kFirst, 1);
    add_guard(block->guards, fence_behind(device, two->lane.id));
    const int64_t calls = machine.hollow.calls();
    const auto free_and_take = [&] {
        free_block(host, block, lane_bit(0));
        free_block(host, allocate_block(host, kMiB, 0));
        empty_cache(&host);
    };
    EXPECT_TRUE(test::passes_in_child([&] {
        free_and_take();
        EXPECT_EQ(machine.hollow.calls(), calls);
    }));
    machine.hollow.work().finish();
    free_and_take();
    EXPECT_GT(machine.hollow.calls(), calls);
}

INSTANTIATE_TEST_SUITE_P(Hollow, Orders, testing::Bool(),
                         [](const auto &each) { return each.param ? "Virtual" : "Plain"; });

}  // namespace
}  // namespace yoke
