// fit.h: copies the tensors of a loaded state into the tensors of a run.
//
// `into` is a dict, whose tensors are the targets. At each path of `into`, `from` must have a tensor of the same
// dtype and shape. Below the root, `from` must have no other paths. At the root, `from` may have more.
#pragma once

#include "core/state/tree.h"

#include <string>
#include <vector>

namespace yoke {

// Returns a line for each misfit, in the order of `into`: "'net/0.weight' is a float32 tensor of shape [2] there, and
// …".
std::vector<std::string> misfits(const State &from, const State &into);

// Copies the tensors of `from` into the tensors of `into`. Before any tensor is changed, raises YOKE_E_VALUE with the
// misfits, if there are any.
void copy_state(const State &from, const State &into, const char *call);

}  // namespace yoke
