// matmul: its shapes become products of matrices, computed by oneDNN or by Yoke's own loops.
#include "kernels/cpu/simd/product.h"

YOKE_SIMD_BEGIN

YOKE_KERNEL(matmul)
{
    const yoke_operand &x = launch->operands[0], &y = launch->operands[1],
                       &out = launch->operands[2];
    if (yoke_status status = check_dtypes(launch)) return status;
    if (out.numel == 0) return YOKE_OK;
    return run_batches(out, x, y, kernels::matmul_product(x, y, out),
                       [&](const Product &each) { return compute(launch, each); });
}

YOKE_SIMD_END
