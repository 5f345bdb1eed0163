// Device of a rank: on machines made by hand, and in a process whose launcher gives the rank.
#include "core/select/ranks.h"

#include "core/base/lent.h"
#include "core/base/log.h"
#include "core/select/select.h"
#include "tests/core/fake_kinds.h"
#include "tests/core/fresh_process.h"
#include "tests/core/machines.h"
#include "tests/core/select/remembered.h"

#include <gtest/gtest.h>

namespace yoke {
namespace {

using namespace test;

Machine four()
{
    std::vector<Card> cards;
    for (int i = 0; i < 4; ++i) cards.push_back(card(i, "NVIDIA H100 80GB HBM3", 90, 80, 132));
    return machine_of(cards);
}

// The card of each rank of a machine, -1 for the CPU.
std::vector<int> of_ranks(const Machine &machine, Situation situation, int ranks,
                          const char *text = "auto")
{
    std::vector<int> cards;
    for (situation.local_rank = 0; *situation.local_rank < ranks; ++*situation.local_rank)
        cards.push_back(choose(machine, situation, parse_spec(text), 0).chosen.at(0));
    return cards;
}

TEST(DevicesOfRanks, EachHasItsOwnInTheOrderOfNumbersAndThenInTurn)
{
    const Machine machine = four();
    const Situation situation = situation_of(machine);
    EXPECT_EQ(of_ranks(machine, situation, 4), (std::vector{0, 1, 2, 3}));
    EXPECT_EQ(of_ranks(machine, situation, 6), (std::vector{0, 1, 2, 3, 0, 1}));
    EXPECT_EQ(of_ranks(machine, situation, 2, "auto:kind=cuda"), (std::vector{0, 1}));
    const Machine none = machine_of({});
    EXPECT_EQ(of_ranks(none, situation_of(none), 3), (std::vector{-1, -1, -1}));
}

TEST(DevicesOfRanks, WhatRanksChangeByTheirWorkChangesNoOrder)
{
    Machine machine = four();
    Situation situation = situation_of(machine);
    machine.cards[0].info.memory_free = 0;
    machine.cards[1].info.utilization = 1;
    EXPECT_EQ(of_ranks(machine, situation, 4), (std::vector{0, 1, 2, 3}));
    situation.states[0].ranks = 1;
    situation.states[0].ranks_memory = machine.cards[0].info.memory_total - kGiB;
    situation.states[1].ranks = 1;
    EXPECT_EQ(of_ranks(machine, situation, 4, "auto:min_free=40GiB,max_util=50,exclude=busy"),
              (std::vector{0, 1, 2, 3}));
    reject(machine.cards[2], {Reason::kHeldAlone, "process 7 has it"});
    EXPECT_EQ(of_ranks(machine, situation, 3), (std::vector{0, 1, 3}));
    situation.states[2].ranks = 1;  // process 7 is a neighbouring rank
    EXPECT_EQ(of_ranks(machine, situation, 3), (std::vector{0, 1, 2}));
}

TEST(DevicesOfRanks, SlowSmallAndLeasedOnesComeLastAndWhatDoesNotFitNever)
{
    Machine machine = four();
    Situation situation = situation_of(machine);
    machine.cards[0].info.link_width = 4;
    machine.cards[1].info.memory_total /= 2;
    EXPECT_EQ(of_ranks(machine, situation, 4), (std::vector{2, 3, 1, 0}));
    situation.states[2].holder = 77;
    EXPECT_EQ(of_ranks(machine, situation, 4), (std::vector{3, 1, 0, 2}));
    EXPECT_EQ(of_ranks(machine, situation, 4, "auto:lease"), (std::vector{3, 1, 0, 3}));
    EXPECT_EQ(of_ranks(machine, situation, 2, "auto:min_memory=60GiB,exclude=leased"),
              (std::vector{3, 0}));
}

TEST(DevicesOfRanks, ACountAKindAndANumberMeanWhatTheyMeanToAll)
{
    const Machine machine = four();
    Situation situation = situation_of(machine);
    situation.local_rank = 1;
    const auto chosen = [&](const char *text, int count) {
        return choose(machine, situation, parse_spec(text), count).chosen;
    };
    EXPECT_EQ(chosen("auto", 1), std::vector{3});
    EXPECT_EQ(chosen("auto", 2), (std::vector{3, 2}));
    EXPECT_EQ(chosen("cuda", 0), std::vector{0});
    EXPECT_EQ(chosen("cuda:2", 0), std::vector{2});
    EXPECT_EQ(chosen("auto", 0), std::vector{1});
    situation.cpu_first = true;
    EXPECT_EQ(chosen("auto", 0), std::vector{kCpuCandidate});
}

TEST(DevicesOfRanks, TheVerdictNamesTheRank)
{
    const Machine machine = four();
    Situation situation = situation_of(machine);
    situation.local_rank = 2;
    const Choice choice = choose(machine, situation, parse_spec("auto"), 0);
    EXPECT_TRUE(reason_of(choice, 2).ends_with("; for local rank 2")) << reason_of(choice, 2);
    EXPECT_EQ(reason_of(choice, 3).find("local rank"), std::string::npos);
    EXPECT_EQ(choice.verdicts[0].card, 2);
    EXPECT_EQ(choice.verdicts[1].card, 0);
}

TEST(DevicesOfRanks, TheProcessAsksWhoeverKnowsAndWarnsOnceThatRanksShare)
{
    in_fresh_process([] {
        prepare();
        fake.devices = 2;
        set_log_callback(remember, nullptr, nullptr);
        lent.local_rank = [] { return std::optional(1); };
        EXPECT_EQ(open_device("auto:kind=fake").name, "fake:1");
        EXPECT_EQ(select_devices("auto:kind=fake", 0).at(0)->name, "fake:1");
        EXPECT_EQ(logged.find("share a device"), std::string::npos) << logged;
        lent.local_rank = [] { return std::optional(2); };
        for (int i = 0; i < 3; ++i) EXPECT_EQ(open_device("auto:kind=fake").name, "fake:0");
        const size_t first = logged.find("local rank 2, but only 2 of this machine's devices fit");
        EXPECT_NE(first, std::string::npos) << logged;
        EXPECT_EQ(logged.find("share a device"), logged.rfind("share a device")) << logged;
        logged.clear();
        lent.local_rank = [] { return std::optional(3); };  // rank 2 logs the warning
        EXPECT_EQ(open_device("auto:kind=fake").name, "fake:1");
        EXPECT_EQ(logged, "");
    });
}

TEST(DevicesOfRanks, AVariableThatCannotBeReadIsToldOnceAndCountsNoRanks)
{
    in_fresh_process([] {
        prepare();
        fake.devices = 2;
        set_log_callback(remember, nullptr, nullptr);
        const std::string alone = open_device("auto:kind=fake").name;
        lent.local_rank = []() -> std::optional<int32_t> {
            fail(YOKE_E_VALUE, "LOCAL_RANK is 'x'");
        };
        for (int i = 0; i < 2; ++i) EXPECT_EQ(open_device("auto:kind=fake").name, alone);
        const size_t first = logged.find("as a rank of a job: LOCAL_RANK is 'x'");
        EXPECT_NE(first, std::string::npos) << logged;
        EXPECT_EQ(first, logged.rfind("as a rank of a job: LOCAL_RANK is 'x'")) << logged;
    });
}

}  // namespace
}  // namespace yoke
