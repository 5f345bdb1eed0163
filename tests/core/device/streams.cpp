// Streams over a fake backend that logs its calls: waits between streams, and waits of memory.
#include "core/device/inner_stream.h"
#include "core/memory/alloc_conf.h"
#include "core/memory/memory.h"
#include "core/memory/pinned.h"
#include "core/ops/move.h"
#include "core/ops/ops.h"
#include "core/select/select.h"
#include "tests/core/expect_error.h"
#include "tests/core/fake_backend.h"
#include "tests/core/stream_backend.h"

#include <thread>

namespace yoke {
namespace {

using test::expect_error;
using test::fake;
using test::fake_streams;
using test::in_fresh_process_with_streams;
using test::OnStream;
using Lines = std::vector<std::string>;

Tensor made_on(Device &device, int64_t numel = 100)
{
    return make_tensor(device, YOKE_F32, Dims{numel}, "a test");
}

TEST(DeviceStreams, AThreadHasAStreamOfEachDeviceAndTheDefaultOneAtFirst)
{
    in_fresh_process_with_streams([](Device &first, Device &second) {
        EXPECT_EQ(current_stream(first)->lane.native, nullptr);
        const Ref<Stream> side = make_stream(first, 0);
        set_current_stream(side);
        EXPECT_EQ(current_stream(first).get(), side.get());
        EXPECT_EQ(current_stream(second)->lane.id, 0);
        std::thread([&] { EXPECT_EQ(current_stream(first)->lane.id, 0); }).join();
    });
}

TEST(DeviceStreams, LaunchesAndCopiesCarryTheCurrentStream)
{
    in_fresh_process_with_streams([](Device &device, Device &) {
        const Tensor x = made_on(device);
        float host[100] = {};
        ops::add(*x, *x);
        const Ref<Stream> side = make_stream(device, 0);
        {
            const OnStream on(side);
            made_on(device);  // gives the stream's arena memory
        }
        fake_streams.take();
        ops::add(*x, *x);
        {
            const OnStream on(side);
            ops::add(*x, *x);
            copy_to_host(*x, host, sizeof host, "a test");
            copy_from_host(*x, host, sizeof host, "a test");
        }
        ops::add(*x, *x);
        EXPECT_EQ(fake_streams.take(), (Lines{"kernel s0", "kernel s1", "copy s1", "sync s1",
                                              "copy s1", "sync s1", "kernel s0"}))
            << "a copy that is waited for waits for its own stream";
    });
}

// Fills a segment of 20 MiB.
Tensor most_of_a_segment(Device &device)
{
    const int64_t shape[] = {19 << 18};
    return make_tensor(device, YOKE_F32, shape, "a test");
}

TEST(DeviceStreams, ABlockThatAnotherStreamUsedWaitsForItBeforeItServesAgain)
{
    in_fresh_process_with_streams([](Device &device, Device &) {
        set_alloc_conf("test", "ask_fences:True");
        Tensor x = most_of_a_segment(device);
        void *block = x->data;
        const Ref<Stream> side = make_stream(device, 0);
        x->storage->note_use(side->lane.id);
        fake_streams.take();
        x = nullptr;
        EXPECT_EQ(fake_streams.take(), Lines{"record s1 e1"})
            << "at the free, and nothing waits yet";
        fake_streams.reached = false;
        const Tensor other = most_of_a_segment(device);
        EXPECT_NE(other->data, block) << "there is other memory, for which nobody waits";
        EXPECT_EQ(fake_streams.take(), Lines{});
        fake.capacity = fake.held.load();
        const Tensor again = most_of_a_segment(device);
        EXPECT_EQ(again->data, block);
        EXPECT_EQ(fake_streams.take(), Lines{"wait s0 e1"});
    });
}

TEST(DeviceStreams, AFreeOnItsOwnStreamRecordsNothing)
{
    in_fresh_process_with_streams([](Device &device, Device &) {
        const Ref<Stream> side = make_stream(device, 0);
        const OnStream on(side);
        for (int i = 0; i < 3; ++i) ops::neg(*made_on(device));
        EXPECT_EQ(fake_streams.take(), (Lines{"kernel s1", "kernel s1", "kernel s1"}));
        EXPECT_EQ(fake_streams.events, 0);
    });
}

TEST(DeviceStreams, MoreStreamsThanBitsAreAllWaitedFor)
{
    in_fresh_process_with_streams([](Device &device, Device &) {
        std::vector<Ref<Stream>> streams;
        for (int i = 0; i < 20; ++i) streams.push_back(make_stream(device, 0));
        Tensor x = made_on(device);
        {
            const OnStream on(streams[19]);
            ops::neg(*x);
        }
        fake_streams.take();
        x = nullptr;
        const Lines lines = fake_streams.take();
        EXPECT_NE(std::find(lines.begin(), lines.end(), "record s20 e6"), lines.end());
        EXPECT_EQ(lines.size(), 6u) << "15 to 20 share a bit";
    });
}

TEST(DeviceStreams, WithoutCachingAFreeWaitsForEveryUser)
{
    in_fresh_process_with_streams([](Device &device, Device &) {
        set_caching(false);
        Tensor x = made_on(device);
        const Ref<Stream> side = make_stream(device, 0);
        {
            const OnStream on(side);
            ops::neg(*x);
        }
        fake_streams.take();
        x = nullptr;
        const Lines lines = fake_streams.take();
        EXPECT_NE(std::find(lines.begin(), lines.end(), "sync s1"), lines.end());
        EXPECT_NE(std::find(lines.begin(), lines.end(), "sync s0"), lines.end());
        EXPECT_EQ(memory_stats(device).reserved, 0);
    });
}

TEST(DeviceStreams, AStreamThatWasReleasedServesTheNextWhoAsksOnceItIsIdle)
{
    in_fresh_process_with_streams([](Device &device, Device &) {
        Ref<Stream> side = make_stream(device, 0);
        Tensor x;
        {
            const OnStream on(side);
            x = made_on(device);
        }
        side = nullptr;
        fake_streams.idle = false;
        Ref<Stream> other = make_stream(device, 0);
        EXPECT_EQ(fake_streams.made, 2) << "the first has work yet";
        fake_streams.idle = true;
        side = make_stream(device, 0);
        EXPECT_EQ(fake_streams.made, 2);
        EXPECT_EQ(fake_streams.destroyed, 0);
        void *block = x->data;
        x = nullptr;  // freed after its stream's release
        const OnStream on(side);
        EXPECT_EQ(made_on(device)->data, block);
    });
}

TEST(DeviceStreams, AStreamThatSomebodyHasAgainIsGivenToNobodyElse)
{
    in_fresh_process_with_streams([](Device &device, Device &) {
        Ref<Stream> side = make_stream(device, 0);
        void *const native = side->lane.native;
        side = nullptr;
        const Ref<Stream> again = make_stream(device, 0), second = make_stream(device, 0);
        EXPECT_EQ(again->lane.native, native);
        EXPECT_NE(&second->lane, &again->lane);
        side = make_stream(device, 0);
        void *const third = side->lane.native;
        side = nullptr;
        const Ref<Stream> wrapped = wrap_stream(device, third), fourth = make_stream(device, 0);
        EXPECT_EQ(wrapped->lane.native, third);
        EXPECT_NE(&fourth->lane, &wrapped->lane);
    });
}

TEST(DeviceStreams, AWrappedStreamIsNeverTouchedAfterItsLastHandle)
{
    in_fresh_process_with_streams([](Device &device, Device &) {
        test::stream_entries::Thing native{77}, later{78};
        Ref<Stream> wrapped = wrap_stream(device, &native);
        EXPECT_EQ(&wrap_stream(device, &native)->lane, &wrapped->lane);
        Tensor x;
        void *block = nullptr;
        {
            const OnStream on(wrapped);
            x = made_on(device);
            block = x->data;
        }
        fake_streams.take();
        wrapped = nullptr;
        EXPECT_EQ(fake_streams.take(), Lines{"record s77 e1"}) << "the end of its work";
        x = nullptr;
        EXPECT_TRUE(fake_streams.take().empty());
        wrapped = wrap_stream(device, &later);
        EXPECT_EQ(fake_streams.take(), Lines{"wait s78 e1"}) << "the lane goes on behind it";
        const OnStream on(wrapped);
        EXPECT_EQ(made_on(device)->data, block);
        EXPECT_EQ(fake_streams.destroyed, 0);
    });
}

TEST(DeviceStreams, ABlockUsedOnAWrappedStreamThatIsGoneWaitsForItsEnd)
{
    in_fresh_process_with_streams([](Device &device, Device &) {
        test::stream_entries::Thing native{77};
        Tensor x = most_of_a_segment(device);
        {
            const Ref<Stream> wrapped = wrap_stream(device, &native);
            x->storage->note_use(wrapped->lane.id);
        }
        fake_streams.take();
        fake_streams.reached = false;
        fake.capacity = fake.held.load();
        x = nullptr;
        most_of_a_segment(device);
        EXPECT_EQ(fake_streams.take(), Lines{"wait s0 e1"});
        empty_cache(&device);
        EXPECT_EQ(memory_stats(device).reserved, 0);
    });
}

TEST(DeviceStreams, CopiesBetweenDevicesAreOrderedByEventsOnBothSides)
{
    in_fresh_process_with_streams([](Device &first, Device &second) {
        const Tensor x = made_on(first);
        const Ref<Stream> from = make_stream(first, 0), to = make_stream(second, 0);
        const OnStream on_first(from), on_second(to);
        fake_streams.take();
        move_to(*x, second, false);
        EXPECT_EQ(fake_streams.take(),
                  (Lines{"record s1 e1", "wait s2 e1", "copy s2", "record s2 e2", "wait s1 e2"}));
    });
}

TEST(DeviceStreams, EventsTellWhatTheyCannotDo)
{
    in_fresh_process_with_streams([](Device &first, Device &second) {
        const Ref<Stream> a = make_stream(first, 0), b = make_stream(second, 0);
        const Ref<Event> plain = make_event(false), timed = make_event(true),
                         last = make_event(true);
        EXPECT_TRUE(is_reached(*plain)) << "never recorded";
        synchronize(*plain);
        wait_event(a, *plain);
        EXPECT_TRUE(fake_streams.take().empty());
        record_event(plain, a);
        expect_error(YOKE_E_VALUE, {"fake:0", "fake:1"}, [&] { record_event(plain, b); });
        wait_event(b, *plain);  // across devices
        EXPECT_EQ(fake_streams.take(), (Lines{"record s1 e1", "wait s2 e1"}));
        expect_error(YOKE_E_VALUE, {"timing"}, [&] { elapsed_seconds(*plain, *timed); });
        expect_error(YOKE_E_STATE, {"never recorded"}, [&] { elapsed_seconds(*timed, *last); });
        record_event(timed, a);
        record_event(last, b);
        expect_error(YOKE_E_VALUE, {"fake:0", "fake:1"}, [&] { elapsed_seconds(*timed, *last); });
        fake_streams.reached = false;
        expect_error(YOKE_E_STATE, {"not reached"}, [&] { elapsed_seconds(*timed, *timed); });
        fake_streams.reached = true;
        EXPECT_EQ(elapsed_seconds(*timed, *timed), 0.25);
    });
}

TEST(DeviceStreams, AStreamOfTheHostWaitsForOthersInItsCaller)
{
    in_fresh_process_with_streams([](Device &device, Device &) {
        const Ref<Event> event = make_event(false);
        record_event(event, current_stream(device));
        const Ref<Stream> host = make_stream(open_device("cpu"), 0);
        fake_streams.take();
        wait_event(host, *event);
        EXPECT_EQ(fake_streams.take(), Lines{"join e1"});
        EXPECT_TRUE(is_idle(*host));
        expect_error(YOKE_E_VALUE, {"cpu"}, [&] { wrap_stream(open_device("cpu"), &device); });
    });
}

TEST(DeviceStreams, AThreadThatEndsLetsGoOfItsStream)
{
    in_fresh_process_with_streams([](Device &device, Device &) {
        Ref<Stream> side = make_stream(device, 0);
        std::thread([&] {
            set_current_stream(side);
            made_on(device);
        }).join();
        EXPECT_EQ(side->use_count(), 1u);
        const OnStream on(side);
        const int allocs = test::fake.allocs;
        made_on(device);
        EXPECT_EQ(test::fake.allocs, allocs)
            << "its blocks wait for the stream, not for the thread";
    });
}

TEST(DeviceStreams, MemoryThatWasLentGoesBackAfterTheWorkOnIt)
{
    in_fresh_process_with_streams([](Device &device, Device &) {
        float data[4] = {};
        const auto dropped = [](void *) { fake_streams.say("dropped"); };
        Tensor x =
            from_memory(data, Dims{4}, nullptr, YOKE_F32, device, dropped, nullptr, "a test");
        fake_streams.take();
        x = nullptr;
        EXPECT_EQ(fake_streams.take(), (Lines{"sync s0", "dropped"}));
    });
}

TEST(DeviceStreams, AForkedChildIsToldThatItsStreamsAreLost)
{
    in_fresh_process_with_streams([](Device &device, Device &) {
        Ref<Stream> side = make_stream(device, 0);
        Ref<Event> event = make_event(false);
        record_event(event, side);
        EXPECT_TRUE(test::passes_in_child([&] {
            expect_error(YOKE_E_FORKED, {"fake:0"}, [&] { make_stream(device, 0); });
            expect_error(YOKE_E_FORKED, {"fake:0"}, [&] { synchronize(*side); });
            expect_error(YOKE_E_FORKED, {"fake:0"}, [&] { set_current_stream(side); });
            expect_error(YOKE_E_FORKED, {"fake:0"}, [&] { is_reached(*event); });
            make_stream(open_device("cpu"), 0);
            event = nullptr;
            side = nullptr;
        }));
    });
}

TEST(Streams, OnlyThoseOfScriptsKeepTheirKindFromBeingDisabled)
{
    in_fresh_process_with_streams([](Device &device, Device &) {
        Ref<Stream> stream = make_inner_stream(device);
        disable("fake");
        enable("fake");
        stream = nullptr;  // the stream rests
        stream = make_stream(device, 0);
        EXPECT_EQ(fake_streams.made, 1);
        expect_error(YOKE_E_STATE, {"fake is in use: 1 stream of fake:0"}, [] { disable("fake"); });
        stream = nullptr;
        disable("fake");
    });
}

}  // namespace
}  // namespace yoke
