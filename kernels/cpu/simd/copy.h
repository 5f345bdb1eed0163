// Copies between strided tensors, for all kernels: cat, clone, packing for a matrix product.
#pragma once

#include "kernels/cpu/simd/iterate.h"

YOKE_SIMD_BEGIN

// Copies src to dst. src is broadcast to dst's shape and cast to dst's dtype.
yoke_status copy_operand(const yoke_launch *launch, const yoke_operand &dst,
                         const yoke_operand &src);

// Writes the bits of a script's number as an element of `dtype` to *bits. Fails for a dtype that cannot be stored.
yoke_status element_bits(const yoke_launch *launch, yoke_dtype dtype, const yoke_arg &value,
                         uint64_t *bits);

YOKE_SIMD_END
