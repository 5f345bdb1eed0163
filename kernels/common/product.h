// Products of matrices: what the shapes of matmul and linear come down to. Host code.
#pragma once

#include "kernels/common/loop.h"

namespace yoke::kernels {

// `batch` matrices; strides in elements, of any value.
struct Matrix {
    void *data;
    int64_t batch_stride, row_stride, column_stride;
};

// c[i] = a[i] b[i] + bias for each i of the batch; a is m x k, b is k x n, bias has n elements or is null. All are of
// one dtype; c does not overlap the rest.
struct Product {
    yoke_dtype dtype;
    int64_t batch, m, n, k;
    Matrix a, b, c;
    const void *bias;
};

}  // namespace yoke::kernels

YOKE_KERNELS_BEGIN

// Returns the sizes and strides of matmul's product of one matrix of each operand. run_batches adds data and batches.
inline Product matmul_product(const yoke_operand &x, const yoke_operand &y, const yoke_operand &out)
{
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
    // Axes of the result: n is last unless y is a vector; m precedes n unless x is a vector.
    p.c.column_stride = y.ndim > 1 ? ot[-1] : 1;
    p.c.row_stride = x.ndim > 1 ? ot[y.ndim > 1 ? -2 : -1] : p.n;
    return p;
}

// Returns the sizes and strides of linear's product: x times the transpose of weight. run_batches adds data and
// batches.
inline Product linear_product(const yoke_operand &x, const yoke_operand &weight,
                              const yoke_operand &out)
{
    Product p = {};
    p.dtype = out.dtype;
    p.m = x.ndim > 1 ? x.shape[x.ndim - 2] : 1;
    p.k = weight.shape[1];
    p.n = weight.shape[0];
    p.a = {nullptr, 0, x.ndim > 1 ? x.strides[x.ndim - 2] : p.k, x.strides[x.ndim - 1]};
    p.b = {nullptr, 0, weight.strides[1], weight.strides[0]};
    p.c = {nullptr, 0, x.ndim > 1 ? out.strides[out.ndim - 2] : p.n, out.strides[out.ndim - 1]};
    return p;
}

// Joins the rows of the batch into one matrix, if all matrices share b and the rows lie at equal steps. Then one
// product replaces the batch.
inline void join_batch(Product &p)
{
    if (p.batch == 1 || p.b.batch_stride != 0) return;
    if (p.m == 1) {  // a single row has no stride
        p.a.row_stride = p.a.batch_stride;
        p.c.row_stride = p.c.batch_stride;
    }
    if (p.a.batch_stride != p.m * p.a.row_stride || p.c.batch_stride != p.m * p.c.row_stride)
        return;
    p.m *= p.batch;
    p.batch = 1;
}

// Plans one loop over the leading axes of out, x and y, with broadcasting.
inline void plan_batches(Loop<3> &loop, const yoke_operand &out, const yoke_operand &x,
                         const yoke_operand &y)
{
    int x_own = x.ndim > 1 ? 2 : 1, y_own = y.ndim > 1 ? 2 : 1;
    int ndim = out.ndim - (x_own - 1) - (y_own - 1);
    yoke_operand x_batch = x, y_batch = y;
    x_batch.ndim -= x_own;
    y_batch.ndim -= y_own;
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
}

// Calls run(product) for every index of the loop's axes, except the innermost axis: this is the product's batch.
// `product` describes a single matrix. Returns the status of the first failure.
template <class F>
inline yoke_status run_batches(const Loop<3> &loop, Product product, const F &run)
{
    if (loop.numel == 0) return YOKE_OK;
    int64_t size = dtype_size(product.dtype), outer = loop.numel / loop.shape[0];
    product.batch = loop.shape[0];
    product.c.batch_stride = loop.stride[0][0] / size;
    product.a.batch_stride = loop.stride[0][1] / size;
    product.b.batch_stride = loop.stride[0][2] / size;
    join_batch(product);
    for (int64_t i = 0; i < outer; i++) {
        char *data[3] = {loop.data[0], loop.data[1], loop.data[2]};
        int64_t rest = i;
        for (int axis = 1; axis < loop.ndim; rest /= loop.shape[axis], axis++)
            for (int k = 0; k < 3; k++) data[k] += rest % loop.shape[axis] * loop.stride[axis][k];
        product.c.data = data[0];
        product.a.data = data[1];
        product.b.data = data[2];
        if (yoke_status status = run(product)) return status;
    }
    return YOKE_OK;
}

YOKE_KERNELS_END
