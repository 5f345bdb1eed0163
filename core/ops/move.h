// move.h: a tensor's elements on another device, with the way back for its gradient.
#pragma once

#include "core/tensor/tensor.h"

namespace yoke {

// x on `to`, row-major; recorded on the tape like an op. `non_blocking` as in transfer(): a result on the host is
// then pinned, and holds its values once the source's stream has been waited for.
Tensor move_to(const yoke_tensor &x, Device &to, bool non_blocking);

// A copy of a tensor of the host in pinned memory; x itself where it is pinned already.
Tensor pin_memory(const yoke_tensor &x, const char *call);

}  // namespace yoke
