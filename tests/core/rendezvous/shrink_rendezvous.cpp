// Ranks that find each other by their own ports, while other programs have the ports of ranks that have gone:
// core/rendezvous/shrink_rendezvous.cpp.
#include "core/rendezvous/shrink_rendezvous.h"

#include "core/base/interrupt.h"
#include "core/store/store_hash.h"
#include "tests/core/base/soon.h"
#include "tests/core/expect_error.h"
#include "tests/core/fresh_process.h"

#include <gtest/gtest.h>

#include <future>

namespace yoke {
namespace {

using test::expect_error;
using test::in_fresh_process;  // a process keeps a setting after the first read
using test::soon;

// Ranks as threads of the test, with the ports of processes.
class Ranks {
public:
    explicit Ranks(int32_t size)
    {
        HashStore store;
        std::vector<std::future<ShrinkPorts>> opening;
        for (int32_t rank = 0; rank < size; ++rank) {
            RankInfo info;
            info.rank = rank;
            info.size = size;
            info.address = "127.0.0.1";
            ranks_.push_back(info);
        }
        for (const RankInfo &self : ranks_)
            opening.push_back(std::async(std::launch::async, [&store, &self, size] {
                return ShrinkPorts(self, [&](const std::string &mine) {
                    return all_gather(store, "ports", self.rank, size, mine, soon());
                });
            }));
        for (auto &each : opening) ports_.push_back(each.get());
    }
    std::future<Members> reunite(int32_t rank, double seconds) const
    {
        return std::async(std::launch::async, [this, rank, seconds] {
            Members members;
            members.rank = rank;
            members.ranks = ranks_;
            return reunite_processes(members, ports_[static_cast<size_t>(rank)],
                                     Deadline::after(seconds), Deadline::after(seconds + 1));
        });
    }
    // Serves at the port of this rank, as a process that has the port.
    std::shared_ptr<StoreServer> serve(int32_t rank, const PeerOptions &options) const
    {
        return StoreServer::open(ports_[static_cast<size_t>(rank)].listening(), options);
    }
    // Returns the options with which rank 0 serves, in a process that goes on without the other ranks.
    PeerOptions options_of_rank_0() const
    {
        PeerOptions options;
        options.cookie = cookie();
        options.size = static_cast<int32_t>(ranks_.size());
        options.about = "host a, process 1";
        return options;
    }
    std::string cookie() const { return ports_[0].cookie(); }
    std::string about(int32_t rank) const
    {
        return describe_process(ranks_[static_cast<size_t>(rank)]);
    }
    // Returns a connection by which `from` greets `to`, without a further message.
    StoreConnection greet(int32_t from, int32_t to, const std::string &about = "") const
    {
        PeerOptions options;
        options.about = about;
        options.cookie = cookie();
        options.rank = from;
        options.size = static_cast<int32_t>(ranks_.size());
        const RankInfo &other = ranks_[static_cast<size_t>(to)];
        return connect_store(ports_[static_cast<size_t>(from)].address(other, soon()), options,
                             soon());
    }

private:
    std::vector<RankInfo> ranks_;
    std::vector<ShrinkPorts> ports_;
};

TEST(ShrinkRendezvous, APortThatAnotherJobHasIsThatOfOneThatHasGone)
{
    in_fresh_process([] {
        for (const int32_t gone : {0, 2}) {
            const Ranks ranks(3);
            PeerOptions other;
            other.cookie = "another job";
            const auto server = ranks.serve(gone, other);
            const int32_t first = gone == 0 ? 1 : 0, second = gone == 0 ? 2 : 1;
            std::future<Members> low = ranks.reunite(first, 20), high = ranks.reunite(second, 20);
            for (std::future<Members> *each : {&high, &low})  // the leader leaves last
                EXPECT_EQ(each->get().met_as, (std::vector<int32_t>{first, second}));
        }
    });
}

TEST(ShrinkRendezvous, ItsLeaderLeavesWhenTheOthersHave)
{
    in_fresh_process([] {
        const Ranks ranks(2);
        std::future<Members> low = ranks.reunite(0, 20), high = ranks.reunite(1, 20);
        Members leader = low.get(), other = high.get();
        std::future<void> leaving =
            std::async(std::launch::async, [&leader] { leader = Members(); });
        leaving.wait_for(std::chrono::milliseconds(200));  // time enough to leave
        other.store->set("key", "value", soon());
        EXPECT_EQ(other.store->get("key", soon()), "value");
        other = Members();
        leaving.get();
    });
}

// Rank 0 comes after more than half of the time. The other ranks have found each other, and wait for rank 0.
TEST(ShrinkRendezvous, ALateRankZeroIsWaitedForAsOthersAre)
{
    in_fresh_process([] {
        for (const int32_t size : {2, 3}) {
            constexpr double kWindow = 3;
            const Ranks ranks(size);
            std::vector<std::future<Members>> all(static_cast<size_t>(size));
            for (int32_t rank = 1; rank < size; ++rank)
                all[static_cast<size_t>(rank)] = ranks.reunite(rank, kWindow);
            sleep_until(Deadline::after(kWindow * 0.6));
            all[0] = ranks.reunite(0, kWindow);
            std::vector<Members> made;
            for (std::future<Members> &each : all) made.push_back(each.get());
            for (const Members &each : made)
                EXPECT_EQ(each.met_as.size(), static_cast<size_t>(size)) << "rank " << each.rank;
            while (!made.empty()) made.pop_back();  // the leader leaves last
        }
    });
}

// The ranks that do not answer are asked in order, each for a share of the time alone.
TEST(ShrinkRendezvous, ThoseAboveManyThatDoNotAnswerFindEachOther)
{
    in_fresh_process([] {
        constexpr int32_t kMute = 7;
        const Ranks ranks(kMute + 2);
        std::future<Members> low = ranks.reunite(kMute, 1), high = ranks.reunite(kMute + 1, 1);
        for (std::future<Members> *each : {&high, &low})  // the leader leaves last
            EXPECT_EQ(each->get().met_as, (std::vector<int32_t>{kMute, kMute + 1}));
    });
}

// Rank 1 may have given this connection up while rank 0 was late, and may come again.
TEST(ShrinkRendezvous, WhoHasOnlyGreetedIsNotThereYet)
{
    in_fresh_process([] {
        const Ranks ranks(2);
        std::future<Members> leading = ranks.reunite(0, 1);
        StoreConnection greeting = ranks.greet(1, 0);
        ASSERT_EQ(greeting.outcome, StoreConnection::kConnected);
        const Members made = leading.get();
        EXPECT_EQ(made.met_as, std::vector<int32_t>{0});
        greeting.store.reset();  // the leader leaves last
    });
}

// The two ranks have met before. Making their group failed on rank 1, and is about to fail on rank 0.
TEST(ShrinkRendezvous, WhoHasMetBeforeWaitsForTheOtherToTryAgain)
{
    in_fresh_process([] {
        const Ranks ranks(2);
        PeerOptions options;
        options.cookie = ranks.cookie();
        options.size = 2;
        auto former = ranks.serve(0, options);
        StoreConnection met = ranks.greet(1, 0, ranks.about(1));
        ASSERT_EQ(met.outcome, StoreConnection::kConnected);
        former->close_to_newcomers();
        met.store.reset();
        std::future<Members> again = ranks.reunite(1, 10);
        sleep_until(Deadline::after(0.3));
        former->leave_newcomers();
        std::future<Members> leading = ranks.reunite(0, 10);
        sleep_until(Deadline::after(0.1));
        former.reset();
        Members leader = leading.get(), other = again.get();
        EXPECT_EQ(leader.met_as, (std::vector<int32_t>{0, 1}));
        other = Members();  // the leader leaves last
    });
}

TEST(ShrinkRendezvous, WhoHasMetOthersThatGoOnComesTooLate)
{
    in_fresh_process([] {
        const Ranks ranks(2);
        const PeerOptions options = ranks.options_of_rank_0();
        const auto former = ranks.serve(0, options);
        StoreConnection met = ranks.greet(1, 0, ranks.about(1));
        former->close_to_newcomers();
        met.store.reset();
        expect_error(YOKE_E_COMM,
                     {"shrink", "rank 1", "called shrink too late", "host a, process 1"},
                     [&] { ranks.reunite(1, 0.5).get(); });
    });
}

// The making of a group with rank 2 has failed. The other ranks try again; rank 2 leaves and does not.
TEST(ShrinkRendezvous, WhoHasMetOneThatGivesUpGoesOnWithoutIt)
{
    in_fresh_process([] {
        const Ranks ranks(3);
        PeerOptions options;
        options.cookie = ranks.cookie();
        options.rank = 2;
        options.size = 3;
        const auto former = ranks.serve(2, options);
        for (const int32_t each : {0, 1})
            ASSERT_EQ(ranks.greet(each, 2, ranks.about(each)).outcome, StoreConnection::kConnected);
        former->close_to_newcomers();
        std::future<Members> low = ranks.reunite(0, 1.5), high = ranks.reunite(1, 1.5);
        sleep_until(Deadline::after(0.5));
        former->leave_newcomers();
        Members leader = low.get(), other = high.get();
        EXPECT_EQ(leader.met_as, (std::vector<int32_t>{0, 1}));
        EXPECT_EQ(other.met_as, (std::vector<int32_t>{0, 1}));
        other = Members();  // the leader leaves last
    });
}

// Rank 0 met the other ranks in a group that could not be made. They have stopped, and rank 0 asks all of them once
// more at the same time.
TEST(ShrinkRendezvous, ManyThatHaveMetBeforeAndStoppedCostNoMoreThanOne)
{
    in_fresh_process([] {
        constexpr int32_t kSize = 6;
        constexpr double kWindow = 0.5;
        const Ranks ranks(kSize);
        std::vector<std::shared_ptr<StoreServer>> former;
        for (int32_t each = 1; each < kSize; ++each) {
            PeerOptions options;
            options.cookie = ranks.cookie();
            options.rank = each;
            options.size = kSize;
            former.push_back(ranks.serve(each, options));
            ASSERT_EQ(ranks.greet(0, each, ranks.about(0)).outcome, StoreConnection::kConnected);
            former.back()->close_to_newcomers();
        }
        const Deadline end = Deadline::after(kWindow + 1);
        std::future<Members> alone = ranks.reunite(0, kWindow);
        sleep_until(Deadline::after(kWindow / 2));
        for (const auto &each : former) each->leave_newcomers();
        EXPECT_EQ(alone.get().met_as, std::vector<int32_t>{0});
        EXPECT_FALSE(end.has_passed());
    });
}

// Rank 1 follows rank 0 and has not met rank 2. Without this error, rank 1 would be alone after rank 0's end.
TEST(ShrinkRendezvous, WhoFollowsOneThatComesTooLateIsToldSo)
{
    in_fresh_process([] {
        const Ranks ranks(3);
        PeerOptions options;
        options.cookie = ranks.cookie();
        options.rank = 2;
        options.size = 3;
        options.about = "host a, process 1";
        const auto former = ranks.serve(2, options);
        ASSERT_EQ(ranks.greet(0, 2, ranks.about(0)).outcome, StoreConnection::kConnected);
        former->close_to_newcomers();
        std::future<Members> low = ranks.reunite(0, 1), high = ranks.reunite(1, 1);
        for (std::future<Members> *each : {&low, &high})
            expect_error(YOKE_E_COMM,
                         {"shrink", "rank 0", "called shrink too late", "host a, process 1"},
                         [&] { each->get(); });
    });
}

TEST(ShrinkRendezvous, ALeaderThatDoesNotSayWhoIsThereIsNamed)
{
    in_fresh_process([] {
        const Ranks ranks(2);
        PeerOptions options;
        options.cookie = ranks.cookie();
        options.size = 2;
        const auto stopped = ranks.serve(0, options);
        expect_error(YOKE_E_TIMEOUT, {"shrink", "rank 0", "the leader", "call shrink again"},
                     [&] { ranks.reunite(1, 0.5).get(); });
    });
}

// Rank 1 says that rank 0 leads. Rank 0 did not answer before, and has gone on meanwhile.
TEST(ShrinkRendezvous, WhoIsToldByALowerRankThatItComesTooLateGoesOnWithNobody)
{
    in_fresh_process([] {
        const Ranks ranks(3);
        const PeerOptions options = ranks.options_of_rank_0();
        std::promise<void> come;
        PeerOptions leading = options;
        leading.rank = 1;
        leading.observer = [&](const PeerEvent &event) {
            if (event.kind == PeerEvent::kJoined) come.set_value();
        };
        const auto first = ranks.serve(1, leading);
        std::future<Members> late = ranks.reunite(2, 1);
        come.get_future().wait();
        const auto zero = ranks.serve(0, options);
        zero->close_to_newcomers();
        first->table()->set("word", "see 0", soon());
        expect_error(YOKE_E_COMM,
                     {"shrink", "rank 2", "called shrink too late", "host a, process 1"},
                     [&] { late.get(); });
    });
}

}  // namespace
}  // namespace yoke
