// Copies between operands of any strides and dtypes, for other ops.
#pragma once

#include "kernels/cuda/ops/map.cuh"

YOKE_CUDA_BEGIN

// Copies src to dst, in dst's dtype. src broadcasts to dst's shape and may be a script's number.
yoke_status copy_operand(const yoke_launch *launch, const yoke_operand &dst,
                         const yoke_operand &src);

YOKE_CUDA_END
