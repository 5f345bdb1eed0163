// Activations, forward and backward, over any strides.
#include "kernels/common/named.h"
#include "kernels/cpu/simd/pointwise.h"

YOKE_SIMD_BEGIN

// Activations with parameters: the functor holds the launch's parameters.
#define YOKE_ACTIVATION(name, F, grain, ...) \
    YOKE_POINTWISE(name, for_float, grain, (unary<T>(launch, grain, kernels::F{__VA_ARGS__})))
#define YOKE_ACTIVATION_BACKWARD(name, F, grain, ...) \
    YOKE_POINTWISE(name, for_float, grain, (binary<T>(launch, grain, kernels::F{__VA_ARGS__})))
YOKE_ACTIVATION_OPS(YOKE_UNARY, YOKE_BINARY, YOKE_ACTIVATION, YOKE_ACTIVATION_BACKWARD)

YOKE_KERNEL(gelu)
{
    return for_float(launch, "x", launch->operands[0].dtype, [&]<class T>() {
        return kernels::is_tanh_gelu(launch) ? unary<T, kernels::GeluTanh>(launch, kCostlyGrain)
                                             : unary<T, kernels::Gelu>(launch, kCostlyGrain);
    });
}

YOKE_KERNEL(_gelu_backward)
{
    return for_float(launch, "x", launch->operands[0].dtype, [&]<class T>() {
        return kernels::is_tanh_gelu(launch)
                   ? binary<T, kernels::GeluTanhBackward>(launch, kCostlyGrain)
                   : binary<T, kernels::GeluBackward>(launch, kCostlyGrain);
    });
}

YOKE_SIMD_END
