// Devices that a spec gets on machines made by hand: order, verdicts, sets.
#include "core/select/choice.h"
#include "tests/core/expect_error.h"
#include "tests/core/machines.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace yoke {
namespace {

using namespace test;
using Cards = std::vector<int>;

// Eight H100, each half joined by NVLink and of one NUMA node; pairs share a switch.
Machine eight()
{
    std::vector<Card> cards;
    for (int i = 0; i < 8; ++i) {
        cards.push_back(card(i, "NVIDIA H100 80GB HBM3", 90, 80, 132));
        cards.back().info.numa_node = i / 4;
    }
    Machine machine = machine_of(cards);
    for (size_t a = 0; a < 8; ++a)
        for (size_t b = 0; b < a; ++b)
            if (a / 4 == b / 4)
                join_cards(machine, a, b, a / 2 == b / 2 ? YOKE_PATH_SWITCH : YOKE_PATH_NODE, 18);
    return machine;
}

Machine a100_and_t4()
{
    return machine_of({card(0, "NVIDIA A100-SXM4-80GB", 80, 80, 108),
                       card(1, "Tesla T4", 75, 15, 40),
                       card(2, "NVIDIA A100-SXM4-80GB", 80, 80, 108)});
}

TEST(DeviceSelection, OfEqualCardsTheLastIsTakenSoThatTheFirstStaysFree)
{
    EXPECT_EQ(choice_for(eight(), "auto").chosen, Cards{7});
    EXPECT_EQ(choice_for(eight(), "auto:kind=cuda").chosen, Cards{7});
}

TEST(DeviceSelection, AKindAloneMeansItsFirstDeviceAsInOpeningIt)
{
    EXPECT_EQ(choice_for(eight(), "cuda").chosen, Cards{0});
    EXPECT_EQ(choice_for(eight(), "cuda", 2).chosen.size(), 2u);
    Machine machine = eight();
    reject(machine.cards[0], {Reason::kNeedsReset, "it is on fire"});
    EXPECT_EQ(choice_for(machine, "cuda").chosen, Cards{7});
}

TEST(DeviceSelection, WaitingMayHelpIfEnoughCardsFitOnceWhatPassesHasPassed)
{
    Machine machine = a100_and_t4();
    Situation situation = situation_of(machine);
    const auto may_change = [&](const char *text, int count = 1) {
        return choose(machine, situation, parse_spec(text), count).may_change;
    };
    EXPECT_FALSE(may_change("auto:min_cc=9.0"));
    situation.states[0].holder = situation.states[1].holder = 77;
    machine.cards[2].info.memory_free = 0;
    EXPECT_TRUE(may_change("auto:lease,min_free=1GiB"));
    EXPECT_TRUE(may_change("auto:lease,min_free=1GiB,n=3", 3));
    EXPECT_FALSE(may_change("auto:lease,min_free=100GiB"));
    EXPECT_FALSE(may_change("auto:lease,min_cc=8.0,n=3", 3));
    EXPECT_FALSE(may_change("auto:kind=cuda,name=H100,exclude=leased"));
    for (Card &each : machine.cards) {
        reject(each, {Reason::kHeldAlone,
                      "the compute mode is 'exclusive' and process 7 (a) uses the GPU"});
        each.info.compute_mode = YOKE_COMPUTE_EXCLUSIVE;
    }
    EXPECT_TRUE(may_change("auto:kind=cuda"));
    EXPECT_FALSE(may_change("auto:kind=cuda,min_cc=9.0"));
    for (Card &each : machine.cards)
        reject(each, {Reason::kProhibited, "its mode is 'prohibited'"});
    EXPECT_FALSE(may_change("auto:kind=cuda"));
    EXPECT_TRUE(may_change("auto:kind=cpu,min_free=33GiB"));
    EXPECT_FALSE(may_change("auto:kind=cpu,min_free=65GiB"));
}

TEST(DeviceSelection, WhereTheUserNamesTheCpuFirstItIsTakenUnlessTheSpecNeedsAGpu)
{
    const Machine machine = eight();
    Situation situation = situation_of(machine);
    situation.cpu_first = true;
    const auto chosen = [&](const char *text, int count = 1) {
        return choose(machine, situation, parse_spec(text), count);
    };
    for (const char *open : {"auto", "auto:min_free=1MiB", "auto:fallback=error"}) {
        EXPECT_EQ(chosen(open).chosen, Cards{kCpuCandidate}) << open;
        EXPECT_EQ(chosen(open).passed_over, "") << open;
    }
    EXPECT_EQ(reason_of(chosen("auto"), kCpuCandidate),
              "yes: the host's processor, which YOKE_PLATFORMS names first");
    for (const char *gpu : {"auto:kind=cuda", "auto:min_cc=8.0", "auto:lease"})
        EXPECT_EQ(chosen(gpu).chosen, Cards{7}) << gpu;
    EXPECT_EQ(chosen("auto:min_free=1TiB,kind=cuda").chosen, Cards{});
    EXPECT_EQ(chosen("auto", 2).chosen.size(), 2u);
}

TEST(DeviceSelection, LeasesThenLinksThenMemoryThenLoadDecide)
{
    Machine machine =
        machine_of({card(0, "a", 90, 80, 100), card(1, "b", 90, 80, 100), card(2, "c", 90, 80, 100),
                    card(3, "d", 90, 80, 100), card(4, "e", 90, 90, 100)});
    Situation situation = situation_of(machine);
    const Spec spec = parse_spec("auto");
    const auto best = [&] { return choose(machine, situation, spec, 1).chosen.front(); };
    EXPECT_EQ(best(), 4);  // most memory
    machine.cards[4].info.link_width = 4;
    EXPECT_EQ(best(), 3);  // a narrow link counts before memory
    situation.states[3].holder = 77;
    EXPECT_EQ(best(), 2);  // leased by another process
    machine.cards[2].info.utilization = 0.5;
    EXPECT_EQ(best(), 1);
    machine.cards[1].info.memory_free -= kGiB;
    EXPECT_EQ(best(), 0);
    for (size_t i : {0, 1, 2, 4}) situation.states[i].holder = -1;
    EXPECT_EQ(best(), 3);  // all leased: no reason to refuse this request
}

TEST(DeviceSelection, AFewMegabytesDecideNothing)
{
    Machine machine = eight();
    machine.cards[3].info.memory_free += 5 << 20;
    EXPECT_EQ(choice_for(machine, "auto").chosen, Cards{7});
}

TEST(DeviceSelection, EachRejectedCardSaysWhy)
{
    Machine machine = a100_and_t4();
    machine.cards[0].info.utilization = 0.97;
    machine.cards[0].info.display = 1;
    const Choice choice =
        choice_for(machine, "auto:min_free=20GiB,min_cc=8.0,max_util=20,exclude=display");
    EXPECT_EQ(choice.chosen, Cards{2});
    EXPECT_EQ(reason_of(choice, 0),
              "no: 97 % busy, at most 20 % was requested; a display is attached to the GPU, but "
              "the spec has exclude=display");
    EXPECT_EQ(reason_of(choice, 1),
              "no: 14.5 GiB of free memory, 20 GiB was requested; compute capability 7.5, at least "
              "8.0 was requested");
    EXPECT_NE(reason_of(choice, 2).find("yes: NVIDIA A100"), std::string::npos);
    EXPECT_EQ(reason_of(choice, kCpuCandidate), "no: no CPU can meet min_cc");
    // The chosen first, then by the number of constraints that are not met.
    EXPECT_EQ(choice.verdicts[0].card, 2);
    EXPECT_EQ(choice.verdicts[0].place, 0);
    EXPECT_EQ(choice.verdicts.size(), 4u);
}

TEST(DeviceSelection, EveryConstraintCanRejectACard)
{
    Machine machine = machine_of({card(0, "NVIDIA H100", 90, 80, 132)});
    yoke_card_info &info = machine.cards[0].info;
    const auto rejects = [&](const char *spec, const char *word) {
        const Choice choice = choice_for(machine, spec);
        EXPECT_NE(reason_of(choice, 0).find("no: "), std::string::npos) << spec;
        EXPECT_NE(reason_of(choice, 0).find(word), std::string::npos) << reason_of(choice, 0);
    };
    rejects("auto:min_memory=81GiB", "total memory");
    rejects("auto:name=h200", "'h200'");
    rejects("auto:min_cc=99", "99.0");
    rejects("auto:kind=cpu", "kind is cuda");
    rejects("cuda:1", "another device");
    rejects("uuid:GPU-b", "another device");
    rejects("pci:0000:11", "another device");
    info.is_egpu = 1;
    rejects("auto:exclude=egpu", "external");
    info.kind = YOKE_CARD_INTEGRATED;
    rejects("auto:exclude=integrated", "processor's chip");
    info.kind = YOKE_CARD_MIG;
    rejects("auto:exclude=mig", "MIG");
    yoke_card_process process{};
    process.compute = 1;
    machine.cards[0].processes = {process};
    rejects("auto:exclude=busy", "1 processes compute");
    info.utilization = NAN;
    rejects("auto:max_util=50", "not known");
    info.memory_free = -1;
    rejects("auto:min_free=1GiB", "not known");
    info.cc_major = -1;
    rejects("auto:min_cc=1.0", "not known");
}

TEST(DeviceSelection, ACardThatCannotBeUsedIsRejectedBeforeAnyWish)
{
    Machine machine = machine_of({card(0, "AMD", 0, 8, 1), card(1, "gone", 90, 80, 1),
                                  card(2, "nouveau's", 90, 80, 1), card(3, "hidden", 90, 80, 1),
                                  card(4, "cut", 90, 80, 1)});
    put(machine.cards[0].info.vendor, "amd");
    machine.cards[0].info.visible = -1;
    machine.cards[1].info.present = 0;
    reject(machine.cards[2], {Reason::kOtherDriver, "nouveau holds it"});
    machine.cards[3].info.visible = -1;
    machine.cards[4].info.mig = 1;
    machine.cards[4].info.visible = -1;
    const Choice choice = choice_for(machine, "auto:min_cc=8.0");
    EXPECT_TRUE(choice.chosen.empty());
    EXPECT_NE(reason_of(choice, 0).find("no backend for devices of amd"), std::string::npos);
    EXPECT_NE(reason_of(choice, 1).find("no longer answers"), std::string::npos);
    EXPECT_EQ(reason_of(choice, 2), "no: nouveau holds it");
    EXPECT_EQ(reason_of(choice, 3), "no: the card has no number among CUDA's devices");
    EXPECT_NE(reason_of(choice, 4).find("partitioned"), std::string::npos);
    for (const char *name : {"AMD", "gone", "nouveau's", "hidden", "cut"})
        EXPECT_NE(choice.problem.find(name), std::string::npos) << choice.problem;
}

TEST(DeviceSelection, ALeaseOfAnotherProcessRejectsWhoAsksForOne)
{
    const Machine machine = a100_and_t4();
    Situation situation = situation_of(machine);
    situation.states[2].holder = 4711;
    EXPECT_EQ(choose(machine, situation, parse_spec("auto:lease"), 1).chosen, Cards{0});
    const Choice choice = choose(machine, situation, parse_spec("auto:exclude=leased"), 3);
    EXPECT_NE(reason_of(choice, 2).find("process 4711 holds its lease"), std::string::npos);
    EXPECT_NE(choice.problem.find("only 2 of the 3"), std::string::npos) << choice.problem;
}

TEST(DeviceSelection, ASpecThatNamesACardGetsThatOne)
{
    const Machine machine = a100_and_t4();
    EXPECT_EQ(choice_for(machine, "cuda:1").chosen, Cards{1});
    EXPECT_EQ(choice_for(machine, "uuid:gpu-B").chosen, Cards{1});
    EXPECT_EQ(choice_for(machine, "pci:11:00").chosen, Cards{1});
    expect_error(YOKE_E_VALUE, {"uuid:GPU-", "3 cards", "GPU-aaaaaaaa"},
                 [&] { choice_for(machine, "uuid:GPU-"); });
    expect_error(YOKE_E_VALUE, {"cuda:1", "auto:n=2"}, [&] { choice_for(machine, "cuda:1", 2); });
    EXPECT_TRUE(choice_for(machine, "uuid:GPU-f").chosen.empty());
}

TEST(DeviceSelection, TheCpuStandsInOnlyWhereNobodyAskedForAGpu)
{
    const Machine none;
    const Choice choice = choice_for(none, "auto:min_free=1GiB");
    EXPECT_EQ(choice.chosen, Cards{kCpuCandidate});
    EXPECT_EQ(choice.problem, "");
    EXPECT_NE(choice.passed_over.find("this machine shows no GPU"), std::string::npos);
    EXPECT_EQ(choice_for(none, "cpu").chosen, Cards{kCpuCandidate});
    EXPECT_EQ(choice_for(none, "cpu").passed_over, "");
    for (const char *spec :
         {"cuda", "cuda:0", "uuid:GPU-1", "auto:min_cc=8.0", "auto:fallback=error", "auto:lease",
          "auto:n=2", "auto:min_free=40GiB"}) {
        EXPECT_TRUE(choice_for(none, spec).chosen.empty()) << spec;
        EXPECT_NE(choice_for(none, spec).problem, "") << spec;
    }
}

TEST(DeviceSelection, ACpuThatMayNotBeUsedIsNoFallback)
{
    const Machine none;
    Situation situation = situation_of(none);
    situation.cpu_problem = "YOKE_PLATFORMS is 'cuda'";
    situation.gpu_problem = "no driver";
    const Choice choice = choose(none, situation, parse_spec("auto"), 1);
    EXPECT_TRUE(choice.chosen.empty());
    EXPECT_NE(choice.problem.find("no driver"), std::string::npos);
    EXPECT_NE(choice.problem.find("YOKE_PLATFORMS"), std::string::npos);
}

TEST(DeviceSelection, ASetIsTheBestConnectedOne)
{
    Machine machine = eight();
    EXPECT_EQ(choice_for(machine, "auto:n=4").chosen, (Cards{7, 6, 5, 4}));
    machine.cards[7].info.memory_free = kGiB;
    machine.cards[6].info.memory_free = kGiB;
    machine.cards[3].info.memory_free = kGiB;
    // By memory alone the choice would be 5, 4, 2, 1; links within a half count first.
    const Cards four = choice_for(machine, "auto:n=4").chosen;
    EXPECT_EQ(four, (Cards{2, 1, 0, 3}));
    EXPECT_EQ(choice_for(machine, "auto:n=2,same=switch").chosen, (Cards{5, 4}));
}

TEST(DeviceSelection, SameKeepsASetTogether)
{
    Machine machine = eight();
    for (const char *spec : {"auto:n=4,same=nvlink", "auto:n=4,same=numa"})
        EXPECT_EQ(choice_for(machine, spec).chosen, (Cards{7, 6, 5, 4})) << spec;
    const Choice five = choice_for(machine, "auto:n=5,same=nvlink");
    EXPECT_TRUE(five.chosen.empty());
    EXPECT_NE(five.problem.find("8 devices fit, but no 5 of them are joined by NVLink"),
              std::string::npos)
        << five.problem;
    EXPECT_NE(five.problem.find("n=4 would fit: NVIDIA H100 80GB HBM3 (cuda:7), "),
              std::string::npos)
        << five.problem;
    EXPECT_TRUE(choice_for(machine, "auto:n=3,same=switch").chosen.empty());
    // The best half has a busy card, so the other half serves.
    machine.cards[6].info.utilization = 0.9;
    EXPECT_EQ(choice_for(machine, "auto:n=4,same=nvlink,max_util=20").chosen, (Cards{3, 2, 1, 0}));
}

TEST(DeviceSelection, UnlikeCardsAreRefusedWhereAlikeOnesAreAsked)
{
    const Machine machine = a100_and_t4();
    EXPECT_EQ(choice_for(machine, "auto:n=2,homogeneous").chosen, (Cards{2, 0}));
    const Choice three = choice_for(machine, "auto:n=3,homogeneous");
    EXPECT_NE(three.problem.find("no 3 of them are alike; n=2 would fit: NVIDIA A100-SXM4-80GB "
                                 "(cuda:2), NVIDIA A100-SXM4-80GB (cuda:0)"),
              std::string::npos)
        << three.problem;
    EXPECT_EQ(choice_for(machine, "auto:n=3").chosen.size(), 3u);
    // Three quarters of memory and of multiprocessors are alike, less is not.
    const auto pair = [](double memory, int multiprocessors) {
        return choice_for(machine_of({card(0, "a", 80, 80, 100),
                                      card(1, "b", 80, memory, multiprocessors)}),
                          "auto:n=2,homogeneous")
            .chosen.size();
    };
    EXPECT_EQ(pair(60, 75), 2u);
    EXPECT_EQ(pair(59, 75), 0u);
    EXPECT_EQ(pair(60, 74), 0u);
}

TEST(DeviceSelection, MigInstancesAreDevicesOfTheirOwn)
{
    std::vector<Card> cards{card(0, "NVIDIA A100", 80, 80, 108)};
    cards[0].info.mig = 1;
    cards[0].info.visible = -1;
    for (int i = 1; i < 8; ++i) {
        cards.push_back(card(i, "NVIDIA A100 MIG 1g.10gb", 80, 9.75, 14));
        cards.back().info.kind = YOKE_CARD_MIG;
        cards.back().info.parent = 0;
        cards.back().info.visible = i - 1;
    }
    const Machine machine = machine_of(cards);
    EXPECT_EQ(choice_for(machine, "auto").chosen, Cards{7});
    EXPECT_EQ(choice_for(machine, "cuda:2").chosen, Cards{3});
    EXPECT_EQ(choice_for(machine, "auto:n=7").chosen.size(), 7u);
    EXPECT_TRUE(choice_for(machine, "auto:exclude=mig,fallback=error").chosen.empty());
}

// The search in full against a plain look at every set; 12 cards with links by chance.
TEST(DeviceSelection, TheExactSearchFindsWhatTryingAllFinds)
{
    std::vector<Card> cards;
    for (int i = 0; i < 12; ++i) cards.push_back(card(i, "x", 80, 40, 100));
    uint32_t chance = 1;
    for (int round = 0; round < 20; ++round) {
        Machine machine = machine_of(cards);
        for (size_t a = 0; a < 12; ++a)
            for (size_t b = 0; b < a; ++b) {
                chance = chance * 1664525 + 1013904223;
                join_cards(machine, a, b, static_cast<int>(chance >> 24) % 6 * 10);
            }
        const Cards found = choice_for(machine, "auto:n=4").chosen;
        const auto worth = [&](const Cards &set) {
            int worst = 1000, sum = 0;
            for (const int a : set)
                for (const int b : set)
                    if (a < b) {
                        const int quality = detail::join_quality(machine, a, b);
                        worst = std::min(worst, quality);
                        sum += quality;
                    }
            return std::pair(worst, sum);
        };
        for (uint32_t mask = 0; mask < 4096; ++mask) {
            Cards set;
            for (int i = 0; i < 12; ++i)
                if (mask >> i & 1) set.push_back(i);
            if (set.size() != 4) continue;
            EXPECT_LE(worth(set), worth(found)) << round;
        }
    }
}

TEST(DeviceSelection, OfVeryManyCardsAGoodSetIsGrown)
{
    std::vector<Card> cards;
    for (int i = 0; i < 56; ++i) {
        cards.push_back(card(i % 20, "x", 80, 40, 100));
        cards.back().info.visible = i;
    }
    Machine machine = machine_of(cards);
    for (size_t a = 24; a < 32; ++a)
        for (size_t b = 24; b < a; ++b) join_cards(machine, a, b, YOKE_PATH_NODE, 4);
    EXPECT_EQ(choice_for(machine, "auto:n=8,same=nvlink").chosen,
              (Cards{31, 30, 29, 28, 27, 26, 25, 24}));
    EXPECT_TRUE(choice_for(machine, "auto:n=9,same=nvlink").chosen.empty());
}

TEST(DeviceSelection, EqualInputGivesEqualOutput)
{
    const Machine machine = eight();
    const Cards first = choice_for(machine, "auto:n=3").chosen;
    for (int i = 0; i < 20; ++i) EXPECT_EQ(choice_for(machine, "auto:n=3").chosen, first);
}

}  // namespace
}  // namespace yoke
