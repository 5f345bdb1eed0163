// tied_outputs.h: outputs of a module. Their backward leads to the module's reducer.
#pragma once

#include "core/autograd/node.h"

#include <cstdint>
#include <vector>

namespace yoke {

// Ties the results of a forward to `anchor`, a leaf without a parameter. So a backward from an output takes part even
// if the output leads to no parameter. `forward` is the number of the oldest node that the forward may have made.
//
// Outputs that require a gradient are tied; if there are no such outputs, all floats are tied. While gradients are
// off, no output is tied. An output made by the forward itself is tied in place. For every other tied output, the
// list has a tensor to use instead. The rest of the list is null.
std::vector<Tensor> tied_outputs(TensorList outputs, uint64_t forward, const Ref<LeafNode> &anchor);

}  // namespace yoke
