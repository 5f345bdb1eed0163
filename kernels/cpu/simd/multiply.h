// Yoke's own matrix product: every dtype, any strides. It serves small products, where oneDNN's setup would dominate,
// and dtypes without support in oneDNN. f16 and bf16 are widened tile by tile, and sums are float.
#pragma once

#include "kernels/cpu/gemm.h"
#include "kernels/cpu/simd/simd.h"

YOKE_SIMD_BEGIN

yoke_status multiply(const yoke_launch *launch, const Product &product);

YOKE_SIMD_END
