// gradients.h: what is done with the gradients of many parameters at once.
#pragma once

#include "core/tensor/tensor.h"

namespace yoke {

// Returns the norm of all gradients as a single vector (p = 2, 1, infinity or any number above 0), a scalar on the
// device. If max_norm / (norm + 1e-6) is below 1, multiplies the gradients by this factor. The call does not wait for
// the device. Parameters without a gradient are passed over; the norm is 0 if no parameter has a gradient. Raises
// YOKE_E_VALUE for max_norm below 0, p not above 0, and parameters on several devices.
Tensor clip_grad_norm(TensorList params, double max_norm, double p);

}  // namespace yoke
