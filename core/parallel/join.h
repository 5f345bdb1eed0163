// join.h: joins, within which ranks may have unlike numbers of batches.
//
// A rank out of data leaves the join. It then answers each backward of the other ranks with weight 0, until all ranks
// have left. The gate of a reducer (backward_gate.h) knows whether the rank is in a join. The script's thread calls
// these functions, which have no state and no lock.
#pragma once

#include "core/comm/group.h"
#include "core/state/tree.h"

namespace yoke {

// Begins a join on this rank. Either all ranks are in a join, or no rank is; otherwise each backward raises
// YOKE_E_STATE on all ranks.
void begin_join(Reducer &reducer);
// Ends the join on this rank: answers the other ranks' backward passes until all ranks have ended the join. A rank
// with the most batches then gives all ranks its values and gradients, and its `mine`, which may be null and is
// returned. Raises YOKE_E_STATE if no rank had a backward since begin_join.
Ref<State> end_join(Reducer &reducer, const Ref<State> &mine);
// Ends the join of the group's only module, as end_join does. Ends the group if there is no such module, because the
// other ranks wait for answers.
Ref<State> end_join_of(Group &group, const Ref<State> &mine);

}  // namespace yoke
