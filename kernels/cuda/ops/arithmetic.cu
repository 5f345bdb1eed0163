// Elementwise arithmetic and functions.
#include "kernels/common/pointwise_ops.h"
#include "kernels/cuda/ops/map.cuh"

YOKE_CUDA_BEGIN

using Sums = OneOf<kernels::Add, kernels::Sub, kernels::Mul, kernels::Maximum, kernels::Minimum>;
using Roundings =
    OneOf<kernels::Neg, kernels::Abs, kernels::Sign, kernels::Floor, kernels::Ceil, kernels::Round>;
using Roots = OneOf<kernels::Sqrt, kernels::Rsqrt, kernels::Reciprocal, kernels::Exp, kernels::Log,
                    kernels::Erf>;
using Waves = Seldom<kernels::Sin, kernels::Cos>;
using Quotients = OneOf<kernels::Div, kernels::AbsBackward, kernels::SqrtBackward,
                        kernels::RsqrtBackward, kernels::ReciprocalBackward, kernels::ErfBackward>;
using WavesBackward = Seldom<kernels::SinBackward, kernels::CosBackward>;
using Extremes = OneOf<kernels::MaximumBackward, kernels::MinimumBackward>;
#define YOKE_GROUPS Sums, Roundings, Roots, Waves, Quotients, WavesBackward

YOKE_ARITHMETIC_OPS(YOKE_UNARY, YOKE_BINARY)
#undef YOKE_GROUPS

YOKE_POINTWISE(_maximum_backward, for_float,
               (ternary<In>(launch, Extremes::of<kernels::MaximumBackward>())))
YOKE_POINTWISE(_minimum_backward, for_float,
               (ternary<In>(launch, Extremes::of<kernels::MinimumBackward>())))

// Returns F with the bounds of a launch for elements of T, in the computing type.
template <template <class> class F, class T>
static auto clamped_by(const yoke_launch *launch)
{
    using C = typename FormatOf<T>::Value;
    return F<C>{(C)kernels::bound_of<T>(launch->params[0], false),
                (C)kernels::bound_of<T>(launch->params[1], true)};
}

YOKE_KERNEL(clamp)
{
    return for_number(launch, "x", launch->operands[0].dtype, [&]<class T>() {
        return unary<FormatOf<T>>(launch, clamped_by<kernels::Clamp, T>(launch));
    });
}

YOKE_KERNEL(_clamp_backward)
{
    return for_float(launch, "x", launch->operands[1].dtype, [&]<class T>() {
        return binary<FormatOf<T>>(launch, clamped_by<kernels::ClampBackward, T>(launch));
    });
}

YOKE_CUDA_END
