// Activations, forward and backward.
#if defined(__CUDACC__)
#pragma nv_diag_suppress 186  // a functor serves unsigned numbers too, which are never below 0
#endif

#include "kernels/common/pointwise_ops.h"
#include "kernels/cuda/map.cuh"

YOKE_CUDA_BEGIN

YOKE_ACTIVATION_OPS(YOKE_UNARY, YOKE_BINARY, YOKE_WITH_PARAMS, YOKE_WITH_PARAMS_BACKWARD)

static bool wants_tanh(const yoke_launch *launch)
{
    return strcmp(launch->params[0].v.string, "tanh") == 0;
}

YOKE_KERNEL(gelu)
{
    return for_float(launch, "x", launch->operands[0].dtype, [&]<class T>() {
        return wants_tanh(launch) ? unary<T, kernels::GeluTanh>(launch)
                                  : unary<T, kernels::Gelu>(launch);
    });
}

YOKE_KERNEL(_gelu_backward)
{
    return for_float(launch, "x", launch->operands[0].dtype, [&]<class T>() {
        return wants_tanh(launch) ? binary<T, kernels::GeluTanhBackward>(launch)
                                  : binary<T, kernels::GeluBackward>(launch);
    });
}

YOKE_CUDA_END
