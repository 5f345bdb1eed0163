// oneDNN's way to compute a convolution and its gradients.
#pragma once

#include "kernels/common/conv.h"
#include "kernels/cpu/cpu.h"

namespace yoke::cpu {

using kernels::Conv;
using kernels::ConvKind;

// Function that writes x of a part of a gradient by data, from the part's sums in float and the bias.
using AddBias = void (*)(const Conv &part, const float *sums);

// Computes a convolution through oneDNN, by the team. If oneDNN does not support the dtype or has no fast kernel,
// *done is false, the status is YOKE_OK, and the output is unchanged. The caller's own loops support all cases. The
// bits do not depend on the team.
yoke_status conv_onednn(const yoke_launch *launch, const Conv &conv, AddBias add_bias, bool *done);

}  // namespace yoke::cpu
