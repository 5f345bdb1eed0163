// tied_outputs.h: outputs of a module that lead a backward to its reducer.
#pragma once

#include "core/autograd/node.h"

#include <cstdint>
#include <vector>

namespace yoke {

// Ties what a forward gave to `anchor`, a leaf of no parameter: so a backward from an output takes part even if the
// output leads to none of the parameters. `forward` is the number of the oldest node that the forward may have made.
//
// Outputs that require a gradient are tied; if none does, all floats. A result of the forward itself is tied in its
// place, and has null in the list. For each other output the list has a tensor to go on with instead.
std::vector<Tensor> tied_outputs(TensorList outputs, uint64_t forward, const Ref<LeafNode> &anchor);

}  // namespace yoke
