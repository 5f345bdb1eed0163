// Convolutions through cuDNN, unless a launch's flags forbid it.
//
// Contract
//  * f16, bf16 and f32. f32 is rounded to TF32, and an engine's sums come in any order, only where the launch's flags
//    allow it; its workspace keeps to the launch's limit.
//  * Inside the context of its device, on the launch's stream, without waiting for it.
//  * Where cuDNN is missing, fails before it runs, or has no engine, *done is false, nothing was written, and one
//    warning has told why. What fails as it runs is the launch's failure.
#pragma once

#include "kernels/common/conv.h"
#include "kernels/cuda/host/cudnn/cudnn.h"

namespace yoke::cuda {

yoke_status cudnn_convolve(const yoke_launch *launch, const kernels::Conv &conv, CopyOperand copy,
                           bool *done);

}  // namespace yoke::cuda
