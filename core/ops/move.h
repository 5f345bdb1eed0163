// move.h: a tensor's elements on another device, with the way back for its gradient.
#pragma once

#include "core/tensor/tensor.h"

namespace yoke {

// Returns x on `to`, row-major; recorded on the tape like an op. `non_blocking` as in transfer(): a result in host
// memory is pinned, and has its values after a wait for the source's stream.
Tensor move_to(const yoke_tensor &x, Device &to, bool non_blocking);

// Returns x on `to` with `dtype`; x itself if both agree already.
Tensor convert_to(const yoke_tensor &x, Device &to, yoke_dtype dtype, bool non_blocking);

// Moves the leaf x itself to `to` with `dtype`, and its gradient too: every holder of x sees the new values. Raises
// YOKE_E_STATE for a tensor made by an op.
void move_leaf(yoke_tensor &x, Device &to, yoke_dtype dtype, const char *call);

// Returns a copy of a host tensor in pinned memory; x itself if x is pinned already. Raises YOKE_E_VALUE for a tensor
// of another device.
Tensor pin_memory(const yoke_tensor &x, const char *call);

}  // namespace yoke
