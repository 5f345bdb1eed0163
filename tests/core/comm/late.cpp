// Calls on tensors of a device through a deferred engine: streams of each step, waits, and the end of a call that the
// device does not end. See core/comm/late.
#include "core/comm/late/call_watch.h"
#include "core/device/deferred_error.h"
#include "tests/core/comm/late_backend.h"

namespace yoke::test {
namespace {

using Groups = std::vector<Ref<Group>>;
using Lines = std::vector<std::string>;

// The parts of the texts, of all ranks alike.
void expect_alike(const Lines &told, std::initializer_list<const char *> parts)
{
    ASSERT_FALSE(told.empty());
    for (const std::string &each : told) {
        EXPECT_EQ(each, told[0]);
        for (const char *part : parts)
            EXPECT_NE(each.find(part), std::string::npos) << "no '" << part << "' in: " << each;
    }
}

// Waits until the calls before this are at their end.
void await_empty(Group &group)
{
    group.run(barrier(), false);
}

TEST(LateCalls, ComeBehindTheCallersStreamAndTheCallersStreamBehindThem)
{
    in_fresh_process_with_engine(
        [](Groups &groups) {
            Device &device = device_of(*groups[0]);
            const Tensor t = filled_on(device, 4, 3);
            const Ref<Stream> side = make_stream(device, 0);
            set_current_stream(*side);
            fake_streams.take();
            groups[0]->run(reduce_all(t), false);
            const Lines lines = fake_streams.take();
            ASSERT_EQ(lines.size(), 5u);
            const std::string callers = lines[0].substr(7, 2), lane = lines[2].substr(16);
            EXPECT_EQ(lines[0], "record " + callers + " e1");
            EXPECT_EQ(lines[1], "wait " + lane + " e1");
            EXPECT_EQ(lines[2], "call all_reduce " + lane);
            EXPECT_EQ(lines[3].substr(0, 9), "record " + lane);
            EXPECT_EQ(lines[4], "wait " + callers + lines[3].substr(9));
            EXPECT_NE(callers, lane);
        },
        0, 1);
}

TEST(LateCalls, AWorkIsFollowedBeforeTheOtherRanksHaveComeAndDoneBehindThem)
{
    in_fresh_process_with_engine([](Groups &groups) {
        const Tensor t = filled_on(device_of(*groups[0]), 4, 3);
        const Ref<Work> work = groups[0]->run(reduce_all(t), true);
        work->wait(-1);  // the stream waits
        EXPECT_FALSE(work->is_done());
        EXPECT_FALSE(work->wait(0.05));
        groups[1]->run(reduce_all(filled_on(device_of(*groups[1]), 4, 3)), false);
        EXPECT_TRUE(work->wait(20));
        EXPECT_TRUE(work->is_done());
    });
}

TEST(LateCalls, AWorkThatWasWaitedForTwiceHoldsNoHostUpOnceTheRanksHaveCompared)
{
    in_fresh_process_with_engine([](Groups &groups) {
        Device &device = device_of(*groups[0]);
        const Ref<Work> work = groups[0]->run(reduce_all(filled_on(device, 4, 3)), true);
        work->wait(-1);
        work->wait(-1);
        groups[1]->run(reduce_all(filled_on(device_of(*groups[1]), 4, 3)), false);
        raise_deferred_error(device);
        EXPECT_TRUE(work->wait(20));
    });
}

TEST(LateCalls, CallsThatDifferAreNamedAndTheHostReadsNothingBefore)
{
    in_fresh_process_with_engine([](Groups &groups) {
        const auto told = each_rank(groups, [](Group &group) {
            Device &device = device_of(group);
            group.run(reduce_all(filled_on(device, 4 + group.rank(), 1)), false);
            raise_deferred_error(device);  // as a reader of results does
        });
        expect_alike(told, {"the number of elements", "all_reduce of 4 float32 on a device",
                            "all_reduce of 5 float32 on a device"});
        expect_lines("abort", 2);
        for (const Ref<Group> &group : groups)
            expect_error(YOKE_E_COMM, {"the number of elements"}, [&] { await_empty(*group); });
    });
}

TEST(LateCalls, TensorsOfTheHostAndOfADeviceDoNotMeet)
{
    in_fresh_process_with_engine([](Groups &groups) {
        const auto told = each_rank(groups, [](Group &group) {
            const Tensor t = group.rank() ? filled(4, 1) : filled_on(device_of(group), 4, 1);
            group.run(reduce_all(t), false);
            raise_deferred_error(device_of(group));
        });
        expect_alike(told, {"the place of the tensor", "all_reduce of 4 float32 on a device, sum",
                            "called all_reduce of 4 float32, sum"});
    });
}

TEST(LateCalls, ARankThatDoesNotComeIsNamedAtTheDeadline)
{
    in_fresh_process_with_engine(
        [](Groups &groups) {
            const Tensor t = filled_on(device_of(*groups[0]), 4, 3);
            const Ref<Work> work = groups[0]->run(reduce_all(t), true);
            expect_error(YOKE_E_TIMEOUT, {"rank 1", "did not arrive at"}, [&] { work->wait(20); });
            raise_deferred_error(device_of(*groups[0]));  // the work has reported this error
        },
        0.3);
}

TEST(LateCalls, ADeviceThatDoesNotEndACallIsFoundAtTheDeadline)
{
    in_fresh_process_with_engine(
        [](Groups &groups) {
            fake_streams.reached = false;
            const auto told = each_rank(groups, [](Group &group) {
                group.run(reduce_all(filled_on(device_of(group), 4, 1)), true)->wait(20);
            });
            expect_alike(told,
                         {"YOKE_E_TIMEOUT", "all ranks arrived at all_reduce", "did not finish"});
            expect_lines("abort", 2);
        },
        0.3);
}

TEST(LateCalls, ABlockingCallThatTheDeviceDoesNotEndIsToldByTheDevice)
{
    in_fresh_process_with_engine(
        [](Groups &groups) {
            fake_streams.reached = false;
            const auto told = each_rank(groups, [](Group &group) {
                group.run(reduce_all(filled_on(device_of(group), 4, 1)), false);
                const Deadline deadline = Deadline::after(20);
                while (!deadline.has_passed()) {
                    raise_deferred_error(device_of(group));
                    std::this_thread::sleep_for(std::chrono::milliseconds(1));
                }
            });
            expect_alike(told, {"YOKE_E_TIMEOUT", "but did not finish"});
        },
        0.3);
}

TEST(LateCalls, ACommunicatorThatFailsByItselfFailsTheGroup)
{
    in_fresh_process_with_engine([](Groups &groups) {
        fake_streams.reached = false;
        const auto told = each_rank(groups, [](Group &group) {
            const Ref<Work> work = group.run(reduce_all(filled_on(device_of(group), 4, 1)), true);
            if (group.rank() == 0) late_engine.async_status = YOKE_E_COMM;
            work->wait(20);
        });
        expect_alike(told, {"YOKE_E_COMM", "all_reduce", "a link is down"});
    });
}

TEST(LateCalls, AnEngineThatDoesNotTakeACallFailsTheGroup)
{
    in_fresh_process_with_engine([](Groups &groups) {
        late_engine.call_status = YOKE_E_INTERNAL;
        const auto told = each_rank(groups, [](Group &group) {
            const Tensor t = filled_on(device_of(group), 4, 1);
            group.run(reduce_all(t), false);
        });
        expect_alike(told, {"YOKE_E_INTERNAL", "the engine was told to fail"});
    });
}

TEST(LateCalls, AMismatchEndsACallThatWaitsInItsEngine)
{
    in_fresh_process_with_engine([](Groups &groups) {
        late_engine.holds = true;
        const auto told = each_rank(groups, [](Group &group) {
            group.run(reduce_all(filled_on(device_of(group), 4 + group.rank(), 1)), false);
        });
        expect_alike(told, {"YOKE_E_COMM", "the number of elements"});
    });
}

TEST(LateCalls, AnAbortEndsAWorkAndTheDeviceTellsNothingTwice)
{
    in_fresh_process_with_engine(
        [](Groups &groups) {
            fake_streams.reached = false;
            Device &device = device_of(*groups[0]);
            const Ref<Work> work = groups[0]->run(reduce_all(filled_on(device, 4, 1)), true);
            groups[0]->abort("enough");
            expect_error(YOKE_E_CANCELLED, {"enough"}, [&] { work->wait(1e6); });
            EXPECT_TRUE(work->is_done());
            raise_deferred_error(device);
        },
        0, 1);
}

TEST(LateCalls, ABarrierEndsBehindTheCallsBeforeIt)
{
    in_fresh_process_with_engine(
        [](Groups &groups) {
            fake_streams.reached = false;
            groups[0]->run(reduce_all(filled_on(device_of(*groups[0]), 4, 1)), false);
            const Ref<Work> work = groups[0]->run(barrier(), true);
            EXPECT_FALSE(work->wait(0.05));
            fake_streams.reached = true;
            EXPECT_TRUE(work->wait(20));
        },
        0, 1);
}

TEST(LateCalls, MemoryOfTheHostProgramIsKeptUntilTheDeviceIsDone)
{
    in_fresh_process_with_engine(
        [](Groups &groups) {
            static std::atomic<int> dropped{0};
            float memory[4] = {};
            const int64_t shape[] = {4};
            Device &device = device_of(*groups[0]);
            Tensor t = from_memory(
                memory, shape, nullptr, YOKE_F32, device, [](void *) { ++dropped; }, nullptr,
                kCall);
            fake_streams.reached = false;
            groups[0]->run(reduce_all(t), false);
            groups[0]->run(reduce_all(t), true);  // without a wait
            t = nullptr;
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
            EXPECT_EQ(dropped, 0);
            fake_streams.reached = true;
            await_empty(*groups[0]);
            await_value(dropped, 1);
        },
        0, 1);
}

TEST(LateCalls, AGroupEndsWhileTheDeviceIsAtACallAndTheMemoryFollows)
{
    in_fresh_process_with_engine(
        [](Groups &groups) {
            static std::atomic<int> dropped{0};
            float memory[4] = {};
            const int64_t shape[] = {4};
            Tensor t = from_memory(
                memory, shape, nullptr, YOKE_F32, device_of(*groups[0]), [](void *) { ++dropped; },
                nullptr, kCall);
            fake_streams.reached = false;
            groups[0]->run(reduce_all(t), false);
            t = nullptr;
            groups.clear();
            await_value(late_engine.live, 0);
            EXPECT_EQ(dropped, 0);
            fake_streams.reached = true;
            await_value(dropped, 1);
        },
        0, 1);
}

TEST(LateCalls, MemoryOfTheEngineOutlivesTheGroup)
{
    in_fresh_process_with_engine(
        [](Groups &groups) {
            const int64_t shape[] = {4};
            Tensor t = groups[0]->empty(shape, YOKE_F32, device_of(*groups[0]));
            groups[0]->run(reduce_all(t), false);
            await_empty(*groups[0]);
            groups.clear();
            await_value(late_engine.live, 0);
            EXPECT_EQ(late_engine.freed, 0);
            t = nullptr;
            await_value(late_engine.freed, 1);
        },
        0, 1);
}

TEST(LateCalls, AForeignWriteBeforeTheWaitIsFound)
{
    in_fresh_process_with_engine(
        [](Groups &groups) {
            const Tensor t = filled_on(device_of(*groups[0]), 4, 1);
            const Ref<Work> first = groups[0]->run(reduce_all(t), true);
            const Ref<Work> second =
                groups[0]->run(reduce_all(t), true);  // after the first on the stream
            first->wait(-1);
            t->storage->note_written("add_");
            for (const double seconds : {-1., 20.})
                expect_error(YOKE_E_STATE, {"all_reduce", "add_"}, [&] { second->wait(seconds); });
        },
        0, 1);
}

TEST(LateCalls, ATensorOfAnotherDeviceIsRefusedAndTheGroupGoesOn)
{
    in_fresh_process_with_engine(
        [](Groups &groups) {
            const Tensor other = filled_on(*devices_of("cuda")[1], 4, 1);
            expect_error(YOKE_E_VALUE, {"all_reduce", "cuda:1", "cuda:0"},
                         [&] { groups[0]->run(reduce_all(other), false); });
            await_empty(*groups[0]);
        },
        0, 1);
}

TEST(LateCalls, ManyThreadsAndGroupsKeepTheirOrder)
{
    in_fresh_process_with_engine([](Groups &groups) {
        constexpr int kCalls = 150;
        std::atomic<bool> ends{false};
        std::thread device([&] {
            for (bool is_reached = false; !ends; is_reached = !is_reached) {
                fake_streams.reached = is_reached;
                std::this_thread::sleep_for(std::chrono::microseconds(200));
            }
            fake_streams.reached = true;
        });
        const auto told = each_rank(groups, [&](Group &group) {
            const Ref<Group> part = group.split(0, 0);
            std::vector<Ref<Work>> works;
            for (int i = 0; i < kCalls; ++i) {
                const Tensor t = filled_on(device_of(group), 1 + i, 1);
                Group &used = i % 3 ? group : *part;
                if (i % 5 == 0)
                    used.run(reduce_all(t), false);
                else
                    works.push_back(used.run(reduce_all(t), true));
                if (i % 7 == 0) group.run(reduce_all(filled(3, 1)), false);
                if (i % 11 == 0 && !works.empty()) {
                    EXPECT_TRUE(works.front()->wait(30));
                }
                if (i % 4 == 0) works.clear();
            }
            for (const Ref<Work> &each : works) each->wait(-1);
            group.run(barrier(), false);
        });
        ends = true;
        device.join();
        EXPECT_EQ(told, Lines(2));
        EXPECT_EQ(lines_with("call").size(), 2u * kCalls);
    });
}

}  // namespace
}  // namespace yoke::test
