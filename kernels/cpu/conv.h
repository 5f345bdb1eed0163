// oneDNN's way to compute a convolution and its gradients.
#pragma once

#include "kernels/common/conv.h"
#include "kernels/cpu/cpu.h"

namespace yoke::cpu {

using kernels::Conv;
using kernels::ConvKind;

// Writes x of a part of a gradient by data, from its sums in float and the bias.
using AddBias = void (*)(const Conv &part, const float *sums);

// Computes it through oneDNN, by the team. *done is false, with YOKE_OK and nothing written, where oneDNN does not take
// its dtype or has nothing fast for it; the caller's own loops take everything. The bits do not depend on the team.
yoke_status conv_onednn(const yoke_launch *launch, const Conv &conv, AddBias add_bias, bool *done);

}  // namespace yoke::cpu
