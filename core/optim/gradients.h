// gradients.h: what is done with the gradients of many parameters at once.
#pragma once

#include "core/tensor/tensor.h"

namespace yoke {

// The norm of all gradients as if they were one vector (p = 2, 1, infinity or any number above 0), a scalar on the
// device; they are multiplied by max_norm / (norm + 1e-6) where that is below 1. The host waits for nothing.
// Parameters without a gradient are passed over; 0 if none has one. Raises YOKE_E_VALUE for parameters on several
// devices.
Tensor clip_grad_norm(TensorList params, double max_norm, double p);

}  // namespace yoke
