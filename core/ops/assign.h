// assign.h: a tensor that takes over the data of another tensor.
#pragma once

#include "core/tensor/tensor.h"

namespace yoke {

// Has the leaf x refer to the memory of `data`, which has x's shape: every holder of x sees the new values. Dtype and
// device may change, and x's gradient is converted with them. Raises YOKE_E_STATE for a tensor made by an op.
void assign_data(yoke_tensor &x, const yoke_tensor &data, const char *call);

}  // namespace yoke
