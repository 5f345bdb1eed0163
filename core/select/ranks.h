// ranks.h: gives each rank its own device if several ranks of a job are on a machine.
#pragma once

#include "core/select/candidates.h"

namespace yoke::detail {

// Finds the number of this process among the machine's ranks, and the use of the cards by the job's other ranks. Only
// for a spec without a count.
void look_at_ranks(const Spec &spec, Candidates &all);

// Warns once if ranks share devices.
void tell_shared(const Spec &spec, const Situation &situation, const Choice &choice);

}  // namespace yoke::detail
