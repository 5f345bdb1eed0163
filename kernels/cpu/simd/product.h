// What matmul and linear share: from operands to products of matrices.
#pragma once

#include "kernels/cpu/gemm.h"
#include "kernels/cpu/simd/iterate.h"
#include "kernels/cpu/simd/multiply.h"

YOKE_SIMD_BEGIN

// Below this many multiplications oneDNN's set-up costs more than our own loops take.
constexpr int64_t kSmall = 16 * 16 * 16;

inline yoke_status compute(const yoke_launch *launch, const Product &product)
{
    if (product.batch == 0 || product.m == 0 || product.n == 0) return YOKE_OK;
    bool done = false;
    if (product.k > 0 && product.batch * product.m * product.n * product.k > kSmall)
        if (yoke_status status = gemm_onednn(product, &done)) return status;
    return done ? YOKE_OK : multiply(launch, product);
}

// The same with rows of several matrices in one, where all share b: one product instead of a batch.
inline void join_batch(Product &p)
{
    if (p.batch == 1 || p.b.batch_stride != 0) return;
    if (p.m == 1) {  // one row has no stride of its own
        p.a.row_stride = p.a.batch_stride;
        p.c.row_stride = p.c.batch_stride;
    }
    if (p.a.batch_stride != p.m * p.a.row_stride || p.c.batch_stride != p.m * p.c.row_stride)
        return;
    p.m *= p.batch;
    p.batch = 1;
}

inline int64_t elements(int64_t bytes, yoke_dtype dtype)
{
    return bytes / dtype_size(dtype);
}

// run(product) for the leading axes of out, x and y, which broadcast; the matrices' own are in `product`.
template <class F>
inline yoke_status run_batches(const yoke_operand &out, const yoke_operand &x,
                               const yoke_operand &y, Product &product, const F &run)
{
    int x_own = x.ndim > 1 ? 2 : 1, y_own = y.ndim > 1 ? 2 : 1;
    int ndim = out.ndim - (x_own - 1) - (y_own - 1);
    yoke_operand x_batch = x, y_batch = y;
    x_batch.ndim -= x_own;
    y_batch.ndim -= y_own;
    Loop<3> loop;
    loop.ndim = 0;
    loop.numel = 1;
    loop.data[0] = data_of<char>(out);
    loop.data[1] = data_of<char>(x);
    loop.data[2] = data_of<char>(y);
    int64_t size = dtype_size(out.dtype);
    for (int axis = ndim - 1; axis >= 0; axis--)
        add_axis<3>(
            loop, out.shape[axis],
            {out.strides[axis] * size, step_of(x_batch, axis, ndim), step_of(y_batch, axis, ndim)});
    finish_loop<3>(loop);
    if (loop.numel == 0) return YOKE_OK;
    product.batch = loop.shape[0];
    product.c.batch_stride = elements(loop.stride[0][0], out.dtype);
    product.a.batch_stride = elements(loop.stride[0][1], x.dtype);
    product.b.batch_stride = elements(loop.stride[0][2], y.dtype);
    int64_t outer = loop.numel / loop.shape[0];
    join_batch(product);
    for (int64_t i = 0; i < outer; i++) {
        Cursor<3> cursor(loop, i, 1);
        product.c.data = cursor.data[0];
        product.a.data = cursor.data[1];
        product.b.data = cursor.data[2];
        if (yoke_status status = run(product)) return status;
    }
    return YOKE_OK;
}

inline yoke_status check_dtypes(const yoke_launch *launch)
{
    const yoke_operand *o = launch->operands;
    for (int i = 1; i < launch->operand_count; i++)
        if (is_present(o[i]) && o[i].dtype != o[0].dtype)
            return fail(YOKE_E_TYPE, "%s: x is %s but another argument is %s; cast one of them",
                        op_name(launch->op), dtype_name(o[0].dtype), dtype_name(o[i].dtype));
    return YOKE_OK;
}

YOKE_SIMD_END
