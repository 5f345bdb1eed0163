// Subgroups, shrunk groups, their memory and their end: core/comm/split.cpp, peer_memory.cpp, living_groups.cpp.
#include "core/comm/coalesce.h"
#include "tests/core/comm/threads.h"

#include <set>
#include <thread>

namespace yoke::test {
namespace {

IssuedCall reduce_all_of(const Tensor &t, const Group &group)
{
    Collective call = reduce_all(t);
    check_collective(call, {group.rank(), group.size()});
    return {std::move(call), nullptr};
}

// ---- Parts and memory -------------------------------------------------------------------------------------------

TEST(Group, SplitsByColorAndKey)
{
    std::vector<Ref<Group>> groups = init_threads(4, 0, kCall);
    const auto told = each_rank(groups, [](Group &group) {
        const int32_t rank = group.rank();
        const Ref<Group> part = group.split(rank == 3 ? -1 : rank % 2, -rank);
        EXPECT_EQ(part.present(), rank != 3);
        if (!part.present()) return;
        EXPECT_EQ(part->size(), rank % 2 ? 1 : 2);
        EXPECT_EQ(part->rank(), rank == 0 ? 1 : 0);  // the keys reverse the order
        const Tensor t = filled(1, static_cast<float>(rank));
        part->run(reduce_all(t), false);
        EXPECT_EQ(values(t)[0], rank % 2 ? 1 : 2);
    });
    EXPECT_EQ(told, std::vector<std::string>(4));
}

TEST(Group, ShrinksToTheRanksThatCome)
{
    std::vector<Ref<Group>> groups = init_threads(4, 0, kCall);
    const auto told = each_rank(groups, [](Group &group) {
        const int32_t rank = group.rank();
        if (rank == 1) return;
        const Ref<Group> part = group.shrink(1);
        EXPECT_EQ(part->size(), 3);
        EXPECT_EQ(part->rank(), rank == 0 ? 0 : rank - 1);
        const Tensor t = filled(1, static_cast<float>(rank));
        part->run(reduce_all(t), false);
        EXPECT_EQ(values(t)[0], 5);
        const Ref<Group> again = part->shrink(5);  // all ranks come
        again->run(reduce_all(t), false);
        EXPECT_EQ(values(t)[0], 15);
    });
    EXPECT_EQ(told, std::vector<std::string>(4));
    expect_error(YOKE_E_CANCELLED, {"ended by shrink() on rank"},
                 [&] { groups[1]->run(barrier(), false); });
    expect_error(YOKE_E_COMM, {"shrink", "rank 1", "called shrink too late", "a group of 3"},
                 [&] { (void)groups[1]->shrink(5); });
    expect_error(YOKE_E_STATE, {"was already shrunk"}, [&] { (void)groups[0]->shrink(5); });
    expect_error(YOKE_E_VALUE, {"'timeout' is 0"}, [&] { (void)groups[0]->shrink(0); });
}

TEST(Group, TellsAllRanksWhereOneDoesNotSplit)
{
    std::vector<Ref<Group>> groups = init_threads(3, 0, kCall);
    const auto told = each_rank(groups, [](Group &group) {
        if (group.rank() == 1)
            group.run(reduce_all(filled(2, 1)), false);
        else
            group.split(0, 0);
    });
    expect_all_told(told, {"do not agree on the call", "called split", "all_reduce of 2 float32"});
}

TEST(Group, FailsWhereRanksAskForUnlikeMemory)
{
    std::vector<Ref<Group>> groups = init_threads(3, 0, kCall);
    const auto told = each_rank(groups, [](Group &group) {
        const int64_t shape[] = {group.rank() == 1 ? 4 : 5};
        group.empty(shape, YOKE_F32, open_device("cpu"));
    });
    expect_all_told(told, {"empty: rank 0", "5 elements of float32", "rank 1", "4 of float32"});
    // The group has failed, as after any mismatched call.
    EXPECT_EQ(each_rank(groups, [](Group &each) { each.run(barrier(), false); }), told);
}

TEST(Group, RefusesMemoryThatIsNotThereAndGoesOn)
{
    std::vector<Ref<Group>> groups = init_threads(2, 0, kCall);
    const auto told = each_rank(groups, [](Group &group) {
        const int64_t huge[] = {int64_t{1} << 45}, negative[] = {-1};
        expect_error(YOKE_E_OOM, {"empty", "the 2 ranks on the host of rank 0", "are free"},
                     [&] { group.empty(huge, YOKE_F32, open_device("cpu")); });
        expect_error(YOKE_E_VALUE, {"empty", "[-1]", "0 or more"},
                     [&] { group.empty(negative, YOKE_F32, open_device("cpu")); });
        group.run(barrier(), false);
    });
    EXPECT_EQ(told, std::vector<std::string>(2));
}

TEST(Group, IssuesPartsOfOneTensorTogether)
{
    std::vector<Ref<Group>> groups = init_threads(2, 0, kCall);
    const auto told = each_rank(groups, [](Group &group) {
        const Tensor flat = filled(8, 1);
        const int64_t shape[] = {4}, strides[] = {1};
        const Tensor halves[] = {make_view(*flat, shape, strides, 0),
                                 make_view(*flat, shape, strides, 4)};
        run_together(group, {reduce_all_of(halves[0], group), reduce_all_of(halves[1], group)});
        EXPECT_EQ(values(flat), std::vector<float>(8, 2));
        expect_error(YOKE_E_STATE, {"coalesce", "all_reduce", "use the same memory"}, [&] {
            run_together(group, {reduce_all_of(flat, group), reduce_all_of(halves[1], group)});
        });
        group.run(barrier(), false);
    });
    EXPECT_EQ(told, std::vector<std::string>(2));
}

TEST(Group, IssuesColumnsOfOneTensorTogether)
{
    std::vector<Ref<Group>> groups = init_threads(2, 0, kCall);
    const auto told = each_rank(groups, [](Group &group) {
        const Tensor flat = filled(8, 1);
        const int64_t shape[] = {4}, strides[] = {2};
        const Tensor columns[] = {make_view(*flat, shape, strides, 0),
                                  make_view(*flat, shape, strides, 1)};
        run_together(group, {reduce_all_of(columns[0], group), reduce_all_of(columns[1], group)});
        EXPECT_EQ(values(flat), std::vector<float>(8, 2));
        expect_error(YOKE_E_STATE, {"coalesce", "all_reduce", "use the same memory"}, [&] {
            run_together(group, {reduce_all_of(flat, group), reduce_all_of(columns[1], group)});
        });
        group.run(barrier(), false);
    });
    EXPECT_EQ(told, std::vector<std::string>(2));
}

TEST(Group, RefusesInACoalesceWhatIsWantedAtOnce)
{
    std::vector<Ref<Group>> groups = init_threads(2, 0, kCall);
    const auto told = each_rank(groups, [](Group &group) {
        const int64_t shape[] = {4};
        const std::pair<const char *, std::function<void()>> calls[] = {
            {"split", [&] { (void)group.split(0, 0); }},
            {"empty", [&] { (void)group.empty(shape, YOKE_F32, open_device("cpu")); }},
            {"shrink", [&] { (void)group.shrink(1); }},
            {"monitored_barrier", [&] { group.monitored_barrier(1); }}};
        Coalescing::begin();
        for (const auto &[name, call] : calls)
            expect_error(YOKE_E_STATE, {name, "in a coalesce", "before or after"}, call);
        group.run(barrier(), false);
        Coalescing::end("coalesce");
        group.run(barrier(), false);
    });
    EXPECT_EQ(told, std::vector<std::string>(2));
}

TEST(Group, EndsTheWorksOfAThreadThatEndsInAnOpenCoalesce)
{
    std::vector<Ref<Group>> groups = init_threads(1, 0, kCall);
    const Tensor t = filled(2, 1);
    Ref<Work> work;
    std::thread([&] {
        Coalescing::begin();
        work = groups[0]->run(reduce_all(t), true);
    }).join();
    expect_error(YOKE_E_CANCELLED, {"dropped before they were issued"}, [&] { work->wait(20); });
    groups[0]->run(reduce_all(t), false);
}

TEST(Group, EndsMonitoredBarriersWhenItFails)
{
    std::vector<Ref<Group>> groups = init_threads(3, 0, kCall);
    const auto told = each_rank(groups, [](Group &group) {
        if (group.rank() == 1)
            group.abort("enough");
        else
            group.monitored_barrier(60);
    });
    for (const int rank : {0, 2})
        EXPECT_NE(told[rank].find("YOKE_E_CANCELLED"), std::string::npos) << told[rank];
}

TEST(Group, HasANumberThatNoOtherPartHas)
{
    std::vector<Ref<Group>> groups = init_threads(1, 0, kCall);
    std::set<std::string> numbers;
    for (const int32_t color : {1009, 0, 1009})
        numbers.insert(std::to_string(groups[0]->split(color, 0)->number()));
    EXPECT_EQ(numbers.size(), 3u);
}

TEST(Group, MakesMemoryBehindTheCallsBeforeIt)
{
    std::vector<Ref<Group>> groups = init_threads(2, 0, kCall);
    const auto told = each_rank(groups, [](Group &group) {
        const int64_t shape[] = {1000};
        const Tensor other = filled(300000, 1);
        for (int i = 0; i < 30; ++i) {
            const Ref<Work> before = group.run(reduce_all(other, YOKE_REDUCE_MAX), true);
            Tensor t = group.empty(shape, YOKE_F32, open_device("cpu"));
            ops::fill_(*t, 1.0);
            const Ref<Work> with = group.run(reduce_all(t), true);
            const Ref<Work> behind = group.run(reduce_all(other, YOKE_REDUCE_MAX), true);
            with->wait(-1);
            EXPECT_EQ(values(t)[999], 2);
            t = {};  // during the second call
            behind->wait(-1);
        }
    });
    EXPECT_EQ(told, std::vector<std::string>(2));
}

TEST(Group, GivesMemoryThatOutlivesWhoMadeIt)
{
    std::vector<Ref<Group>> groups = init_threads(2, 0, kCall);
    std::vector<Tensor> kept(2);
    const auto told = each_rank(groups, [&](Group &group) {
        const int64_t shape[] = {3, 2};
        Tensor t = group.empty(shape, YOKE_F32, open_device("cpu"));
        ops::fill_(*t, group.rank() + 1.0);
        group.run(reduce_all(t), false);
        kept[static_cast<size_t>(group.rank())] = std::move(t);
    });
    EXPECT_EQ(told, std::vector<std::string>(2));
    groups.clear();
    for (const Tensor &each : kept) EXPECT_EQ(values(each), std::vector<float>(6, 3));
}

TEST(Group, IsSeenToBeLeftThoughItsMemoryIsKept)
{
    constexpr double kTooLong = 5;
    std::vector<Ref<Group>> groups = init_threads(2, kTooLong, kCall);
    std::vector<Tensor> kept(2);
    const auto told = each_rank(groups, [&](Group &group) {
        const int64_t shape[] = {4};
        const Tensor t = kept[static_cast<size_t>(group.rank())] =
            group.empty(shape, YOKE_F32, open_device("cpu"));
        ops::fill_(*t, group.rank() + 1.0);
        group.run(reduce_all(t), false);
    });
    EXPECT_EQ(told, std::vector<std::string>(2));
    groups[0] = {};
    expect_error(YOKE_E_COMM, {"rank 0 (host", "has left the group"},
                 [&] { groups[1]->run(barrier(), false); });
    EXPECT_EQ(values(kept[0]), std::vector<float>(4, 3));
    ops::fill_(*kept[0], 7.0);
    EXPECT_EQ(values(kept[0]), std::vector<float>(4, 7));
}

// The group's thread is then the last that holds the call's tensors.
TEST(Group, IsLeftWhileItsCallsGoOn)
{
    for (int time = 0; time < 50; ++time) {
        const int64_t before = live_tensor_count(), shape[] = {100000};
        std::vector<Ref<Group>> groups = init_threads(1, 0, kCall);
        for (int call = 0; call < 4; ++call)
            (void)groups[0]->run(reduce_all(groups[0]->empty(shape, YOKE_F32, open_device("cpu"))),
                                 true);
        groups.clear();
        EXPECT_EQ(live_tensor_count(), before);
    }
}

TEST(Group, IsLeftByItsOwnThread)
{
    struct Host {
        std::vector<Ref<Group>> groups;
        std::vector<float> memory;
        std::promise<void> left;
        static void leave(void *user)
        {
            auto *self = static_cast<Host *>(user);
            self->groups.clear();
            self->left.set_value();
        }
    };
    for (int time = 0; time < 20; ++time) {
        Host host{init_threads(1, 0, kCall), std::vector<float>(100000), {}};
        const int64_t shape[] = {100000};
        Tensor brought = from_memory(host.memory.data(), shape, nullptr, YOKE_F32,
                                     open_device("cpu"), Host::leave, &host, kCall);
        const Tensor other = filled(100000, 1);
        (void)host.groups[0]->run(reduce_all(brought), true);
        const Ref<Work> last = host.groups[0]->run(reduce_all(other), true);
        brought = {};
        host.left.get_future().wait();
        EXPECT_TRUE(last->wait(10));
    }
}

// Store that counts the held keys and the watchers of a cause.
class CountingStore final : public Store {
public:
    std::optional<uint64_t> when_set(std::string_view key, Then then) override
    {
        ++watched;
        return table_.when_set(key, std::move(then));
    }
    void forget(std::string_view key, uint64_t number) noexcept override
    {
        --watched;
        table_.forget(key, number);
    }
    std::string where() const override { return table_.where(); }
    size_t held() const
    {
        const std::lock_guard lock(mutex_);
        return keys_.size();
    }
    std::atomic<int> watched{0};

private:
    std::vector<std::string> serve(const Request &request, const Patience &patience) override
    {
        const std::string &key = request.keys.front();
        const Deadline deadline = patience.deadline;
        const bool sets = request.kind == Request::kSet || request.kind == Request::kSetOnce ||
                          request.kind == Request::kAdd;
        if (sets) note(key, true);
        switch (request.kind) {
            case Request::kSet:
                table_.set(key, request.value, deadline);
                return {};
            case Request::kAdd:
                return {std::to_string(table_.add(key, request.delta, deadline))};
            case Request::kSetOnce:
                return {table_.set_once(key, request.value, deadline)};
            case Request::kTryGet:
                if (auto value = table_.try_get(key, deadline)) return {std::move(*value)};
                return {};
            case Request::kRemove:
                for (const std::string &each : request.keys) note(each, false);
                table_.remove_all(request.keys, deadline);
                return {};
            default:
                return table_.get_all(request.keys, deadline);
        }
    }
    void note(const std::string &key, bool is_there)
    {
        const std::lock_guard lock(mutex_);
        if (is_there)
            keys_.insert(key);
        else
            keys_.erase(key);
    }
    void wake() noexcept override {}

    HashStore table_;
    mutable std::mutex mutex_;
    std::set<std::string> keys_;
};

Members alone(std::shared_ptr<Store> store)
{
    Members members;
    members.ranks.resize(1);
    members.ranks[0].address = "127.0.0.1";
    members.store = std::move(store);
    return members;
}

TEST(Group, IsNotTakenForOneThatLivesWhenItHasEnded)
{
    const auto store = std::make_shared<CountingStore>();
    {
        const Ref<Group> group = Group::make(alone(store), {}, Deadline::after(20), kCall);
        EXPECT_EQ(store->watched, 1);
    }
    EXPECT_EQ(store->watched, 0);
}

// A rank at a barrier needs no keys of earlier barriers.
TEST(Group, LeavesTheKeysOfItsLastMonitoredBarrierAlone)
{
    const auto store = std::make_shared<CountingStore>();
    std::vector<Ref<Group>> groups(2);
    std::vector<std::future<void>> making;
    for (const int32_t rank : {0, 1})
        making.push_back(std::async(std::launch::async, [&, rank] {
            Members members = alone(store);
            members.ranks.push_back(members.ranks[0]);
            members.ranks[1].rank = 1;
            members.rank = rank;
            groups[static_cast<size_t>(rank)] =
                Group::make(std::move(members), {}, Deadline::after(20), kCall);
        }));
    for (auto &each : making) each.get();
    EXPECT_EQ(store->held(), 0u);  // keys of making the group
    expect_error(YOKE_E_TIMEOUT, {"monitored_barrier", "rank 1"},
                 [&] { groups[0]->monitored_barrier(0.01); });
    const size_t of_one_given_up = store->held();
    const auto told = each_rank(groups, [](Group &group) {
        for (int i = 0; i < 100; ++i) group.monitored_barrier(20);
    });
    EXPECT_EQ(told, std::vector<std::string>(2));
    EXPECT_LE(store->held(), of_one_given_up + 1);
}

}  // namespace
}  // namespace yoke::test
