// The gradient of a convolution by weight as a product of matrices, where that beats oneDNN's own way.
#pragma once

#include "kernels/cpu/conv.h"

namespace yoke::cpu {

// Whether conv_product is for it; sizes alone decide.
bool is_product(const Conv &conv);

// The gradient by weight, by the team. *done as of conv_onednn.
yoke_status conv_product(const yoke_launch *launch, const Conv &conv, bool *done);

}  // namespace yoke::cpu
