// oneDNN's way to compute a product of matrices.
#pragma once

#include "kernels/common/product.h"
#include "kernels/cpu/cpu.h"

namespace yoke::cpu {

using kernels::Matrix;
using kernels::Product;

// AMX's units: the depth, and the rows or columns of a full part.
constexpr int64_t kAmxTile = 32, kAmxUnit = 64;

// Computes the product through oneDNN, by the team. If oneDNN does not support the dtype or the strides, *done is
// false, the status is YOKE_OK, and the output is unchanged. The caller's own loops support all cases. The bits do
// not depend on the team.
yoke_status gemm_onednn(const yoke_launch *launch, const Product &product, bool *done);

// Function for a product or a part of a product, such as gemm_onednn. oneDNN supports the strides.
using ComputeProduct = yoke_status (*)(const yoke_launch *, const Product &, bool *done);

}  // namespace yoke::cpu
