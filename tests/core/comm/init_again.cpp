// Repeated init after a failure: the ranks meet, however often each rank has tried.
#include "core/comm/init.h"
#include "tests/core/comm/ranks.h"
#include "tests/core/comm/threads.h"
#include "tests/core/comm/warnings.h"

#include <barrier>
#include <thread>

namespace yoke::test {
namespace {

Ref<Group> init(int rank, const std::string &url, double timeout_s)
{
    InitOptions options;
    options.backend = "cpu";
    options.arguments.init_method = url;
    options.arguments.rank = rank;
    options.arguments.size = 2;
    options.init_timeout_s = timeout_s;
    return init_group(options, "comm.init");
}

// Runs functions in order in two processes: first rank 0's tries, then rank 1's, then the calls of both ranks.
class Turns {
public:
    Turns()
    {
        for (auto &ends : pipes_)
            if (pipe(ends) != 0) abort();
    }
    void take(int rank, const std::function<void()> &turn) const
    {
        if (rank == 1) await(0);
        turn();
        tell(rank);
        if (rank == 0) await(1);
    }

private:
    void await(int rank) const
    {
        char byte = 0;
        if (read(pipes_[rank][0], &byte, 1) != 1) abort();
    }
    void tell(int rank) const
    {
        if (write(pipes_[rank][1], "", 1) != 1) abort();
    }
    int pipes_[2][2];
};

void expect_to_meet_after(const std::string &url, int tries_of_0, int tries_of_1)
{
    const Turns turns;
    std::vector<RankProcess> ranks;
    for (const int rank : {0, 1})
        ranks.push_back(RankProcess([&, rank] {
            const Ref<Group> first = init(rank, url, 20);
            turns.take(rank, [&] {
                for (int i = 0; i < (rank ? tries_of_1 : tries_of_0); ++i)
                    expect_error(YOKE_E_TIMEOUT, {"comm.init: "},
                                 [&] { (void)init(rank, url, 0.2); });
            });
            const std::string again = met(init(rank, url, 10));
            return again + ", and as before " + met(first);
        }));
    EXPECT_EQ(results(ranks), (std::vector<std::string>{"0 of 2, and as before 0 of 2",
                                                        "1 of 2, and as before 1 of 2"}))
        << tries_of_0 << " tries of rank 0, and " << tries_of_1 << " of rank 1, by " << url;
}

TEST(InitAgain, MeetsAfterAnyNumberOfTriesThatTimedOut)
{
    for (const auto &[of_0, of_1] : {std::pair{1, 0}, {0, 1}, {1, 1}, {3, 1}, {1, 3}}) {
        const Port port;
        expect_to_meet_after(format("tcp://127.0.0.1:%u", port.number()), of_0, of_1);
    }
}

TEST(InitAgain, ByAFileToo)
{
    const std::string path = testing::TempDir() + "yoke-init-again" + std::to_string(getpid());
    for (const auto &[of_0, of_1] : {std::pair{2, 0}, {1, 2}})
        expect_to_meet_after("file://" + path, of_0, of_1);
    unlink(path.c_str());
}

// Two threads of each of two processes call init at once. The groups form in turn.
TEST(InitAgain, ThreadsOfAProcessTakeTurns)
{
    const Port port;
    const std::string url = format("tcp://127.0.0.1:%u", port.number());
    std::vector<RankProcess> ranks;
    for (const int rank : {0, 1})
        ranks.push_back(RankProcess([&, rank] {
            std::barrier<> both(2);
            Ref<Group> groups[2];
            const auto begin = [&](int i) {
                both.arrive_and_wait();
                groups[i] = init(rank, url, 20);
            };
            std::thread other(begin, 1);
            begin(0);
            other.join();
            // A thread gets either group by chance. The groups' numbers agree on both ranks.
            if (groups[0]->number() > groups[1]->number()) std::swap(groups[0], groups[1]);
            const std::string first = met(groups[0]);
            return first + ", " + met(groups[1]);
        }));
    EXPECT_EQ(results(ranks), (std::vector<std::string>{"0 of 2, 0 of 2", "1 of 2, 1 of 2"}));
}

// A job with other arguments comes in between. The first job's ranks meet again at their old address.
TEST(InitAgain, OfOneJobBesideAnother)
{
    const Port first_port, second_port;
    std::vector<RankProcess> ranks;
    for (const int rank : {0, 1})
        ranks.push_back(RankProcess([&, rank] {
            const std::string first = format("tcp://127.0.0.1:%u", first_port.number());
            const Ref<Group> one = init(rank, first, 10);
            const Ref<Group> other =
                init(rank, format("tcp://127.0.0.1:%u", second_port.number()), 10);
            const Ref<Group> again = init(rank, first, 10);
            return met(again) + ", " + met(other) + ", " + met(one);
        }));
    EXPECT_EQ(results(ranks),
              (std::vector<std::string>{"0 of 2, 0 of 2, 0 of 2", "1 of 2, 1 of 2, 1 of 2"}));
}

TEST(InitAgain, BehindAFailureMakesTheDefaultGroup)
{
    const Port port;
    const std::string url = format("tcp://127.0.0.1:%u", port.number());
    const Turns turns;
    std::vector<RankProcess> ranks;
    for (const int rank : {0, 1})
        ranks.push_back(RankProcess([&, rank] {
            const Ref<Group> former = init(rank, url, 20);
            const std::string before = met(former);
            // Rank 0 waits until rank 1 is done with the former group.
            turns.take(rank, [&] {
                if (rank == 1) former->abort("the script had enough");
            });
            former->abort("the script had enough");
            const Ref<Group> next = init(rank, url, 20);
            return before + ", " + met(default_group("test")) +
                   (default_group("test").get() == next.get() ? "" : ", not the next one");
        }));
    EXPECT_EQ(results(ranks), (std::vector<std::string>{"0 of 2, 0 of 2", "1 of 2, 1 of 2"}));
}

// Rank 1 has dropped all groups and returns before rank 0 drops its group. Neither rank may log a warning about a
// strange rank.
TEST(InitAgain, WhoIsBackBeforeRankZeroIsWarnedOfByNobody)
{
    const Port port;
    const std::string url = format("tcp://127.0.0.1:%u", port.number());
    const Turns turns;
    std::vector<RankProcess> ranks;
    for (const int rank : {0, 1})
        ranks.push_back(RankProcess([&, rank] {
            const Warnings warnings;
            std::string early;
            Ref<Group> group = init(rank, url, 20);
            const auto leave = [&] {
                group = nullptr;
                finalize_groups();
            };
            turns.take(rank, [&] {
                if (rank == 0) return;
                leave();
                try {
                    (void)init(rank, url, 0.2);
                } catch (const Error &error) {
                    early = error.what();
                }
            });
            leave();
            return met(init(rank, url, 20)) + "\n" + early + "\n" + warnings.text();
        }));
    const std::string zero = process_of(ranks[0]);
    const auto texts = results(ranks);
    EXPECT_EQ(texts[0], "0 of 2\n\n");
    expect_parts(texts[1], {"1 of 2\ncomm.init: rank 1 (host",
                            "rank 0 has not yet released its earlier groups", zero + ". Check"});
    EXPECT_EQ(texts[1].find('\n'), texts[1].rfind('\n', texts[1].size() - 3)) << texts[1];
}

}  // namespace
}  // namespace yoke::test
