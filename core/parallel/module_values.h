// module_values.h: values of parameters and buffers that go from one rank to the others.
#pragma once

#include "core/comm/group.h"
#include "core/parallel/wrapped_module.h"

#include <vector>

namespace yoke {

enum class Writes { kAll, kUnlike };

// Gives all ranks the values that rank `root` has in these tensors. All ranks call the function with tensors alike.
// With kUnlike a rank writes only tensors whose values differ: a graph may have saved a buffer, and goes back only if
// nobody has written the buffer since.
void send_values(Group &group, const std::vector<ModuleTensor> &tensors, int32_t root,
                 Writes writes);
// Sends parameters, frozen ones too, and buffers.
void send_module(Group &group, const WrappedModule &module, int32_t root);
// Sends rank 0's module, and warns, if any two ranks have unlike values.
void take_values_of_rank_0(Group &group, const WrappedModule &module);

}  // namespace yoke
