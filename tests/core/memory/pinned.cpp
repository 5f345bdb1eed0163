// Pinned host memory over a fake backend that logs its calls: a block's waits for the backend's work.
#include "core/memory/pinned.h"

#include "core/ops/move.h"
#include "core/select/select.h"
#include "tests/core/memory/machine.h"
#include "tests/core/stream_backend.h"

namespace yoke {
namespace {

using test::fake_streams;
using test::in_fresh_process_with_streams;
using test::Machine;
using test::OnStream;
using Lines = std::vector<std::string>;

Tensor made_on(Device &device)
{
    return make_tensor(device, YOKE_F32, Dims{100}, "a test");
}

TEST(Pinned, ANonBlockingCopyHoldsItsPinnedMemoryUntilItIsDone)
{
    in_fresh_process_with_streams([](Device &device, Device &) {
        Device &cpu = open_device("cpu");
        const Tensor x = made_on(cpu);
        fake_streams.take();
        fake_streams.reached = false;
        move_to(*x, device, true);
        EXPECT_EQ(fake_streams.take(), (Lines{"copy s0", "record s0 e1"}))
            << "nothing is waited for";
        const int allocs = test::fake.allocs;
        Tensor pinned = make_pinned(device, YOKE_F32, Dims{100}, "a test");
        EXPECT_EQ(test::fake.allocs, allocs + 1) << "the other block is still read";
        EXPECT_NE(pinned_block_of(*pinned), nullptr);
        EXPECT_EQ(pinned->device, &cpu);
        fake_streams.reached = true;
        const Tensor again = make_pinned(device, YOKE_F32, Dims{100}, "a test");
        EXPECT_EQ(test::fake.allocs, allocs + 1);
        const Tensor back = move_to(*made_on(device), cpu, true);
        EXPECT_NE(pinned_block_of(*back), nullptr)
            << "what comes back unwaited lies in pinned memory";
    });
}

TEST(Pinned, ABlockServesOneTensorAtATime)
{
    in_fresh_process_with_streams([](Device &device, Device &) {
        Tensor first = make_pinned(device, YOKE_F32, Dims{100}, "a test");
        Tensor second = make_pinned(device, YOKE_F32, Dims{100}, "a test");
        void *const places[] = {pinned_block_of(*first)->data, pinned_block_of(*second)->data};
        EXPECT_NE(places[0], places[1]);
        first = second = nullptr;
        first = make_pinned(device, YOKE_F32, Dims{100}, "a test");
        second = make_pinned(device, YOKE_F32, Dims{100}, "a test");
        EXPECT_NE(pinned_block_of(*first), pinned_block_of(*second));
        const Tensor third = make_pinned(device, YOKE_F32, Dims{100}, "a test");
        EXPECT_NE(pinned_block_of(*third)->data, places[0]);
        EXPECT_NE(pinned_block_of(*third)->data, places[1]);
    });
}

TEST(Pinned, APinnedTensorKeepsOneFenceForEachStreamHoweverOftenItIsCopied)
{
    in_fresh_process_with_streams([](Device &device, Device &other) {
        const Tensor pinned = make_pinned(device, YOKE_F32, Dims{100}, "a test");
        PinnedBlock &block = *pinned_block_of(*pinned);
        fake_streams.reached = false;  // copies never end, so only their order counts
        for (int i = 0; i < 100; ++i) move_to(*pinned, device, true);
        EXPECT_EQ(block.fences.size(), 1u);
        {
            const Ref<Stream> side = make_stream(device, 0);
            const OnStream on(side);
            for (int i = 0; i < 100; ++i) move_to(*pinned, device, true);
        }
        EXPECT_EQ(block.fences.size(), 2u);
        for (int i = 0; i < 100; ++i) move_to(*pinned, other, true);
        move_to(*pinned, device, true);
        EXPECT_EQ(block.fences.size(), 3u);
        int native = 0;
        for (int i = 0; i < 100; ++i) {
            const Ref<Stream> wrapped = wrap_stream(device, &native);
            const OnStream on(wrapped);
            move_to(*pinned, device, true);
        }
        EXPECT_LE(block.fences.size(), 3u + 2u) << "each of a host's streams in turn has a lane";
        fake_streams.reached = true;
    });
}

TEST(Pinned, APinnedBlockIsUsedAgainOnlyOnceEveryStreamHasReadIt)
{
    in_fresh_process_with_streams([](Device &device, Device &) {
        Tensor pinned = make_pinned(device, YOKE_F32, Dims{100}, "a test");
        const void *place = pinned_block_of(*pinned)->data;
        const Ref<Stream> side = make_stream(device, 0);
        fake_streams.reached = false;
        for (int i = 0; i < 3; ++i) {
            move_to(*pinned, device, true);
            const OnStream on(side);
            move_to(*pinned, device, true);
        }
        pinned = nullptr;
        pinned = make_pinned(device, YOKE_F32, Dims{100}, "a test");
        EXPECT_NE(pinned_block_of(*pinned)->data, place) << "streams still read the first";
        fake_streams.reached = true;
        const Tensor next = make_pinned(device, YOKE_F32, Dims{100}, "a test");
        EXPECT_EQ(pinned_block_of(*next)->data, place);
    });
}

TEST(Pinned, ABlockGoesBackBehindTheWorkOnIt)
{
    Machine machine({.runs_at_once = false});
    Hollow &hollow = machine.hollow;
    const auto free_behind_work = [&] {
        PinnedBlock *block = allocate_pinned(machine.device, 1000);
        use_pinned(*block, machine.device);
        free_pinned(block);
    };
    free_behind_work();
    EXPECT_EQ(hollow.calls(HollowEntry::event_synchronize), 0);
    empty_pinned_cache();
    EXPECT_EQ(hollow.calls(HollowEntry::event_synchronize), 1);
    EXPECT_EQ(hollow.calls(HollowEntry::host_free), 1);
    set_caching(false);
    free_behind_work();
    EXPECT_EQ(hollow.calls(HollowEntry::event_synchronize), 2);
    EXPECT_EQ(hollow.calls(HollowEntry::host_free), 2);
}

TEST(Pinned, EventsOfScriptsAreForgottenOnceTheyAreReached)
{
    Machine machine({});
    const Ref<Stream> stream = make_stream(machine.device, 0);
    PinnedBlock *block = allocate_pinned(machine.device, 1000);
    for (int i = 0; i < 64; ++i) {
        const Ref<Event> event = make_event(false);
        record_event(*event, *stream);
        use_pinned(*block, Ref<Fence>::share(event->fence));
    }
    EXPECT_LE(block->fences.size(), 16u);
    free_pinned(block);
    empty_pinned_cache();
}

}  // namespace
}  // namespace yoke
