// oneDNN's way to compute a product of matrices.
#pragma once

#include "kernels/common/product.h"
#include "kernels/cpu/cpu.h"

namespace yoke::cpu {

using kernels::Matrix;
using kernels::Product;

// Computes the product through oneDNN, by the team. *done is false, with YOKE_OK and nothing written, where oneDNN does
// not take its dtype or strides; the caller's own loops take everything. The bits do not depend on the team.
yoke_status gemm_onednn(const yoke_launch *launch, const Product &product, bool *done);

// Whether gemm_onednn leaves a product of this depth to the caller, whatever its other sizes are: oneDNN 2.6's AMX
// kernel of an odd one of more than a tile may end in an illegal instruction. Seen with 3 to 130 rows, a depth of 63
// and 240 columns, and never with an even depth.
inline bool is_broken_depth(yoke_dtype dtype, int64_t depth)
{
    return dtype == YOKE_BF16 && depth % 2 != 0 && depth > 32;
}

}  // namespace yoke::cpu
