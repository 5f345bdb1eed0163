// Kernels beside cuDNN's attention: copies of masks, and rows without an allowed key.
#pragma once

#include "kernels/cuda/host/cudnn/attention.h"
#include "kernels/cuda/ops/copy_strided.cuh"

YOKE_CUDA_BEGIN

// Writes 0 for true and -infinity for false. dst is f16 or bf16; src broadcasts to dst's shape.
yoke_status write_bias(const yoke_launch *launch, const yoke_operand &dst, const yoke_operand &src);

// Writes the results of _attention's rows whose keys are all forbidden by the mask: zeros, and a log-sum-exp of
// +infinity. Looks only at rows with an infinite log-sum-exp or NaN, so masks are hardly read. A NaN of other rows
// stays.
yoke_status settle_rows(const yoke_launch *launch);

inline constexpr AttentionKernels kAttentionKernels = {copy_operand, write_bias, settle_rows};

YOKE_CUDA_END
