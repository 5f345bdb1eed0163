// The gradients of linear with respect to its weight and bias: one product of cuBLASLt, which sums the rows too if it
// has an algorithm for this; else the sum is a launch of its own.
#include "kernels/common/product_gradients.h"
#include "kernels/common/stand_in.h"
#include "kernels/cuda/ops/gemm.cuh"

extern "C" yoke_status yoke_cuda_sum(const yoke_launch *launch);

YOKE_CUDA_BEGIN

using kernels::ProductGradients;

static yoke_status sum_rows(const yoke_launch *launch, const ProductGradients &g)
{
    const kernels::SumOfRows rows(launch, g);
    return yoke_cuda_sum(&rows.launch);
}

// Returns whether a matrix lies in memory as cuBLASLt reads it.
static bool is_readable(const yoke_operand &x)
{
    return cublaslt_takes({x.data, 0, x.strides[0], x.strides[1]}, x.shape[0], x.shape[1]);
}

static yoke_status multiply_and_sum(const yoke_launch *launch, const ProductGradients &g)
{
    Gemm gemm{g.product()};
    gemm.wide = g.weight.dtype != g.x.dtype;
    gemm.adds = g.adds;
    bool done = false;
    if (g.bias && is_aligned(g.bias->data, 16)) {
        gemm.row_sums = g.bias->data;
        const yoke_status status = cublaslt_multiply(launch, gemm, &done);
        if (status || done) return status;
        gemm.row_sums = nullptr;
    }
    const yoke_status status = cublaslt_multiply(launch, gemm, &done);
    if (status) return status;
    const Product &p = gemm.product;
    if (!done)
        return fail(YOKE_E_UNSUPPORTED, 0,
                    "%s: cuBLASLt has no algorithm for %lld x %lld by %lld x %lld matrices of %s",
                    op_name(launch->op), (long long)p.m, (long long)p.k, (long long)p.k,
                    (long long)p.n, dtype_name(p.dtype));
    return g.bias ? sum_rows(launch, g) : (yoke_status)YOKE_OK;
}

// Copies the matrices that cuBLASLt does not read in place, and multiplies.
static yoke_status run_gradients(const yoke_launch *launch)
{
    yoke_launch dense = *launch;
    yoke_operand operands[4];
    std::copy_n(launch->operands, launch->operand_count, operands);
    dense.operands = operands;
    Dense of_grad(launch), of_x(launch);
    Dense *const copies[] = {&of_grad, &of_x};
    for (int i = 0; i < 2; i++) {
        yoke_operand &matrix = operands[launch->operand_count - 2 + i];
        if (is_readable(matrix)) continue;
        if (yoke_status status = copies[i]->copy(matrix, matrix.shape, matrix.ndim)) return status;
        matrix = copies[i]->operand();
    }
    return multiply_and_sum(&dense, ProductGradients(&dense));
}

YOKE_KERNEL(_product_gradients)
{
    const ProductGradients g(launch);
    if (g.grad.dtype != g.x.dtype) return bad_dtype(launch, "grad", g.grad.dtype);
    return for_float(launch, "x", g.x.dtype, [&]<class T>() -> yoke_status {
        if (g.weight.numel && g.x.shape[0]) return run_gradients(launch);
        if (g.weight.numel && !g.adds) {
            const yoke_operand zero = kernels::single_value(g.weight.dtype);
            if (yoke_status status = copy_operand(launch, g.weight, zero)) return status;
        }
        return g.bias ? sum_rows(launch, g) : (yoke_status)YOKE_OK;
    });
}

YOKE_CUDA_END
