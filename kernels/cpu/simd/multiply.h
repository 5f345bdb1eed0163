// Our own matrix product: every dtype, any strides. It serves small products, where oneDNN's set-up would dominate, and
// the dtypes that oneDNN lacks. f16 and bf16 are widened tile by tile and accumulate in float.
#pragma once

#include "kernels/cpu/gemm.h"
#include "kernels/cpu/simd/simd.h"

YOKE_SIMD_BEGIN

yoke_status multiply(const yoke_launch *launch, const Product &product);

YOKE_SIMD_END
