// module_values.h: values of parameters and buffers, sent from a rank to the other ranks.
#pragma once

#include "core/comm/group.h"
#include "core/parallel/wrapped_module.h"

#include <vector>

namespace yoke {

enum class Writes { kAll, kUnlike };

// Gives all ranks rank `root`'s values of these tensors. All ranks call the function with tensors alike. With kUnlike
// a rank writes only tensors whose values differ. A graph may have saved a buffer, and its backward raises if the
// buffer was written since.
void send_values(Group &group, const std::vector<ModuleTensor> &tensors, int32_t root,
                 Writes writes);
// Gives all ranks rank `root`'s parameters, frozen parameters too, and buffers.
void send_module(Group &group, const WrappedModule &module, int32_t root);
// Compares the ranks' parameters and buffers by hashes. If any two ranks have unlike values, gives all ranks rank 0's
// values, and rank 0 logs a warning.
void take_values_of_rank_0(Group &group, const WrappedModule &module);

}  // namespace yoke
