// ranks.h: which device is a rank's own, where several ranks of one job stand on a machine.
#pragma once

#include "core/select/candidates.h"

namespace yoke::detail {

// Finds which rank of this machine this process is, and what the others of its job have of the cards, for a spec that
// says no count.
void look_at_ranks(const Spec &spec, Candidates &all);

// Warns once that ranks share devices.
void tell_shared(const Spec &spec, const Situation &situation, const Choice &choice);

}  // namespace yoke::detail
