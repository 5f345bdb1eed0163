// Attention and its gradient through cuDNN, unless a launch's flags forbid cuDNN.
//
// Contract
//  * f16 and bf16, widths in multiples of 8, rows and heads at multiples of 16 bytes, causal or full, without a mask
//    and without dropout. Yoke's own kernels handle all other launches, and launches without an engine in cuDNN.
//    Neither case is logged.
//  * The gradient sums in a fixed order, unless the flags allow any order. Then it stores the gradients of scores, 2
//    bytes each, in its workspace. So it handles as many heads at once as the launch's limit and the memory allow.
//  * Inside the context of its device, on the launch's stream, without waiting for the stream.
//  * If *done is false, Yoke's own kernels must do all the work. A failure while cuDNN runs is the launch's failure.
#pragma once

#include "kernels/cuda/host/cudnn/cudnn.h"

namespace yoke::cuda {

// Runs the launch's op, _attention or _attention_backward. `copy` copies keys and values that a gradient needs dense.
yoke_status cudnn_attend(const yoke_launch *launch, CopyOperand copy, bool *done);

}  // namespace yoke::cuda
