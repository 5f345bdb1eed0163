// Attention and its gradient through cuDNN, unless a launch's flags forbid it.
//
// Contract
//  * f16 and bf16, widths in eights, rows and heads 16 bytes or a multiple apart, causal or full, without a mask and
//    without dropout. All else is for the own kernels, as is what cuDNN has no engine for; neither is worth a word.
//  * The gradient sums in a fixed order, unless the flags allow any. It then stores the gradients of scores, 2 bytes
//    each, in its workspace, and so goes over as many heads at once as the launch's limit and the memory hold.
//  * Inside the context of its device, on the launch's stream, without waiting for it.
//  * Where *done is false, the own kernels have all of it to do; what fails as it runs is the launch's failure.
#pragma once

#include "kernels/cuda/host/cudnn/cudnn.h"

namespace yoke::cuda {

// _attention or _attention_backward, which the launch tells.
yoke_status cudnn_attend(const yoke_launch *launch, CopyOperand copy, bool *done);

}  // namespace yoke::cuda
