// Attention and its gradient through cuDNN, unless a launch's flags forbid cuDNN.
//
// Contract
//  * f16 and bf16, widths in multiples of 8, rows and heads at multiples of 16 bytes, causal, full or with a mask,
//    without dropout. Yoke's own kernels handle all other launches, and launches without an engine in cuDNN. A warning
//    says so, once a reason, unless the launch has another dtype or dropout.
//  * A row whose keys are all forbidden has the results of Yoke's own kernels: zeros, and a log-sum-exp of +infinity.
//  * The gradient sums in any order if the flags allow it, else in a fixed order. Then it stores the gradients of
//    scores, 2 bytes each, in its workspace. So it handles as many heads at once as the launch's limit and the memory
//    allow.
//  * Inside the context of its device, on the launch's stream, without waiting for the stream.
//  * If *done is false, Yoke's own kernels must do all the work. A failure while cuDNN runs is the launch's failure.
#pragma once

#include "kernels/cuda/host/cudnn/cudnn.h"

namespace yoke::cuda {

// Kernels that run beside cuDNN's.
struct AttentionKernels {
    CopyOperand copy;  // copies keys and values that a gradient needs dense, and masks of numbers
    CopyOperand write_bias;  // copies a mask of bools: 0 if true, else -infinity
    // Writes the results of the rows whose keys are all forbidden, after cuDNN's forward pass.
    yoke_status (*settle_rows)(const yoke_launch *launch);
};

// Runs the launch's op, _attention or _attention_backward.
yoke_status cudnn_attend(const yoke_launch *launch, const AttentionKernels &kernels, bool *done);

}  // namespace yoke::cuda
