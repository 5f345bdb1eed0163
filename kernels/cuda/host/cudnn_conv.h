// Convolutions through cuDNN, where YOKE_CUDNN_ENABLED is 1.
//
// Contract
//  * f16, bf16 and f32. An engine's sums have a fixed order; f32 is rounded to TF32 where the launch's flags allow it.
//  * Inside the context of its device, on the launch's stream, without waiting for it.
//  * Where cuDNN is missing, fails before it runs, or has no engine, *done is false, nothing was written, and one
//    warning has told why. What fails as it runs is the launch's failure.
#pragma once

#include "kernels/common/conv.h"
#include "kernels/cuda/host/cudnn.h"

namespace yoke::cuda {

yoke_status cudnn_convolve(const yoke_launch *launch, const kernels::Conv &conv, CopyOperand copy,
                           bool *done);

}  // namespace yoke::cuda
