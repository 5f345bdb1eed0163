// Elementwise arithmetic and activations, forward and backward, over any strides.
#include "kernels/common/elementwise.h"

#include <cstring>

#include "kernels/cpu/simd/iterate.h"

YOKE_SIMD_BEGIN

// An exp or an erf costs some ten additions, so it is worth sharing sooner.
constexpr int64_t kCostlyGrain = 4096;

template <class T, class F>
static yoke_status unary(const yoke_launch *launch, int64_t grain, F f = F())
{
    const yoke_operand *x = launch->operands;
    return map<T, T>(x[1], x[0], Stored<T, F>{f}, grain);
}

template <class T, class F>
static yoke_status binary(const yoke_launch *launch, int64_t grain, F f = F())
{
    const yoke_operand *x = launch->operands;
    return map<T, T, T>(x[2], x[0], x[1], Stored<T, F>{f}, grain);
}

#define YOKE_UNARY(name, types, F, grain)                                             \
    YOKE_KERNEL(name)                                \
    {                                                                                 \
        return types(launch, "x", launch->operands[0].dtype,                          \
                     [&]<class T>() { return unary<T, kernels::F>(launch, grain); }); \
    }
#define YOKE_BINARY(name, types, F, grain)                                             \
    YOKE_KERNEL(name)                                 \
    {                                                                                  \
        return types(launch, "x", launch->operands[0].dtype,                           \
                     [&]<class T>() { return binary<T, kernels::F>(launch, grain); }); \
    }

YOKE_BINARY(add, for_any, Add, kGrain)
YOKE_BINARY(sub, for_any, Sub, kGrain)
YOKE_BINARY(mul, for_any, Mul, kGrain)
YOKE_BINARY(div, for_float, Div, kGrain)
YOKE_BINARY(_relu_backward, for_number, ReluBackward, kGrain)
YOKE_BINARY(_tanh_backward, for_float, TanhBackward, kGrain)
YOKE_UNARY(neg, for_number, Neg, kGrain)
YOKE_UNARY(relu, for_number, Relu, kGrain)
YOKE_UNARY(exp, for_float, Exp, kCostlyGrain)
YOKE_UNARY(log, for_float, Log, kCostlyGrain)
YOKE_UNARY(tanh, for_float, Tanh, kCostlyGrain)

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

YOKE_SIMD_END
