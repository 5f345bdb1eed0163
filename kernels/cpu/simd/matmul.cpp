// matmul: its shapes become products of matrices, which oneDNN or our own loops compute.
#include "kernels/cpu/simd/product.h"

YOKE_SIMD_BEGIN

YOKE_KERNEL(matmul)
{
    const yoke_operand &x = launch->operands[0], &y = launch->operands[1],
                       &out = launch->operands[2];
    if (yoke_status status = check_dtypes(launch)) return status;
    if (out.numel == 0) return YOKE_OK;
    const int64_t *xs = x.shape + x.ndim, *xt = x.strides + x.ndim;
    const int64_t *ys = y.shape + y.ndim, *yt = y.strides + y.ndim;
    const int64_t *ot = out.strides + out.ndim;
    Product p = {};
    p.dtype = out.dtype;
    p.m = x.ndim > 1 ? xs[-2] : 1;
    p.k = xs[-1];
    p.n = y.ndim > 1 ? ys[-1] : 1;
    p.a = {nullptr, 0, x.ndim > 1 ? xt[-2] : p.k, xt[-1]};
    p.b = {nullptr, 0, y.ndim > 1 ? yt[-2] : yt[-1], y.ndim > 1 ? yt[-1] : 1};
    // The result's axes: n last unless y is a vector, m before it unless x is one.
    p.c.column_stride = y.ndim > 1 ? ot[-1] : 1;
    p.c.row_stride = x.ndim > 1 ? ot[y.ndim > 1 ? -2 : -1] : p.n;
    return run_batches(out, x, y, p, [&](const Product &each) { return compute(launch, each); });
}

YOKE_SIMD_END
