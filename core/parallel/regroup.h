// regroup.h: a module that goes on in another group, such as the group of the ranks which still live.
#pragma once

#include "core/comm/group.h"
#include "core/state/tree.h"

#include <memory>

namespace yoke {

struct Regrouped {
    std::shared_ptr<Reducer> reducer;
    Ref<State> state;
};

// Makes a reducer in the place of `former`, which leaves its leaves, for a group whose ranks all call the function. All
// ranks get parameters, buffers and the compression's state from the rank that is furthest, and what that rank gave as
// `mine`, which may be null. Gradients are gone, also if the function raises; parameters and buffers are as they were
// then.
Regrouped regroup(Reducer &former, const Ref<Group> &group, const Ref<State> &mine);

}  // namespace yoke
