// Reasons for which cuDNN does not compute an attention, and their warnings: one a kind in a process.
#pragma once

#include "kernels/cuda/host/cudnn/graph.h"

namespace yoke::cuda {

enum class AttentionFit {
    kFits,
    kForeign,   // never cuDNN's: its dtype, dropout, or no elements
    kWidths,    // a width that is not a multiple of 8
    kLayout,    // rows or heads that cuDNN cannot reach
    kKeyCount,  // a gradient for which cuDNN's kernels may answer NaN
};

// Warns that Yoke's own kernels compute the launch for this reason, and names the remedy. `what` is the launch's work,
// "the attention of 8 x 12 x …". Does nothing for kFits and kForeign.
void tell_fit(const yoke_launch *launch, AttentionFit fit, const char *what);

// Warns that cuDNN has no engine for the work. `why` is cuDNN's reason.
void tell_no_engine(const yoke_launch *launch, const char *what, const CudnnFailure &why);

// Warns that the work would need a workspace of so many bytes, above the launch's limit.
void tell_limit(const yoke_launch *launch, const char *what, uint64_t bytes);

}  // namespace yoke::cuda
