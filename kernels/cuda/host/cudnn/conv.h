// Convolutions through cuDNN, unless a launch's flags forbid cuDNN.
//
// Contract
//  * f16, bf16 and f32. f32 is rounded to TF32, and an engine's sums come in any order, only if the launch's flags
//    allow this. The workspace stays within the launch's limit.
//  * Inside the context of its device, on the launch's stream, without waiting for the stream.
//  * If cuDNN is missing, fails before it runs, or has no engine, *done is false and the output is unchanged. A
//    single warning gives the reason. A failure during the run is the launch's failure.
#pragma once

#include "kernels/common/conv.h"
#include "kernels/cuda/host/cudnn/cudnn.h"

namespace yoke::cuda {

yoke_status cudnn_convolve(const yoke_launch *launch, const kernels::Conv &conv, CopyOperand copy,
                           bool *done);

}  // namespace yoke::cuda
