// Waits of a group's ranks for each other: deadlines, dead ranks, and interrupts of the host program.
#include "core/base/config.h"
#include "core/base/interrupt.h"
#include "core/base/log.h"
#include "core/comm/coalesce.h"
#include "core/store/store_hash.h"
#include "kernels/cpu/comm/descriptor.h"
#include "tests/core/comm/threads.h"
#include "tests/core/fresh_process.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <future>

namespace yoke::test {
namespace {

// Returns ranks of a job as threads of the test. All of them watch the same watcher.
Members ranks_of(int32_t size, const std::shared_ptr<Store> &store,
                 const std::shared_ptr<Watcher> &watcher)
{
    Members members;
    for (int32_t rank = 0; rank < size; ++rank) {
        RankInfo info;
        info.rank = rank;
        info.size = size;
        info.host = "here";
        info.process = 100 + rank;
        info.address = "127.0.0.1";
        members.ranks.push_back(info);
        members.met_as.push_back(rank);
    }
    members.store = store;
    members.watcher = watcher;
    return members;
}

std::vector<Ref<Group>> made(const Members &members, const GroupOptions &options = {})
{
    std::vector<std::future<Ref<Group>>> making;
    for (int32_t rank = 0; rank < members.size(); ++rank)
        making.push_back(std::async(std::launch::async, [&, rank] {
            Members own = members;
            own.rank = rank;
            return Group::make(own, options, Deadline::after(20), kCall);
        }));
    std::vector<Ref<Group>> groups;
    for (auto &each : making) groups.push_back(each.get());
    return groups;
}

// ---- Forks ------------------------------------------------------------------------------------------------------

// A fork while another thread makes a descriptor waits until the descriptor is listed, so the child can close it.
TEST(GroupWaits, AForkAmidTheMakingOfADescriptorLeavesTheChildNone)
{
    using cpu::comm::Descriptor;
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    std::promise<void> begun, forked;
    const auto make = [&] {
        const int made = dup(ends[1]);
        begun.set_value();
        (void)forked.get_future().wait_for(std::chrono::milliseconds(100));
        return made;
    };
    std::future<Descriptor> making =
        std::async(std::launch::async, [&] { return Descriptor::made(make); });
    begun.get_future().wait();
    const pid_t child = fork();
    if (child == 0) {
        cpu::comm::close_in_child();
        close(ends[1]);
        char byte;
        alarm(5);
        _exit(read(ends[0], &byte, 1) == 0 ? 0 : 1);  // end of file, because no writer is left
    }
    forked.set_value();
    making.get() = {};
    close(ends[1]);
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    close(ends[0]);
}

// ---- Deadlines --------------------------------------------------------------------------------------------------

TEST(GroupWaits, TheMakingEndsAtTheDeadlineOfItsCall)
{
    const Members members = ranks_of(2, std::make_shared<HashStore>(), nullptr);
    expect_error(YOKE_E_TIMEOUT,
                 {"init_all: timed out after 0.1 s; ranks that did not arrive: rank 1 (host here"},
                 [&] { (void)Group::make(members, {}, Deadline::after(0.1), kCall); });
}

GroupOptions late_after(double seconds)
{
    GroupOptions options;
    options.timeout_s = seconds;
    return options;
}

// The deadlines of the other ranks have passed, as each rank reports in the store.
TEST(GroupWaits, RanksThatReceiveFromEachOtherInARingAreAllNamed)
{
    const auto store = std::make_shared<HashStore>();
    const std::vector<Ref<Group>> groups = made(ranks_of(4, store, nullptr), late_after(0.05));
    const auto misses = [&](int rank, int other) {
        const std::string text = format("%d recv of 4 float32 from rank %d", other, other);
        store->set("misses/" + std::to_string(rank), text, Deadline::after(0));
    };
    misses(1, 2), misses(2, 0), misses(3, 2);
    expect_error(YOKE_E_TIMEOUT,
                 {"recv: timed out; 3 ranks waited in a ring",
                  ": rank 0 (host here, process 100) in recv of 4",
                  "from rank 1, rank 1 (host here, process 101) in recv of 4 float32 from rank 2",
                  ", rank 2 (host here, process 102) in recv of 4 float32 from rank 0; change"},
                 [&] {
                     const Tensor t = filled(4, 0);
                     groups[0]->run({YOKE_COMM_RECV, -1, 1, {}, t}, false);
                 });
}

TEST(GroupWaits, ACallThatOneRankRefusedIsToldOfAtTheDeadlineOfTheOthers)
{
    const std::vector<Ref<Group>> groups =
        made(ranks_of(2, std::make_shared<HashStore>(), nullptr), late_after(0.05));
    expect_error(YOKE_E_VALUE, {"broadcast", "'root' is 7"}, [&] {
        const Tensor t = filled(4, 0);
        groups[1]->run({YOKE_COMM_BROADCAST, -1, 7, t, t}, false);
    });
    expect_error(YOKE_E_TIMEOUT,
                 {"barrier: timed out; rank 1 (host here, process 101) did not arrive at barrier",
                  "the call in its place was refused: broadcast: argument 'root' is 7", "stopped"},
                 [&] { groups[0]->run(barrier(), false); });
}

TEST(GroupWaits, SplitsAndMemoryThatOneRankRefusedAreToldOfToo)
{
    const int64_t negative[] = {-1};
    const std::pair<const char *, std::function<void(Group &)>> calls[] = {
        {"empty", [&](Group &group) { (void)group.empty(negative, YOKE_F32, open_device("cpu")); }},
        {"split", [&](Group &group) {
             Coalescing::begin();
             const struct Drop {
                 ~Drop() { Coalescing::drop("coalesce"); }
             } when_done;
             (void)group.split(0, 0);
         }}};
    for (const auto &[name, call] : calls) {
        const std::vector<Ref<Group>> groups =
            made(ranks_of(2, std::make_shared<HashStore>(), nullptr), late_after(0.05));
        try {
            call(*groups[1]);
            ADD_FAILURE() << name;
        } catch (const Error &) {
        }
        const std::string refused = std::string("was refused: ") + name;
        expect_error(YOKE_E_TIMEOUT, {refused.c_str()}, [&] { groups[0]->run(barrier(), false); });
    }
}

// Sends and receives are counted apart.
TEST(GroupWaits, ASendThatOneRankRefusedIsToldOfToWhoReceivesUntilItSendsAnother)
{
    const auto store = std::make_shared<HashStore>();
    const std::vector<Ref<Group>> groups = made(ranks_of(2, store, nullptr), late_after(0.05));
    const Tensor t = filled(4, 0);
    const auto refuse = [&] {
        expect_error(YOKE_E_VALUE, {"send", "'dst' is 7"}, [&] {
            groups[1]->run({YOKE_COMM_SEND, -1, 7, t, {}}, false);
        });
    };
    refuse();
    EXPECT_FALSE(store->has("refused/1"));
    EXPECT_TRUE(store->has("refused_message/1"));
    groups[1]->run({YOKE_COMM_SEND, -1, 0, t, {}}, false);
    EXPECT_FALSE(store->has("refused_message/1"));
    groups[0]->run({YOKE_COMM_RECV, -1, 1, {}, t}, false);
    refuse();
    expect_error(YOKE_E_TIMEOUT,
                 {"recv: timed out; rank 1 (host here, process 101) did not arrive at recv of 4",
                  "was refused: send: argument 'dst' is 7"},
                 [&] {
                     groups[0]->run({YOKE_COMM_RECV, -1, 1, {}, t}, false);
                 });
}

// Rank 1 answered the shrink, but does not make the new group.
TEST(GroupWaits, AShrinkEndsThoughOneDoesNotMakeTheGroup)
{
    const auto store = std::make_shared<HashStore>();
    const std::vector<Ref<Group>> groups = made(ranks_of(2, store, nullptr));
    store->set("shrink/1/here/1", "", Deadline::after(0));
    expect_error(YOKE_E_TIMEOUT, {"shrink", "rank 1 (host here"},
                 [&] { (void)groups[0]->shrink(0.5); });
}

// ---- Dead ranks -------------------------------------------------------------------------------------------------

TEST(GroupWaits, AMonitoredBarrierListsTheDeadAtOnce)
{
    const auto store = std::make_shared<HashStore>();
    const auto watcher = std::make_shared<Watcher>();
    std::vector<Ref<Group>> groups = made(ranks_of(4, store, watcher));
    std::vector<Ref<Group>> living{groups[0], groups[1]};
    const auto come = [](Group &group) { group.monitored_barrier(600); };
    auto told = std::async(std::launch::async, [&] { return each_rank(living, come); });
    store->wait({"monitored/1/0", "monitored/1/1"}, Deadline::after(20));
    watcher->tell({PeerEvent::kEnded, 2, 0, "", ""});
    const std::initializer_list<const char *> parts = {
        "YOKE_E_COMM monitored_barrier", "ranks died: rank 2 (host here, process 102)",
        "ranks that did not arrive yet: rank 3 (host here, process 103)"};
    expect_all_told(told.get(), parts);
    for (const Ref<Group> &each : living)  // at once, the next time
        expect_error(YOKE_E_COMM, {"ranks died: rank 2 (host here, process 102)"},
                     [&] { come(*each); });
}

TEST(GroupWaits, AMonitoredBarrierEndsWellToWhichTheDeadHadCome)
{
    const auto store = std::make_shared<HashStore>();
    const auto watcher = std::make_shared<Watcher>();
    std::vector<Ref<Group>> groups = made(ranks_of(3, store, watcher));
    store->add("monitored/1/come", 1, Deadline::after(0));
    store->set("monitored/1/2", "", Deadline::after(0));
    std::vector<Ref<Group>> first{groups[0]}, second{groups[1]};
    const auto come = [](Group &group) { group.monitored_barrier(20); };
    auto told = std::async(std::launch::async, [&] { return each_rank(first, come); });
    store->wait({"monitored/1/0"}, Deadline::after(20));
    watcher->tell({PeerEvent::kEnded, 2, 0, "", ""});
    EXPECT_EQ(each_rank(second, come), std::vector<std::string>(1));
    EXPECT_EQ(told.get(), std::vector<std::string>(1));
}

// A rank that comes while the other ranks give a barrier up meets them at the next barrier.
TEST(GroupWaits, AMonitoredBarrierEndsWellForAllOrForNobody)
{
    std::vector<Ref<Group>> groups = init_threads(3, 0, kCall);
    const auto come = [](Group &group) {
        constexpr double kShort = 0.005;
        if (group.rank() == 1) {
            std::this_thread::sleep_for(std::chrono::duration<double>(kShort));
        } else {
            try {
                return group.monitored_barrier(kShort);
            } catch (const Error &) {  // rank 1 is not there
            }
        }
        group.monitored_barrier(20);
    };
    for (int round = 0; round < 100 && !HasFailure(); ++round)
        EXPECT_EQ(each_rank(groups, come), std::vector<std::string>(3)) << round;
}

// ---- Dumps ------------------------------------------------------------------------------------------------------

// Dump that does not end until a rank has learnt of the failure.
struct SlowDump {
    static void hear(void *user, int32_t, const char *text)
    {
        if (!strstr(text, "YOKE_COMM_DUMP")) return;
        auto &self = *static_cast<SlowDump *>(user);
        if (self.begun.fetch_add(1) == 0 &&
            self.learnt.wait_for(std::chrono::seconds(10)) != std::future_status::ready)
            self.was_waited_for = true;
    }
    std::atomic<int> begun{0};
    std::promise<void> told;
    std::shared_future<void> learnt = told.get_future().share();
    std::atomic<bool> was_waited_for{false};
};

void fail_with_slow_dumps()
{
    set_config("YOKE_COMM_DUMP", "/dev/null/no/folder");
    SlowDump slow;
    add_log_callback(SlowDump::hear, &slow, nullptr);
    std::vector<Ref<Group>> groups = init_threads(3, 0, kCall);
    std::atomic<bool> has_told{false};
    const auto told = each_rank(groups, [&](Group &group) {
        try {
            if (group.rank() == 0) group.abort("enough");
            group.run(barrier(), false);
        } catch (const Error &) {
            if (!has_told.exchange(true)) slow.told.set_value();
            throw;
        }
    });
    expect_all_told(told, {"YOKE_E_CANCELLED", "enough"});
    EXPECT_FALSE(slow.was_waited_for);
    EXPECT_EQ(slow.begun, 3);  // each dump has ended before its rank raises
}

TEST(GroupWaits, NoRankWaitsForTheDumpOfAnother)
{
    in_fresh_process(fail_with_slow_dumps);
}

// ---- Interrupts of the host program -----------------------------------------------------------------------------

// Ends the waits of the thread that constructed the object.
class Impatient {
public:
    Impatient()
    {
        is_impatient = true;
        set_interrupt_hook([](void *) { return int32_t{is_impatient}; }, nullptr, nullptr);
    }
    ~Impatient()
    {
        is_impatient = false;
        set_interrupt_hook(nullptr, nullptr, nullptr);
    }

private:
    static thread_local bool is_impatient;
};
thread_local bool Impatient::is_impatient = false;

TEST(GroupWaits, ASplitThatOneRankLeavesFailsForAll)
{
    std::vector<Ref<Group>> groups = init_threads(3, 0, kCall);
    std::vector<Ref<Group>> others{groups[1]};
    auto told = std::async(std::launch::async, [&] {
        return each_rank(others, [](Group &group) { (void)group.split(0, 0); });
    });
    const Impatient host;
    const Interruptible call("split");
    const std::initializer_list<const char *> parts = {"split: rank 0 (host", "interrupted"};
    expect_error(YOKE_E_CANCELLED, parts, [&] { (void)groups[0]->split(0, 0); });
    expect_all_told(told.get(), parts);
    expect_error(YOKE_E_CANCELLED, parts, [&] { (void)groups[2]->split(0, 0); });
}

TEST(GroupWaits, TheMakingThatOneRankLeavesFailsForAll)
{
    const auto store = std::make_shared<HashStore>();
    const Members members = ranks_of(3, std::make_shared<PrefixStore>(store, "group"), nullptr);
    auto other = std::async(std::launch::async, [&] {
        Members own = members;
        own.rank = 1;
        own.store = std::make_shared<PrefixStore>(store, "group");
        (void)Group::make(std::move(own), {}, Deadline::after(20), kCall);
    });
    const Impatient host;
    const Interruptible call("init");
    const std::initializer_list<const char *> parts = {"init_all: rank 0 (host here",
                                                       "interrupted"};
    expect_error(YOKE_E_CANCELLED, parts,
                 [&] { (void)Group::make(members, {}, Deadline::after(20), kCall); });
    expect_error(YOKE_E_CANCELLED, parts, [&] { other.get(); });
}

TEST(GroupWaits, AMonitoredBarrierThatOneRankLeavesIsAsBefore)
{
    std::vector<Ref<Group>> groups = init_threads(2, 0, kCall);
    {
        const Impatient host;
        const Interruptible call("monitored_barrier");
        expect_error(YOKE_E_CANCELLED, {"monitored_barrier", "interrupted"},
                     [&] { groups[0]->monitored_barrier(20); });
    }
    groups[1]->monitored_barrier(20);
    EXPECT_EQ(each_rank(groups, [](Group &group) { group.run(barrier(), false); }),
              std::vector<std::string>(2));
}

}  // namespace
}  // namespace yoke::test
