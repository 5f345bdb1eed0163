// Common parts of matmul and linear: from operands to products of matrices.
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
        if (yoke_status status = gemm_onednn(launch, product, &done)) return status;
    return done ? YOKE_OK : multiply(launch, product);
}

// Calls run(product) for the leading axes of out, x and y, with broadcasting. `product` has the sizes and strides of
// a single matrix of each operand.
template <class F>
inline yoke_status run_batches(const yoke_operand &out, const yoke_operand &x,
                               const yoke_operand &y, const Product &product, const F &run)
{
    Loop<3> loop;
    kernels::plan_batches(loop, out, x, y);
    return kernels::run_batches(loop, product, run);
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
