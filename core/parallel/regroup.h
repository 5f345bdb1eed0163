// regroup.h: change of a module to another group, such as the group of the living ranks.
#pragma once

#include "core/comm/group.h"
#include "core/state/tree.h"

#include <memory>

namespace yoke {

struct Regrouped {
    std::shared_ptr<Reducer> reducer;
    Ref<State> state;
};

// Makes a reducer in place of `former`, which gives its leaves back. All ranks of the new group call the function.
// All ranks get parameters, buffers, the compression's state and `mine` of the furthest rank; `mine` may be null.
// Gradients are dropped, even if the function raises; parameters and buffers then stay unchanged.
Regrouped regroup(Reducer &former, const Ref<Group> &group, const Ref<State> &mine);

}  // namespace yoke
