// Calls on tensors of a device through the CPU engine: streams of each step, and the end of a call whose device does
// not answer. See core/comm/staging.cpp, call_runner.cpp.
#include "core/device/deferred_error.h"
#include "core/memory/pinned.h"
#include "tests/core/comm/threads.h"
#include "tests/core/stream_backend.h"

namespace yoke::test {
namespace {

using Lines = std::vector<std::string>;

TEST(GroupDevices, ACallGoesThroughTheGroupsOwnStreamBehindTheCallersAndTheCallersBehindIt)
{
    in_fresh_process_with_streams([](Device &device, Device &) {
        std::vector<Ref<Group>> groups = init_threads(1, 0, kCall);
        const Tensor t = filled_on(device, 4, 3);
        const Ref<Stream> side = make_stream(device, 0);
        set_current_stream(*side);
        fake_streams.take();
        groups[0]->run(reduce_all(t), false);
        // Each copy records two events: an event for its pinned memory, kept as the last of the stream, and an event
        // for later waits.
        EXPECT_EQ(fake_streams.take(),
                  (Lines{"record s1 e1", "wait s2 e1", "copy s2", "record s2 e1", "record s2 e2",
                         "copy s2", "record s2 e3", "record s2 e1", "wait s1 e1"}));
        EXPECT_EQ(values(t), std::vector<float>(4, 3));
        const Ref<Work> work = groups[0]->run(reduce_all(t), true);
        EXPECT_TRUE(work->wait_for_end(-1));
        fake_streams.take();
        set_current_stream(*current_stream(device));
        work->wait(-1);
        const Lines waited = fake_streams.take();
        ASSERT_EQ(waited.size(), 1u);
        EXPECT_EQ(waited[0].substr(0, 7), "wait s1");
    });
}

TEST(GroupDevices, ARankReadsAndWritesWhatItsPartOfTheCallWants)
{
    in_fresh_process_with_streams([](Device &device, Device &) {
        std::vector<Ref<Group>> groups = init_threads(2, 0, kCall);
        std::atomic<int> copies[2] = {};
        const auto told = each_rank(groups, [&](Group &group) {
            const auto rank = static_cast<size_t>(group.rank());
            const Tensor t = filled_on(device, 4, static_cast<float>(rank + 1));
            group.run({YOKE_COMM_BROADCAST, -1, 1, t, t}, false);
            EXPECT_EQ(values(t), std::vector<float>(4, 2));
            group.run({YOKE_COMM_REDUCE, YOKE_REDUCE_SUM, 0, t, t}, false);
            EXPECT_EQ(values(t), std::vector<float>(4, rank ? 2 : 4));
            ++copies[rank];
        });
        EXPECT_EQ(told, std::vector<std::string>(2));
        const Lines lines = fake_streams.take();
        // Copies of the broadcast: 1 to send and 1 to receive. Copies of reduce: 2 to send and 1 to receive.
        EXPECT_EQ(
            std::ranges::count_if(lines, [](const auto &line) { return line.starts_with("copy"); }),
            5);
    });
}

TEST(GroupDevices, OtherPartsOfAStorageMayBeWrittenByLaterCallsBeforeAWorkIsWaitedFor)
{
    in_fresh_process_with_streams([](Device &device, Device &) {
        std::vector<Ref<Group>> ones = init_threads(1, 0, kCall),
                                others = init_threads(1, 0, kCall);
        const Tensor base = filled_on(device, 8, 3);
        const int64_t shape[] = {4}, strides[] = {1};
        const Tensor halves[] = {make_view(*base, shape, strides, 0),
                                 make_view(*base, shape, strides, 4)};
        const Ref<Work> first = ones[0]->run(reduce_all(halves[0]), true);
        EXPECT_TRUE(first->wait_for_end(-1));
        for (const auto *groups : {&ones, &others})
            (*groups)[0]->run(reduce_all(halves[1]), true)->wait(-1);
        first->wait(-1);
        const Ref<Work> second = ones[0]->run(reduce_all(halves[0]), true);
        EXPECT_TRUE(second->wait_for_end(-1));
        others[0]->run(reduce_all(halves[0]), true)->wait(-1);
        expect_error(YOKE_E_STATE, {"all_reduce", "was running"}, [&] { second->wait(-1); });
    });
}

TEST(GroupDevices, ADeviceThatDoesNotEndWhatItWasGivenBeforeIsNamedAtTheDeadline)
{
    in_fresh_process_with_streams([](Device &device, Device &) {
        std::vector<Ref<Group>> groups = init_threads(2, 0.3, kCall);
        fake_streams.reached = false;
        const auto told = each_rank(groups, [&](Group &group) {
            if (group.rank() == 1) return group.run(barrier(), false), void();
            group.run(reduce_all(filled_on(device, 4, 1)), false);
        });
        for (const std::string &each : told) EXPECT_EQ(each, told[0]);
        EXPECT_TRUE(told[0].starts_with("YOKE_E_TIMEOUT")) << told[0];
        EXPECT_NE(told[0].find("rank 0"), std::string::npos) << told[0];
        const Ref<Group> alone = init_threads(1, 0.1, kCall)[0];
        expect_error(YOKE_E_TIMEOUT,
                     {"all_reduce", "rank 0", "fake:0 did not finish earlier work in time"},
                     [&] { alone->run(reduce_all(filled_on(device, 4, 1)), false); });
        fake_streams.reached = true;
    });
}

TEST(GroupDevices, AnAbortEndsACallThatWaitsForItsDevice)
{
    in_fresh_process_with_streams([](Device &device, Device &) {
        std::vector<Ref<Group>> groups = init_threads(1, 0, kCall);
        fake_streams.reached = false;
        const Ref<Work> work = groups[0]->run(reduce_all(filled_on(device, 4, 1)), true);
        EXPECT_FALSE(work->wait(0.05));
        groups[0]->abort("enough");
        expect_error(YOKE_E_CANCELLED, {"enough"}, [&] { work->wait(20); });
        EXPECT_TRUE(work->is_done());
        raise_deferred_error(device);  // the work has reported this error
        fake_streams.reached = true;
    });
}

TEST(GroupDevices, AWorkIsDoneOnceTheDeviceHasTheResult)
{
    in_fresh_process_with_streams([](Device &device, Device &) {
        std::vector<Ref<Group>> groups = init_threads(1, 0, kCall);
        const Tensor t = filled_on(device, 4, 1), other = filled_on(device, 4, 1);
        const Ref<Work> work = groups[0]->run(reduce_all(t), true);
        EXPECT_TRUE(work->wait_for_end(-1));
        fake_streams.reached = false;
        EXPECT_FALSE(work->is_done());
        EXPECT_FALSE(work->wait(0.01));
        t->storage->note_written("add_");  // during the call
        fake_streams.reached = true;
        EXPECT_TRUE(work->is_done());
        for (const double seconds : {-1., 20.})
            expect_error(YOKE_E_STATE, {"all_reduce", "add_"}, [&] { work->wait(seconds); });

        const Ref<Work> second = groups[0]->run(reduce_all(other), true);
        EXPECT_TRUE(second->wait(20));
        other->storage->note_written("add_");  // after the call
        EXPECT_TRUE(second->wait(20));
        EXPECT_TRUE(second->wait(-1));
    });
}

TEST(GroupDevices, AFailureOfAWorkIsKeptForTheDeviceUntilSomebodyIsTold)
{
    in_fresh_process_with_streams([](Device &device, Device &other) {
        std::vector<Ref<Group>> groups = init_threads(2, 0, kCall);
        std::vector<Ref<Work>> works;
        for (int i = 0; i < 3; ++i)
            works.push_back(groups[0]->run(reduce_all(filled_on(device, 4, 1)), true));
        groups[1]->abort("enough");
        for (const Ref<Work> &each : works) EXPECT_TRUE(each->wait_for_end(20));
        raise_deferred_error(other);
        expect_error(YOKE_E_CANCELLED, {"enough", "rank 1"}, [&] { synchronize(device); });
        synchronize(device);
        expect_error(YOKE_E_CANCELLED, {"enough"}, [&] { works[2]->wait(-1); });
        synchronize(device);
        groups = init_threads(2, 0, kCall);
        const Ref<Work> work = groups[0]->run(reduce_all(filled_on(other, 4, 1)), true);
        groups[1]->abort("enough");
        EXPECT_TRUE(work->wait_for_end(20));
        expect_error(YOKE_E_CANCELLED, {"enough"}, [&] { groups[0]->run(barrier(), false); });
        synchronize(other);
        expect_error(YOKE_E_CANCELLED, {"enough"},
                     [&] { groups[0]->run(reduce_all(filled_on(device, 4, 1)), false); });
        synchronize(device);
    });
}

TEST(GroupDevices, WhatFailsAfterItsCauseWasToldIsNotKeptAndAnotherCauseIs)
{
    in_fresh_process_with_streams([](Device &device, Device &) {
        const Error one(YOKE_E_COMM, "one");
        FailuresOfDevices failures;
        failures.note_told(std::make_exception_ptr(one));
        failures.keep(device, std::make_exception_ptr(one));
        failures.keep(device, std::make_exception_ptr(
                                  Error(YOKE_E_COMM, "one, once more").telling(one.number())));
        synchronize(device);
        failures.keep(device, std::make_exception_ptr(Error(YOKE_E_COMM, "another")));
        expect_error(YOKE_E_COMM, {"another"}, [&] { synchronize(device); });
        synchronize(device);
    });
}

TEST(GroupDevices, StreamsOfGroupsRestWithTheirGroupsAndKeepTheirKindFromBeingDisabledBefore)
{
    in_fresh_process_with_streams([](Device &device, Device &other) {
        {
            std::vector<Ref<Group>> groups = init_threads(2, 0, kCall);
            each_rank(groups, [&](Group &group) {
                group.run(reduce_all(filled_on(device, 4, 1)), false);
                group.run(barrier(), false);
            });
            EXPECT_EQ(fake_streams.made, 2);
            empty_cache(nullptr);
            expect_error(
                YOKE_E_STATE,
                {"fake is in use", "a group of collectives with a stream of fake:0 (rank 1 of 2)"},
                [] { disable("fake"); });
        }
        std::vector<Ref<Group>> groups = init_threads(1, 0, kCall);
        for (Device *each : {&device, &other, &device})
            groups[0]->run(reduce_all(filled_on(*each, 4, 1)), false);
        EXPECT_EQ(fake_streams.made, 3);  // a stream rested in the cache
        groups.clear();
        empty_cache(nullptr);
        disable("fake");
    });
}

TEST(GroupDevices, WhatOneRankHasNoMemoryForTheOthersAreNotToldOf)
{
    in_fresh_process_with_streams([](Device &device, Device &) {
        std::vector<Ref<Group>> groups = init_threads(2, 0, kCall);
        const Tensor mine = filled_on(device, 1 << 20, 1), theirs = filled_on(device, 1 << 20, 1);
        fake.alloc_status = YOKE_E_OOM;
        expect_error(YOKE_E_OOM, {"pinned memory"},
                     [&] { groups[0]->run(reduce_all(mine), false); });
        fake.alloc_status = YOKE_OK;
        const auto told = each_rank(groups, [&](Group &group) {
            group.run(reduce_all(group.rank() ? theirs : mine), false);
        });
        EXPECT_EQ(told, std::vector<std::string>(2));
        EXPECT_EQ(values(mine)[99], 2);
    });
}

}  // namespace
}  // namespace yoke::test
