// constraints.h: checks a card against the constraints of a spec, apart from the card's identity.
#pragma once

#include "core/base/text.h"
#include "core/select/card_state.h"
#include "core/select/spec.h"

#include <string>

namespace yoke::detail {

inline constexpr int kUnusable = 1000;  // weight of a reason that makes a card unusable

// Broken constraints of a card.
struct Rejections {
    std::string text;
    int count = 0;
    int passing = 0;  // the part that may pass during a wait
    void add(const std::string &reason, int weight = 1, bool passes = false)
    {
        add_part(text, reason, "; ");
        count += weight;
        passing += passes ? weight : 0;
    }
    void add_passing(const std::string &reason, int weight = 1) { add(reason, weight, true); }
    bool may_pass() const { return count > 0 && passing == count; }
};

// Adds the broken constraints of a card.
void check_constraints(const Card &card, const CardState &state, const Spec &spec,
                       Rejections &rejections);

// Returns "process 77 holds its lease", or "another process holds its lease" for an unknown holder.
std::string lease_text(int32_t holder);

// Returns the compute capability in words, "9.0".
std::string capability(const yoke_card_info &info);

}  // namespace yoke::detail
