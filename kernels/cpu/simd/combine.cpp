// The arithmetic of collectives for this instruction set.
#include "kernels/common/combine.h"

#include "kernels/cpu/simd/simd.h"

YOKE_SIMD_BEGIN

extern const CombineFn kCombine;
const CombineFn kCombine = kernels::combine_elements;

YOKE_SIMD_END
