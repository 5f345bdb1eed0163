// Convolutions in bf16 as products of matrices: the gradient by weight where that beats oneDNN's own way, the result
// where that is not to be trusted.
#pragma once

#include "kernels/cpu/conv.h"

namespace yoke::cpu {

// Return whether conv_product can compute a convolution with copies of bearable size, and whether conv_product is
// faster than oneDNN's own way. Both depend on sizes only.
bool can_be_product(const Conv &conv);
bool is_product(const Conv &conv);

// The gradient by weight, by the team. *done as of conv_onednn.
yoke_status conv_product(const yoke_launch *launch, const Conv &conv, bool *done);

// The result, of any sizes but 0, by the team. *done as of conv_onednn.
yoke_status conv_forward(const yoke_launch *launch, const Conv &conv, bool *done);

}  // namespace yoke::cpu
