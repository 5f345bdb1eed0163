// Types of a product in cuBLASLt's terms.
#pragma once

#include "kernels/cuda/host/cublaslt_plan.h"
#include "kernels/cuda/host/support.h"

namespace yoke::cuda {

struct Types {
    cudaDataType_t factors, result, scale;
    cublasComputeType_t compute;
};

inline Types types_of(const PlanKey &key)
{
    const auto of_halves = [&](cudaDataType_t half) {
        return Types{half, key.wide ? CUDA_R_32F : half, CUDA_R_32F, CUBLAS_COMPUTE_32F};
    };
    switch (key.dtype) {
        case YOKE_F64:
            return {CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F};
        case YOKE_F16:
            return of_halves(CUDA_R_16F);
        case YOKE_BF16:
            return of_halves(CUDA_R_16BF);
        default:
            return {CUDA_R_32F, CUDA_R_32F, CUDA_R_32F,
                    key.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F};
    }
}

// Returns how cuBLASLt may add the parts of a split sum, so that no part is rounded to halves: in the computing type,
// and within the result if the result is float32. Counters keep the order of the parts within the result.
inline uint32_t reductions_of(const PlanKey &key)
{
    const bool in_place = types_of(key).result == CUDA_R_32F;
    return CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE |
           (in_place ? CUBLASLT_REDUCTION_SCHEME_INPLACE : 0);
}

}  // namespace yoke::cuda
