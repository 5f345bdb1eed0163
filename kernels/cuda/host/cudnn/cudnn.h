// What others need of cuDNN, whether the module was built with its headers or without.
#pragma once

#include "core/backend/backend.h"
#include "kernels/cuda/host/cuda.h"

namespace yoke::cuda {

// "" where cuDNN serves; else one sentence: what is wrong, where, and what to do. Looks for it at the first call.
const char *cudnn_why_unavailable();

// 91900 is 9.19.0; 0 where cuDNN cannot serve.
int64_t cudnn_version();

// Before a stream is captured: makes a handle where none is free, for that may wait for the device, which no capture
// outlives. YOKE_OK too where the launches' flags forbid cuDNN or it cannot serve, of which the launches tell.
yoke_status cudnn_prepare(Device &device, uint32_t flags);

// Elements from one operand to another of the same shape: what a kernel's entry lends to calls of cuDNN.
using CopyOperand = yoke_status (*)(const yoke_launch *launch, const yoke_operand &dst,
                                    const yoke_operand &src);

// Gives the device's handles and plans back; the next call makes others. When the device closes.
void cudnn_close(const Device &device);

}  // namespace yoke::cuda
