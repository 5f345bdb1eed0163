// constraints.h: what a spec asks of a card beyond which one it is, held against what the card has.
#pragma once

#include "core/base/text.h"
#include "core/select/card_state.h"
#include "core/select/spec.h"

#include <string>

namespace yoke::detail {

inline constexpr int kUnusable = 1000;  // broken constraints of a card that meeting none could save

// What a card lacks, gathered.
struct Rejections {
    std::string text;
    int count = 0;
    int passing = 0;  // of these, what may pass while one waits
    void add(const std::string &reason, int weight = 1, bool passes = false)
    {
        add_part(text, reason, "; ");
        count += weight;
        passing += passes ? weight : 0;
    }
    void add_passing(const std::string &reason, int weight = 1) { add(reason, weight, true); }
    bool may_pass() const { return count > 0 && passing == count; }
};

// Adds what the card lacks.
void check_constraints(const Card &card, const CardState &state, const Spec &spec,
                       Rejections &rejections);

// "process 77 holds its lease".
std::string lease_text(int32_t holder);

// "9.0".
std::string capability(const yoke_card_info &info);

}  // namespace yoke::detail
