// Pairs of processes that ask at once for a leased card of a machine of eight, over a machine made by hand and real
// leases.
#include "core/base/config.h"
#include "core/select/lease.h"
#include "tests/core/fresh_process.h"
#include "tests/core/machines.h"

#include <signal.h>
#include <set>

namespace yoke {
namespace {

using namespace test;

constexpr int kCards = 8, kPairs = 200, kAtOnce = 2 * 4;

Machine eight()
{
    std::vector<Card> cards;
    for (int i = 0; i < kCards; ++i) cards.push_back(card(i, "NVIDIA H100", 90, 80, 132));
    return machine_of(cards);
}

// Chooses and leases as the library does. If another process was faster, the call tries again. -1: no card was free.
int lease_one(const Machine &machine)
{
    const Spec spec = parse_spec("auto:lease");
    for (;;) {
        Situation situation = situation_of(machine);
        for (size_t i = 0; i < machine.cards.size(); ++i)
            situation.states[i].holder = lease_holder(machine.cards[i].info.uuid);
        const Choice choice = choose(machine, situation, spec, 1);
        if (choice.chosen.empty()) return -1;
        const int card = choice.chosen.front();
        if (take_lease(machine.cards[static_cast<size_t>(card)].info.uuid)) return card;
    }
}

struct Racer {
    pid_t process;
    int answer;  // to be read from
};

// Starts a process that waits until `start` is closed, leases a card, and holds the lease until a kill.
Racer start_racer(const Machine &machine, const int (&start)[2])
{
    int answer[2];
    EXPECT_EQ(pipe(answer), 0);
    const pid_t child = fork();
    if (child == 0) {
        alarm(30);
        char nothing;
        close(start[1]);
        static_cast<void>(!read(start[0], &nothing, 1));
        const int card = lease_one(machine);
        static_cast<void>(!write(answer[1], &card, sizeof card));
        for (;;) pause();
    }
    close(answer[1]);
    return {child, answer[0]};
}

void race(const Machine &machine, int round)
{
    int start[2];
    ASSERT_EQ(pipe(start), 0);
    std::vector<Racer> racers;
    for (int i = 0; i < kAtOnce; ++i) racers.push_back(start_racer(machine, start));
    close(start[0]);
    close(start[1]);
    std::set<int> held;
    for (const Racer &racer : racers) {
        int card = -2;
        EXPECT_EQ(read(racer.answer, &card, sizeof card), static_cast<ssize_t>(sizeof card));
        ASSERT_GE(card, 0) << "round " << round << ": eight cards do not serve eight processes";
        EXPECT_TRUE(held.insert(card).second) << "round " << round << ": card " << card << " twice";
        EXPECT_EQ(lease_holder(machine.cards[static_cast<size_t>(card)].info.uuid), racer.process);
    }
    EXPECT_EQ(lease_one(machine), -1) << "round " << round << ": a ninth process got a card";
    for (const Racer &racer : racers) kill(racer.process, SIGKILL);
    for (const Racer &racer : racers) {
        waitpid(racer.process, nullptr, 0);
        close(racer.answer);
    }
    for (const Card &each : machine.cards)
        EXPECT_EQ(lease_holder(each.info.uuid), 0) << "round " << round << ": held by the dead";
}

TEST(DeviceRace, OfTwoHundredPairsNoCardIsHeldTwiceAndNoneAfterKill9)
{
    in_fresh_process([] {
        char name[] = "/tmp/yoke-race-test-XXXXXX";
        const std::string folder = mkdtemp(name);
        set_config("YOKE_LEASE_DIR", folder);
        const Machine machine = eight();
        for (int round = 0; round < 2 * kPairs / kAtOnce; ++round) race(machine, round);
        static_cast<void>(!system(("rm -rf " + folder).c_str()));
    });
}

}  // namespace
}  // namespace yoke
