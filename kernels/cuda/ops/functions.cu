// Elementwise functions beyond arithmetic, and their slopes.
#include "kernels/common/named.h"
#include "kernels/common/nan_to_num.h"
#include "kernels/common/pointwise_ops.h"
#include "kernels/cuda/ops/map.cuh"

YOKE_CUDA_BEGIN

using Exponentials = Seldom<kernels::Log1p, kernels::Expm1, kernels::Log2, kernels::Log10,
                            kernels::Exp2, kernels::Sinh, kernels::Cosh>;
using Arcs = Seldom<kernels::Tan, kernels::Atan, kernels::Asin, kernels::Acos, kernels::Erfinv>;
using Parts = OneOf<kernels::Square, kernels::Trunc, kernels::Frac>;
using Pairs = Seldom<kernels::Atan2, kernels::LogAddExp>;
#define YOKE_GROUPS Exponentials, Arcs, Parts, Pairs

YOKE_FUNCTION_OPS(YOKE_UNARY, YOKE_BINARY)
#undef YOKE_GROUPS

YOKE_KERNEL(nan_to_num)
{
    return for_any(launch, "x", launch->operands[0].dtype, [&]<class T>() {
        using C = typename FormatOf<T>::Value;
        if constexpr (!is_float<T>) {
            return unary<Integers>(launch, Parts::of<kernels::Trunc>());  // the numbers themselves
        } else {
            const auto f = kernels::nan_to_num_of<T>(launch->params);
            return unary<FormatOf<T>>(launch,
                                      kernels::NanToNum<C>{(C)f.nan, (C)f.above, (C)f.below});
        }
    });
}

#define YOKE_SLOPE(name, F) , kernels::F
template <class First, class... Rest>
using AllButFirst = Seldom<Rest...>;
using Slopes = AllButFirst<void YOKE_SLOPES(YOKE_SLOPE)>;
using PairSlopes = AllButFirst<void YOKE_PAIR_SLOPES(YOKE_SLOPE)>;
#undef YOKE_SLOPE

#define YOKE_SLOPE(name, F) \
    if (kernels::is_text(of, name)) return binary<In>(launch, Slopes::of<kernels::F>());
YOKE_KERNEL(_slope)
{
    const yoke_arg &of = launch->params[0];
    return for_float_format(launch, "x", launch->operands[1].dtype, [&]<class In>() {
        YOKE_SLOPES(YOKE_SLOPE)
        return fail(YOKE_E_INTERNAL, 0, "slope: there is no function '%s'", of.v.string);
    });
}

#define YOKE_PAIR_SLOPE(name, F) \
    if (kernels::is_text(of, name)) return ternary<In>(launch, PairSlopes::of<kernels::F>());
YOKE_KERNEL(_pair_slope)
{
    const yoke_arg &of = launch->params[0];
    return for_float_format(launch, "grad", launch->operands[0].dtype, [&]<class In>() {
        YOKE_PAIR_SLOPES(YOKE_PAIR_SLOPE)
        return fail(YOKE_E_INTERNAL, 0, "pair_slope: there is no function '%s'", of.v.string);
    });
}

YOKE_CUDA_END
