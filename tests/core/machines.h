// machines.h: machines made by hand, for tests of choices over an inventory.
#pragma once

#include "core/select/choice.h"

#include <cmath>
#include <string>
#include <vector>

namespace yoke::test {

inline constexpr int64_t kGiB = int64_t{1} << 30;

// Returns a healthy card. `number` is its index here and in CUDA, and also in its UUID and address.
inline Card card(int number, const char *name, int cc, double memory_gib, int multiprocessors)
{
    Card made = unknown_card();
    yoke_card_info &info = made.info;
    info.index = info.visible = number;
    info.kind = YOKE_CARD_GPU;
    info.present = 1;
    info.mig = info.asleep = info.display = info.is_egpu = 0;
    put(info.name, name);
    put(info.vendor, "nvidia");
    put(info.driver, "nvidia");
    put(info.uuid, "GPU-" + std::string(8, static_cast<char>('a' + number)) + "-0000");
    put(info.pci, "0000:" + std::to_string(10 + number) + ":00.0");
    info.cc_major = cc / 10;
    info.cc_minor = cc % 10;
    info.memory_total = static_cast<int64_t>(memory_gib * static_cast<double>(kGiB));
    info.memory_free = info.memory_total - kGiB / 2;
    info.multiprocessors = multiprocessors;
    info.utilization = 0;
    info.numa_node = 0;
    info.link_generation_max = 5;
    info.link_width = 16;
    return made;
}

// Returns a machine whose links all cross the system; join() makes links better.
inline Machine machine_of(const std::vector<Card> &cards)
{
    Machine made;
    made.cards = cards;
    made.links.resize(cards.size() * cards.size());
    for (size_t a = 0; a < cards.size(); ++a)
        for (size_t b = 0; b < cards.size(); ++b) {
            yoke_card_link &link = made.links[a * cards.size() + b];
            link.struct_size = sizeof link;
            link.path = a == b ? YOKE_PATH_SELF : YOKE_PATH_SYSTEM;
        }
    return made;
}

inline void join_cards(Machine &machine, size_t a, size_t b, int path, int nvlinks = 0)
{
    for (const size_t at : {a * machine.cards.size() + b, b * machine.cards.size() + a}) {
        machine.links[at].path = path;
        machine.links[at].nvlinks = nvlinks;
    }
}

// Returns the situation of a process without variables on this machine.
inline Situation situation_of(const Machine &machine)
{
    Situation made;
    made.states.resize(machine.cards.size());
    for (size_t i = 0; i < machine.cards.size(); ++i)
        if (machine.cards[i].info.visible >= 0)
            made.states[i].device = "cuda:" + std::to_string(machine.cards[i].info.visible);
    made.cpu_free = 32 * kGiB;
    made.cpu_total = 64 * kGiB;
    return made;
}

inline Choice choice_for(const Machine &machine, const char *text, int count = 0)
{
    const Spec spec = parse_spec(text);
    return choose(machine, situation_of(machine), spec,
                  count        ? count
                  : spec.count ? spec.count
                               : 1);
}

inline std::string reason_of(const Choice &choice, int card)
{
    for (const Verdict &verdict : choice.verdicts)
        if (verdict.card == card) return (verdict.accepted ? "yes: " : "no: ") + verdict.reason;
    return "";
}

}  // namespace yoke::test
