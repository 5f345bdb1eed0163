// Convolutions in bf16 as products of matrices: the gradient by weight where that beats oneDNN's own way, the result
// where that is not to be trusted.
#pragma once

#include "kernels/cpu/conv.h"

namespace yoke::cpu {

// Returns whether conv_product can compute a convolution with copies of bearable size (can_be_product), and whether
// conv_product is then faster than oneDNN's own way (is_product). Both depend on sizes only.
bool can_be_product(const Conv &conv);
bool is_product(const Conv &conv);

// Computes the gradient by weight as a product, by the team. *done has the meaning of conv_onednn's *done.
yoke_status conv_product(const yoke_launch *launch, const Conv &conv, bool *done);

// Computes the result as products, of any sizes but 0, by the team. *done has the meaning of conv_onednn's *done.
yoke_status conv_forward(const yoke_launch *launch, const Conv &conv, bool *done);

}  // namespace yoke::cpu
