// Groups whose ranks are threads: values, order, failures and reports to all ranks. See core/comm/group.cpp,
// call_queue.cpp, call_runner.cpp, failure.cpp, blame.cpp, collective.cpp, cause_of.cpp.
#include "tests/core/comm/threads.h"

namespace yoke::test {
namespace {

Collective checked(Collective call, const Group &group)
{
    check_collective(call, {group.rank(), group.size()});
    return call;
}

TEST(Group, GivesEveryRankWhatItsCallSays)
{
    std::vector<Ref<Group>> groups = init_threads(3, 0, kCall);
    const auto told = each_rank(groups, [](Group &group) {
        const auto rank = static_cast<float>(group.rank());
        const Tensor t = filled(2, rank + 1), out = filled(6, -1), part = filled(2, -1);
        group.run(reduce_all(t), false);
        EXPECT_EQ(values(t), (std::vector<float>{6, 6}));
        group.run({YOKE_COMM_ALL_GATHER, -1, -1, filled(2, rank), out}, false);
        EXPECT_EQ(values(out), (std::vector<float>{0, 0, 1, 1, 2, 2}));
        group.run({YOKE_COMM_REDUCE_SCATTER, YOKE_REDUCE_MAX, -1, out, part}, false);
        EXPECT_EQ(values(part), (std::vector<float>{rank, rank}));
        group.run({YOKE_COMM_BROADCAST, -1, 2, part, part}, false);
        EXPECT_EQ(values(part), (std::vector<float>{2, 2}));
        const Tensor at_root = group.rank() == 1 ? filled(3, 0) : Tensor();
        group.run({YOKE_COMM_GATHER, -1, 1, filled(1, rank), at_root}, false);
        if (at_root.present()) {
            EXPECT_EQ(values(at_root), (std::vector<float>{0, 1, 2}));
        }
        const Tensor next = filled(1, -1);
        const int32_t right = (group.rank() + 1) % 3, left = (group.rank() + 2) % 3;
        const Ref<Work> sent = group.run({YOKE_COMM_SEND, -1, right, filled(1, rank), {}}, true);
        group.run({YOKE_COMM_RECV, -1, left, {}, next}, false);
        sent->wait(-1);
        EXPECT_EQ(values(next), std::vector<float>{static_cast<float>(left)});
    });
    EXPECT_EQ(told, std::vector<std::string>(3));
}

TEST(Group, RunsCallsInTheOrderInWhichTheyWereIssued)
{
    std::vector<Ref<Group>> groups = init_threads(2, 0, kCall);
    const auto told = each_rank(groups, [](Group &group) {
        const Tensor a = filled(1000, 1), b = filled(3, 2);
        std::vector<Ref<Work>> works;
        for (int i = 0; i < 20; ++i) works.push_back(group.run(reduce_all(i % 2 ? a : b), true));
        const Tensor last = filled(1, 5);
        group.run(reduce_all(last), false);
        for (const Ref<Work> &each : works) {
            EXPECT_TRUE(each->is_done());
            each->wait(-1);  // earlier calls on this tensor do not count as writes amid the call
        }
        EXPECT_EQ(values(a)[999], 1024);
        EXPECT_EQ(values(b)[0], 2048);
        EXPECT_EQ(values(last)[0], 10);
    });
    EXPECT_EQ(told, std::vector<std::string>(2));
    EXPECT_EQ(groups[0]->records().size(), 21u);
    EXPECT_EQ(groups[0]->records()[20].state, CallRecord::kDone);
}

TEST(Group, TakesTensorsOfAnyStrides)
{
    std::vector<Ref<Group>> groups = init_threads(2, 0, kCall);
    const auto told = each_rank(groups, [](Group &group) {
        const Tensor base = filled(6, static_cast<float>(group.rank() + 1));
        const int64_t shape[] = {3}, strides[] = {2};
        const Tensor every_other = make_view(*base, shape, strides, 0);
        group.run(reduce_all(every_other), false);
        EXPECT_EQ(values(base)[0], 3);
        EXPECT_EQ(values(base)[1], static_cast<float>(group.rank() + 1));
        EXPECT_EQ(values(base)[4], 3);
    });
    EXPECT_EQ(told, std::vector<std::string>(2));
}

// ---- Arguments that do not fit ----------------------------------------------------------------------------------

TEST(Group, RefusesWhatDoesNotFitBeforeOthersLearnOfIt)
{
    std::vector<Ref<Group>> groups = init_threads(2, 0, kCall);
    Group &group = *groups[0];
    const Tensor t = filled(3, 1);
    expect_error(YOKE_E_VALUE, {"broadcast", "'root' is 2", "0 to 1"}, [&] {
        group.run({YOKE_COMM_BROADCAST, -1, 2, t, t}, false);
    });
    expect_error(YOKE_E_VALUE, {"send", "'dst' is 0", "this rank itself"}, [&] {
        group.run({YOKE_COMM_SEND, -1, 0, t, {}}, false);
    });
    expect_error(
        YOKE_E_VALUE, {"reduce_scatter", "'t'", "[3]", "cannot be divided among the 2 ranks"}, [&] {
            group.run({YOKE_COMM_REDUCE_SCATTER, YOKE_REDUCE_SUM, -1, t, filled(1, 0)}, false);
        });
    expect_error(YOKE_E_VALUE, {"all_gather", "[3]", "[4]", "'out'", "it must have 3"}, [&] {
        group.run({YOKE_COMM_ALL_GATHER, -1, -1, t, filled(4, 0)}, false);
    });
    expect_error(YOKE_E_TYPE, {"all_gather", "float32", "int64"}, [&] {
        group.run({YOKE_COMM_ALL_GATHER, -1, -1, t, ops::cast(*filled(6, 0), YOKE_I64)}, false);
    });
    expect_error(YOKE_E_TYPE, {"all_reduce", "'op' is 'avg'", "int64"},
                 [&] { group.run(reduce_all(ops::cast(*t, YOKE_I64), YOKE_REDUCE_AVG), false); });
    expect_error(YOKE_E_TYPE, {"all_reduce", "'op' is 'sum'", "bool"},
                 [&] { group.run(reduce_all(ops::cast(*t, YOKE_BOOL)), false); });
    expect_error(YOKE_E_VALUE, {"scatter", "'t' is missing", "rank 0"}, [&] {
        group.run({YOKE_COMM_SCATTER, -1, 0, {}, t}, false);
    });
    expect_error(YOKE_E_VALUE, {"all_reduce", "'op' is 9"},
                 [&] { group.run(reduce_all(t, 9), false); });
    const int64_t shape[] = {4}, strides[] = {0};
    expect_error(YOKE_E_VALUE, {"all_reduce", "expanded", "axis 0"},
                 [&] { group.run(reduce_all(make_view(*t, shape, strides, 0)), false); });
    // No refused call counts as a call of the group.
    const auto told = each_rank(groups, [](Group &each) { each.run(barrier(), false); });
    EXPECT_EQ(told, std::vector<std::string>(2));
}

// ---- Failures ---------------------------------------------------------------------------------------------------

TEST(Group, ShowsBothCallsToAllRanksWhereTheyDiffer)
{
    const std::pair<std::function<Collective(int32_t)>, std::vector<const char *>> cases[] = {
        {[](int32_t rank) { return reduce_all(filled(2 + rank / 2, 1)); },
         {"the number of elements", "of 2 float32", "of 3 float32"}},
        {[](int32_t rank) { return rank == 2 ? barrier() : reduce_all(filled(2, 1)); },
         {"the call", "all_reduce of 2 float32, sum", "called barrier"}},
        {[](int32_t rank) {
             return reduce_all(filled(2, 1), rank == 2 ? YOKE_REDUCE_MAX : YOKE_REDUCE_SUM);
         },
         {"the reduction", ", sum", ", max"}},
        {[](int32_t rank) {
             const Tensor t = filled(2, 1);
             return Collective{YOKE_COMM_BROADCAST, -1, rank / 2, t, t};
         },
         {"the root", "broadcast of 2 float32, root 0", "broadcast of 2 float32, root 1"}},
        {[](int32_t rank) {
             const Tensor t = filled(2, 1);
             return Collective{YOKE_COMM_REDUCE, YOKE_REDUCE_SUM, rank, t, t};
         },
         {"the root", "reduce of 2 float32, sum, root"}},
        {[](int32_t rank) {
             return reduce_all(rank == 2 ? ops::cast(*filled(2, 1), YOKE_F64) : filled(2, 1));
         },
         {"the dtype", "float32", "float64"}},
    };
    for (const auto &[make, parts] : cases) {
        std::vector<Ref<Group>> groups = init_threads(3, 0, kCall);
        const auto told =
            each_rank(groups, [&](Group &group) { group.run(make(group.rank()), false); });
        expect_all_told(told, {"YOKE_E_COMM", "do not agree"});
        for (const char *part : parts) EXPECT_NE(told[0].find(part), std::string::npos) << told[0];
        // The group stays failed, with the same text.
        const auto later =
            each_rank(groups, [](Group &group) { group.run(barrier(), true)->wait(-1); });
        EXPECT_EQ(later, told);
    }
}

// Both signatures are the signature of the send.
TEST(Group, ShowsARecvAsOneThoughTheSendDiffers)
{
    std::vector<Ref<Group>> groups = init_threads(2, 0, kCall);
    const auto told = each_rank(groups, [](Group &group) {
        const int32_t other = 1 - group.rank();
        const Tensor out = filled(3, 0);
        // Rank 0 makes two calls with this number; the recv is the second.
        std::vector<IssuedCall> calls;
        calls.push_back(
            {checked({YOKE_COMM_SEND, -1, other, filled(3 + group.rank(), 1), {}}, group),
             nullptr});
        calls.push_back({checked({YOKE_COMM_RECV, -1, other, {}, out}, group), nullptr});
        if (group.rank() == 1) calls.pop_back();
        run_together(group, std::move(calls));
    });
    expect_all_told({told[0]},
                    {"recv: ranks do not agree on the number of elements: rank 0 (host",
                     ") called recv of 3 float32 from rank 1, and rank 1 (host",
                     ") called send of 4 float32 to rank 0 (message 1 between the two ranks)"});
}

// The other rank's send meets a call that this rank has not reached.
TEST(Group, ShowsTheOrderOfCallsThatAreIssuedTogether)
{
    for (const bool has_barrier_first : {true, false}) {
        std::vector<Ref<Group>> groups = init_threads(2, 0, kCall);
        const auto told = each_rank(groups, [&](Group &group) {
            std::vector<IssuedCall> calls;
            const bool is_sender = group.rank() == 0;
            const Collective message = is_sender
                                           ? Collective{YOKE_COMM_SEND, -1, 1, filled(3, 1), {}}
                                           : Collective{YOKE_COMM_RECV, -1, 0, {}, filled(3, 0)};
            calls.push_back({checked(message, group), nullptr});
            const bool is_first = is_sender != has_barrier_first;
            calls.insert(is_first ? calls.begin() : calls.end(),
                         {checked(barrier(), group), nullptr});
            run_together(group, std::move(calls));
        });
        const std::string own = has_barrier_first ? "barrier before recv of 3 float32 from rank 0"
                                                  : "recv of 3 float32 from rank 0 before barrier";
        expect_all_told({told[1]}, {"ranks do not agree on the order of their calls in coalesce: "
                                    "rank 1 (host",
                                    own.c_str(), "but rank 0 (host",
                                    has_barrier_first ? "called send of 3 float32 to rank 1"
                                                      : "called barrier"});
    }
}

TEST(Group, NamesTheRankFromWhichARecvWaits)
{
    std::vector<Ref<Group>> groups = init_threads(2, 0.1, kCall);
    const auto told = each_rank(groups, [](Group &group) {
        if (group.rank() == 0) group.run({YOKE_COMM_RECV, -1, 1, {}, filled(3, 0)}, false);
    });
    expect_all_told({told[0]}, {"recv: timed out; rank 1 (host",
                                "did not arrive at recv of 3 float32 from rank 1"});
}

TEST(Group, NamesTheRankThatDoesNotCome)
{
    std::vector<Ref<Group>> groups = init_threads(3, 0.2, kCall);
    const auto told = each_rank(groups, [](Group &group) {
        if (group.rank() != 1) group.run(reduce_all(filled(4, 1)), false);
    });
    EXPECT_EQ(told[1], "");
    expect_all_told({told[0], told[2]}, {"YOKE_E_TIMEOUT", "rank 1 (host", "did not arrive at",
                                         "all_reduce of 4 float32, sum"});
    // A rank that comes later raises the same error.
    expect_error(YOKE_E_TIMEOUT, {"rank 1 (host", "did not arrive at"},
                 [&] { groups[1]->run(barrier(), false); });
}

// Amid the elements of a collective all ranks wait for each other. A healthy rank may be as late as a failed rank.
TEST(Group, NamesAllThatMayBeLateWhereNobodyCanTellWhich)
{
    const std::vector<RankInfo> ranks = init_threads(12, 0, kCall)[0]->ranks();
    CurrentCall current;
    current.signature = {1, 1, 4, YOKE_COMM_ALL_REDUCE, YOKE_F32, YOKE_REDUCE_SUM, -1, 0, 0U};
    const auto text = [&](const std::vector<int32_t> &suspects) {
        const Cause cause = cause_of(current, Suspects{suspects, {}, {}}, ranks);
        EXPECT_EQ(cause.status, YOKE_E_TIMEOUT);
        return cause.text;
    };
    const auto expect = [](const std::string &told, std::initializer_list<const char *> parts) {
        expect_all_told({told}, parts);
    };
    expect(text({2}), {"rank 2 (host", "did not arrive at all_reduce of 4 float32, sum"});
    expect(text({1, 2}), {"one of several ranks did not arrive at all_reduce of 4",
                          "check which of these ranks", ": rank 1 (host", "), rank 2 (host"});
    const std::string many = text({1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
    expect(many, {"rank 8 (host", " and 2 more"});
    EXPECT_EQ(many.find("rank 9"), std::string::npos);
    expect(text({}), {"all ranks arrived at all_reduce of 4", "wait for each other"});
}

TEST(Group, NamesWhoKeepsARankFromAnother)
{
    std::vector<Ref<Group>> groups = init_threads(3, 0.3, kCall);
    std::promise<void> waits;
    const auto told = each_rank(groups, [&](Group &group) {
        if (group.rank() == 1) {
            const Ref<Work> work = group.run({YOKE_COMM_RECV, -1, 2, {}, filled(3, 0)}, true);
            waits.set_value();
            work->wait(-1);
        }
        if (group.rank() != 0) return;
        waits.get_future().wait();
        group.run({YOKE_COMM_RECV, -1, 1, {}, filled(3, 0)}, false);
    });
    expect_all_told({told[0], told[1]},
                    {"YOKE_E_TIMEOUT", "recv: timed out; rank 2 (host", "did not arrive at"});
}

TEST(Group, EndsOnAllRanksByAnAbort)
{
    std::vector<Ref<Group>> groups = init_threads(3, 0, kCall);
    std::vector<Ref<Work>> works;
    for (int i : {0, 1}) works.push_back(groups[static_cast<size_t>(i)]->run(barrier(), true));
    groups[2]->abort("out of data");
    for (const Ref<Work> &each : works)
        expect_error(YOKE_E_CANCELLED, {"abort()", "rank 2 (host", "out of data"},
                     [&] { each->wait(-1); });
    for (const Ref<Group> &group : groups)
        expect_error(YOKE_E_CANCELLED, {"out of data"}, [&] { group->run(barrier(), false); });
}

TEST(Group, TellsOfTensorsThatAreWrittenMeanwhile)
{
    std::vector<Ref<Group>> groups = init_threads(2, 0, kCall);
    const Tensor t = filled(4, 1);
    const Ref<Work> work = groups[0]->run(reduce_all(t), true);
    t->storage->note_written(
        "fill_");  // as a write does, but for the bytes, which the engine reads
    // meanwhile: the peer has not come
    groups[1]->run(reduce_all(filled(4, 1)), false);
    expect_error(YOKE_E_STATE, {"all_reduce", "fill_ wrote", "while the call was running"},
                 [&] { work->wait(-1); });
    // The error concerns only this work, not the group.
    const auto told = each_rank(groups, [](Group &group) { group.run(barrier(), false); });
    EXPECT_EQ(told, std::vector<std::string>(2));
}

TEST(Group, ListsAllThatAreMissingAtAMonitoredBarrier)
{
    std::vector<Ref<Group>> groups = init_threads(4, 0, kCall);
    const auto told = each_rank(groups, [](Group &group) {
        if (group.rank() % 2 == 0) group.monitored_barrier(0.2);
    });
    expect_all_told({told[0], told[2]},
                    {"YOKE_E_TIMEOUT", "monitored_barrier", "rank 1 (host", "rank 3 (host"});
    for (size_t i : {1u, 3u}) EXPECT_EQ(told[i], "");
    const auto after = each_rank(groups, [](Group &group) { group.run(barrier(), false); });
    EXPECT_EQ(after, std::vector<std::string>(4));
}

// Some ranks came to barriers that timed out, some of them several times. The next barrier still serves all ranks.
TEST(Group, MeetsAtTheMonitoredBarrierBehindOneThatTimedOut)
{
    std::vector<Ref<Group>> groups = init_threads(3, 10, kCall);
    std::atomic<int> come{0};
    const auto all_come = [&](Group &group) {
        ++come;
        group.monitored_barrier(5);
        EXPECT_GE(come.load(), 3);
        group.run(barrier(), false);
        come = 0;
        group.run(barrier(), false);
    };
    for (const int tries : {1, 3}) {
        for (int i = 0; i < tries; ++i)
            expect_error(YOKE_E_TIMEOUT, {"rank 1 (host", "rank 2 (host"},
                         [&] { groups[0]->monitored_barrier(0.02); });
        expect_error(YOKE_E_TIMEOUT, {"rank 2 (host"}, [&] { groups[1]->monitored_barrier(0.02); });
        for (int again = 0; again < 2; ++again)
            EXPECT_EQ(each_rank(groups, all_come), std::vector<std::string>(3));
    }
}

// A rank that waits while another rank gives up continues to wait, also for the rank that gave up.
TEST(Group, WaitsAtAMonitoredBarrierForThoseThatComeAgain)
{
    std::vector<Ref<Group>> groups = init_threads(3, 0, kCall);
    auto waiting = std::async(std::launch::async, [&] { groups[0]->monitored_barrier(20); });
    for (int i = 0; i < 3; ++i) EXPECT_THROW(groups[1]->monitored_barrier(0.05), Error);
    std::vector<Ref<Group>> others{groups[1], groups[2]};
    const auto told = each_rank(others, [](Group &group) { group.monitored_barrier(20); });
    EXPECT_EQ(told, std::vector<std::string>(2));
    waiting.get();
}

TEST(Group, RefusesSizesThatNoProcessHas)
{
    for (const int32_t size : {0, -1, 100000})
        expect_error(YOKE_E_VALUE, {kCall, "'size' is", "1 to 1024"},
                     [&] { (void)init_threads(size, 0, kCall); });
    expect_error(YOKE_E_VALUE, {kCall, "'timeout' is -1"},
                 [] { (void)init_threads(1, -1, kCall); });
}

}  // namespace
}  // namespace yoke::test
