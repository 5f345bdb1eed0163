// join.h: joins, within which ranks may have unlike numbers of batches.
//
// A rank that runs out of data leaves the join, and answers each backward of the others with weight 0 until all ranks
// have left. The gate of a reducer (backward_gate.h) knows whether the rank is in a join; these functions, called by
// the script's thread, have no state and no lock.
#pragma once

#include "core/comm/group.h"
#include "core/state/tree.h"

namespace yoke {

// Begins a join. All ranks are in a join, or none is, or each backward raises YOKE_E_STATE on all of them.
void begin_join(Reducer &reducer);
// Ends the join. Returns when all ranks have come here, with the values and gradients of a rank that came last, and
// what that rank gave as `mine`, which may be null. Raises YOKE_E_STATE if no rank had a backward since begin_join.
Ref<State> end_join(Reducer &reducer, const Ref<State> &mine);
// Ends the join of the group's one module. Ends the group if there is no such module: the other ranks wait for answers.
Ref<State> end_join_of(Group &group, const Ref<State> &mine);

}  // namespace yoke
