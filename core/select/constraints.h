// wishes.h: what a spec asks of a card beyond which one it is, held against what the card has.
#pragma once

#include "core/select/choice.h"

#include <string>

namespace yoke::detail {

inline constexpr int kUnusable = 1000;  // broken wishes of a card that no wish could save

// The reasons against a card, gathered.
struct Against {
    std::string text;
    int count = 0;
    int passing = 0;  // of these, what may pass while one waits
    void add(const std::string &reason, int weight = 1, bool passes = false)
    {
        text += (text.empty() ? "" : "; ") + reason;
        count += weight;
        passing += passes ? weight : 0;
    }
    void add_passing(const std::string &reason, int weight = 1) { add(reason, weight, true); }
    bool may_pass() const { return count > 0 && passing == count; }
};

// Adds what the card lacks.
void check_wishes(const Card &card, const Seat &seat, const Spec &spec, Against &against);

// "process 77 holds its lease".
std::string lease_text(int32_t holder);

// "9.0".
std::string capability(const yoke_card_info &info);

}  // namespace yoke::detail
