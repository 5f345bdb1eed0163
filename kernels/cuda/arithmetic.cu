// Elementwise arithmetic and functions.
#if defined(__CUDACC__)
#pragma nv_diag_suppress 186  // a functor serves unsigned numbers too, which are never below 0
#endif

#include "kernels/common/pointwise_ops.h"
#include "kernels/cuda/map.cuh"

YOKE_CUDA_BEGIN

YOKE_ARITHMETIC_OPS(YOKE_UNARY, YOKE_BINARY)

YOKE_KERNEL(clamp)
{
    return for_number(launch, "x", launch->operands[0].dtype, [&]<class T>() {
        using C = kernels::Clamp<compute_type<T>>;
        const yoke_arg *params = launch->params;
        return unary<T>(launch, C{kernels::bound_of<T>(params[0], false),
                                  kernels::bound_of<T>(params[1], true)});
    });
}

YOKE_KERNEL(_clamp_backward)
{
    return for_float(launch, "x", launch->operands[1].dtype, [&]<class T>() {
        using C = kernels::ClampBackward<compute_type<T>>;
        const yoke_arg *params = launch->params;
        return binary<T>(launch, C{kernels::bound_of<T>(params[0], false),
                                   kernels::bound_of<T>(params[1], true)});
    });
}

YOKE_POINTWISE(_maximum_backward, for_float, (ternary<T, kernels::MaximumBackward>(launch)))
YOKE_POINTWISE(_minimum_backward, for_float, (ternary<T, kernels::MinimumBackward>(launch)))

YOKE_CUDA_END
