// Activations, forward and backward, over any strides.
#include <cstring>

#include "kernels/cpu/simd/pointwise.h"

YOKE_SIMD_BEGIN

YOKE_UNARY(relu, for_number, Relu, kGrain)
YOKE_UNARY(tanh, for_float, Tanh, kCostlyGrain)
YOKE_UNARY(sigmoid, for_float, Sigmoid, kCostlyGrain)
YOKE_UNARY(silu, for_float, Silu, kCostlyGrain)
YOKE_BINARY(_relu_backward, for_number, ReluBackward, kGrain)
YOKE_BINARY(_tanh_backward, for_float, TanhBackward, kGrain)
YOKE_BINARY(_sigmoid_backward, for_float, SigmoidBackward, kGrain)
YOKE_BINARY(_silu_backward, for_float, SiluBackward, kCostlyGrain)

static bool wants_tanh(const yoke_launch *launch)
{
    return strcmp(launch->params[0].v.string, "tanh") == 0;
}

YOKE_KERNEL(gelu)
{
    return for_float(launch, "x", launch->operands[0].dtype, [&]<class T>() {
        return wants_tanh(launch) ? unary<T, kernels::GeluTanh>(launch, kCostlyGrain)
                                  : unary<T, kernels::Gelu>(launch, kCostlyGrain);
    });
}

YOKE_KERNEL(_gelu_backward)
{
    return for_float(launch, "x", launch->operands[0].dtype, [&]<class T>() {
        return wants_tanh(launch) ? binary<T, kernels::GeluTanhBackward>(launch, kCostlyGrain)
                                  : binary<T, kernels::GeluBackward>(launch, kCostlyGrain);
    });
}

// Those with parameters: a functor that holds them, made of the launch's.
#define YOKE_ACTIVATION(name, F, grain, ...) \
    YOKE_POINTWISE(name, for_float, grain, (unary<T>(launch, grain, kernels::F{__VA_ARGS__})))
#define YOKE_ACTIVATION_BACKWARD(name, F, grain, ...) \
    YOKE_POINTWISE(name, for_float, grain, (binary<T>(launch, grain, kernels::F{__VA_ARGS__})))
#define YOKE_PARAM(i) float_param(launch->params[i])

YOKE_ACTIVATION(leaky_relu, LeakyRelu, kGrain, YOKE_PARAM(0))
YOKE_ACTIVATION(elu, Elu, kCostlyGrain, YOKE_PARAM(0))
YOKE_ACTIVATION(softplus, Softplus, kCostlyGrain, YOKE_PARAM(0), YOKE_PARAM(1))
YOKE_ACTIVATION_BACKWARD(_leaky_relu_backward, LeakyReluBackward, kGrain, YOKE_PARAM(0))
YOKE_ACTIVATION_BACKWARD(_elu_backward, EluBackward, kCostlyGrain, YOKE_PARAM(0))
YOKE_ACTIVATION_BACKWARD(_softplus_backward, SoftplusBackward, kCostlyGrain, YOKE_PARAM(0),
                         YOKE_PARAM(1))

YOKE_SIMD_END
