// Failures and ends of deferred calls: the reported cause, the effects of an engine that hangs, and the lifetime of
// memory.
#include "core/comm/coalesce.h"
#include "core/comm/keep_for_good.h"
#include "core/comm/late/call_watch.h"
#include "core/comm/late/let_go.h"
#include "tests/core/comm/late_backend.h"

namespace yoke::test {
namespace {

using Groups = std::vector<Ref<Group>>;

// Waits until no call of the group is in flight.
void await_end(Group &group)
{
    const DeviceCalls &calls = group.issuer().devices();
    const Deadline deadline = Deadline::after(20);
    while (calls.has_pending() && !deadline.has_passed())
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_FALSE(calls.has_pending());
}

TEST(LateCalls, AnEarlierFailureIsToldInPlaceOfTheRefusalBehindIt)
{
    in_fresh_process_with_engine(
        [](Groups &groups) {
            fake_streams.reached = false;
            Device &device = device_of(*groups[0]);
            const Ref<Work> first = groups[0]->run(reduce_all(filled_on(device, 4, 1)), true);
            expect_lines("call", 1);
            late_engine.call_status = YOKE_E_STATE;
            std::thread caller([&] {
                expect_error(YOKE_E_COMM, {"a link is down"},
                             [&] { groups[0]->run(reduce_all(filled_on(device, 4, 1)), false); });
            });
            expect_lines("call", 1);
            late_engine.async_status = YOKE_E_COMM;
            caller.join();
            expect_error(YOKE_E_COMM, {"a link is down"}, [&] { first->wait(20); });
        },
        0, 1);
}

// Returns when action(groups) has, while the watch thread is in a question to the engine.
template <class F>
void ends_while_engine_is_asked(const F &action)
{
    in_fresh_process_with_engine(
        [action](Groups &groups) {
            fake_streams.reached = false;
            late_engine.holds_asking = true;
            const Ref<Work> work =
                groups[0]->run(reduce_all(filled_on(device_of(*groups[0]), 4, 1)), true);
            await_value(late_engine.asking, 1);
            std::atomic<int> ended{0};
            std::thread other([&] {
                action(groups);
                ++ended;
            });
            await_value(ended, 1);
            late_engine.holds_asking = false;
            other.join();
        },
        0, 1);
}

TEST(LateCalls, AnAbortDoesNotWaitForAnEngineThatIsAsked)
{
    ends_while_engine_is_asked([](Groups &groups) { groups[0]->abort("enough"); });
}

TEST(LateCalls, AGroupThatEndsLeavesTheCommunicatorToWhoAsksIt)
{
    in_fresh_process_with_engine(
        [](Groups &groups) {
            fake_streams.reached = false;
            late_engine.holds_asking = true;
            groups[0]->run(reduce_all(filled_on(device_of(*groups[0]), 4, 1)), false);
            await_value(late_engine.asking, 1);
            groups.clear();
            EXPECT_EQ(late_engine.live, 1);
            late_engine.holds_asking = false;
            await_value(late_engine.live, 0);
        },
        0, 1);
}

TEST(LateCalls, TheEndOfTheProcessDoesNotWaitForAnEngineThatIsAsked)
{
    ends_while_engine_is_asked([](Groups &) { CallWatch::stop(); });
}

TEST(LateCalls, OfGroupsThatAreCoalescedNoneIsLaunchedWhereOneIsRefused)
{
    in_fresh_process_with_engine(
        [](Groups &groups) {
            const Tensor t = filled_on(device_of(*groups[0]), 4, 1),
                         other = filled_on(device_of(*groups[1]), 4, 1);
            Coalescing::begin();
            groups[0]->run(reduce_all(t), false);
            for (int i = 0; i < 2; ++i) groups[1]->run(reduce_all(other), false);
            expect_error(YOKE_E_STATE, {"use the same memory"}, [] { Coalescing::end(kCall); });
            EXPECT_TRUE(lines_with("call").empty());
        },
        1);  // second, the timeout for a call that was launched by mistake
}

// A call of one group may wait in the engine until the other group's is there.
TEST(LateCalls, GroupsThatAreCoalescedBeginBeforeAnyOfThemEnds)
{
    in_fresh_process_with_engine([](Groups &groups) {
        Coalescing::begin();
        for (const Ref<Group> &group : groups)
            group->run(reduce_all(filled_on(device_of(*group), 4, 1)), false);
        fake_streams.take();
        Coalescing::end(kCall);
        std::string order;
        for (const std::string &line : fake_streams.take())
            for (const char *word : {"begin", "call", "end"})
                if (line.starts_with(word)) order += std::string(word) + " ";
        EXPECT_EQ(order, "begin call begin call end end ");
    });
}

TEST(LateCalls, MemoryOfAWorkThatNobodyWaitsForServesOnlyBehindTheDevice)
{
    in_fresh_process_with_engine(
        [](Groups &groups) {
            Device &device = device_of(*groups[0]);
            Tensor t = filled_on(device, 4, 1);
            const char *const place = t->data;
            fake_streams.reached = false;
            (void)groups[0]->run(reduce_all(t), true);
            t = nullptr;
            met(groups[0]);  // queued after the call, so the queue has released the tensor by then
            fake_streams.take();
            const Tensor next = filled_on(device, 4, 2);
            EXPECT_TRUE(next->data != place || !lines_with("wait").empty());
        },
        0, 1);
}

TEST(LateCalls, MemoryThatAnEngineCannotGiveBackIsKept)
{
    static std::atomic<int> dropped{0};
    static float memory[4] = {};
    const int64_t shape[] = {4};
    Tensor t = from_memory(
        memory, shape, nullptr, YOKE_F32, open_device("cpu"), [](void *) { ++dropped; }, nullptr,
        kCall);
    std::vector<Ref<Storage>> storages{t->storage};
    t = nullptr;
    keep_for_good(std::move(storages), "the engine cpu");
    EXPECT_EQ(dropped, 0);
}

TEST(LateCalls, ACallThatWasAbortedIsNotDoneThoughTheDeviceHasLeftIt)
{
    in_fresh_process_with_engine(
        [](Groups &groups) {
            fake_streams.reached = false;
            late_engine.leaves_at_abort = true;
            const Ref<Work> work =
                groups[0]->run(reduce_all(filled_on(device_of(*groups[0]), 4, 1)), true);
            groups[0]->abort("enough");
            await_end(*groups[0]);
            expect_error(YOKE_E_CANCELLED, {"enough"}, [&] { work->wait(20); });
        },
        0, 1);
}

TEST(LateCalls, AnAbortKeepsMemoryUntilTheDeviceIsDone)
{
    in_fresh_process_with_engine(
        [](Groups &groups) {
            static std::atomic<int> dropped{0}, other{0};
            float memory[4] = {};
            const int64_t shape[] = {4};
            Device &device = device_of(*groups[0]);
            const auto borrowed = [&](yoke_drop_fn drop) {
                return from_memory(memory, shape, nullptr, YOKE_F32, device, drop, nullptr, kCall);
            };
            fake_streams.reached = false;
            const Ref<Work> work =
                groups[0]->run(reduce_all(borrowed([](void *) { ++dropped; })), true);
            groups[0]->abort("enough");
            await_end(*groups[0]);
            Tensor behind = borrowed([](void *) { ++other; });
            std::vector<Ref<Storage>> storages{behind->storage};
            behind = nullptr;
            let_go_of(std::move(storages), nullptr);
            await_value(other, 1);  // the thread releases storages in order
            EXPECT_EQ(dropped, 0);
            fake_streams.reached = true;
            await_value(dropped, 1);
        },
        0, 1);
}

}  // namespace
}  // namespace yoke::test
