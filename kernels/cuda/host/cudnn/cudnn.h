// Interface to cuDNN for other files, in builds with and without cuDNN's headers.
#pragma once

#include "core/backend/backend.h"
#include "kernels/cuda/host/cuda.h"

namespace yoke::cuda {

// Returns "" if cuDNN works, else a sentence with the problem, the place, and the remedy. Looks for cuDNN at the
// first call.
const char *cudnn_why_unavailable();

// Returns cuDNN's version, 91900 for 9.19.0, or 0 if cuDNN does not work.
int64_t cudnn_version();

// Prepares the device before a stream is captured: makes a handle if no handle is free. This may wait for the device,
// which would break a capture. Also returns YOKE_OK if the launches' flags forbid cuDNN or cuDNN does not work: the
// launches report this.
yoke_status cudnn_prepare(Device &device, uint32_t flags);

// Copy of elements between operands of the same shape. A kernel's entry passes this function to calls of cuDNN.
using CopyOperand = yoke_status (*)(const yoke_launch *launch, const yoke_operand &dst,
                                    const yoke_operand &src);

// Destroys the device's handles and plans, when the device closes. The next call makes others.
void cudnn_close(const Device &device);

}  // namespace yoke::cuda
