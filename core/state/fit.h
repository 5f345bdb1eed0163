// fit.h: the tensors of a state that was loaded, into those of a run.
//
// `into` is a dict whose tensors stand for themselves: at each of its paths `from` must have a tensor of the same dtype
// and shape, and below its root nothing beside them. At the root `from` may have more.
#pragma once

#include "core/state/tree.h"

#include <string>
#include <vector>

namespace yoke {

// What does not fit, a line each, in the order of `into`: "'net/0.weight' is a float32 tensor of shape [2] there, and
// …".
std::vector<std::string> misfits(const State &from, const State &into);

// Raises YOKE_E_VALUE with all of them, before any tensor is changed.
void copy_state(const State &from, const State &into, const char *call);

}  // namespace yoke
