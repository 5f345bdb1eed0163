// oneDNN's way to compute a product of matrices.
#pragma once

#include "kernels/common/product.h"
#include "kernels/cpu/cpu.h"

namespace yoke::cpu {

using kernels::Matrix;
using kernels::Product;

// What AMX takes at once: of depth, and of rows or columns in a full part.
constexpr int64_t kAmxTile = 32, kAmxUnit = 64;

// Computes the product through oneDNN, by the team. *done is false, with YOKE_OK and nothing written, where oneDNN does
// not take its dtype or strides; the caller's own loops take everything. The bits do not depend on the team.
yoke_status gemm_onednn(const yoke_launch *launch, const Product &product, bool *done);

// How a product, or a part of one, is computed: gemm_onednn, of strides that oneDNN takes.
using ComputeProduct = yoke_status (*)(const yoke_launch *, const Product &, bool *done);

}  // namespace yoke::cpu
