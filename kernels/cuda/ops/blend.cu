// Sums of scaled operands, bounds of each element, and nearly equal elements.
#include "kernels/common/elementwise.h"
#include "kernels/cuda/ops/map.cuh"

YOKE_CUDA_BEGIN

using Blends = OneOf<kernels::Lerp, kernels::AddScaledProduct, kernels::AddScaledQuotient,
                     kernels::ClampBetween>;

// Functor of integers that is seldom hot: packs are short.
template <class F>
struct SeldomWhole : F {
    static constexpr bool kIsSeldom = true;
};

// Adds the second operand times a number, or times its negative.
static yoke_status add_scaled(const yoke_launch *launch, bool negative)
{
    const yoke_arg &alpha = launch->params[0];
    return for_any_format(launch, "x", launch->operands[0].dtype, [&]<class In>() {
        if constexpr (std::is_same_v<In, Integers>) {
            const int64_t scale = negative ? (int64_t)(0 - (uint64_t)alpha.v.i) : alpha.v.i;
            return binary<In>(launch, SeldomWhole<kernels::AddScaledWhole>{{scale}});
        } else {
            const double scale = kernels::float_param(alpha);
            return binary<In>(launch, kernels::AddScaled{negative ? -scale : scale});
        }
    });
}

YOKE_KERNEL(_add_scaled)
{
    return add_scaled(launch, false);
}

YOKE_KERNEL(_sub_scaled)
{
    return add_scaled(launch, true);
}

YOKE_POINTWISE(lerp, for_float, (ternary<In>(launch, Blends::of<kernels::Lerp>())))

YOKE_KERNEL(addcmul)
{
    const yoke_arg &value = launch->params[0];
    return for_number_format(launch, "x", launch->operands[0].dtype, [&]<class In>() {
        if constexpr (std::is_same_v<In, Integers>)
            return ternary<In>(launch, SeldomWhole<kernels::AddScaledProductWhole>{{value.v.i}});
        else
            return ternary<In>(launch,
                               Blends::of<kernels::AddScaledProduct>(kernels::float_param(value)));
    });
}

YOKE_POINTWISE(addcdiv, for_float,
               (ternary<In>(launch, Blends::of<kernels::AddScaledQuotient>(
                                        kernels::float_param(launch->params[0])))))

// Returns a bound; one that is absent becomes a number at the end of the dtype.
static yoke_operand bound_at(const yoke_launch *launch, int place, bool is_upper)
{
    yoke_operand bound = launch->operands[place];
    if (is_present(bound)) return bound;
    bound = {};
    bound.numel = 1;
    bound.dtype = launch->operands[0].dtype;
    bound.flags = YOKE_OPERAND_READ | YOKE_OPERAND_SCALAR | YOKE_OPERAND_CONTIGUOUS;
    (void)for_number(launch, "x", bound.dtype, [&]<class T>() {
        const T end = store<T>(kernels::bound_of<T>({YOKE_ARG_NONE, 0, {}}, is_upper));
        memcpy(&bound.immediate, &end, sizeof end);
        return (yoke_status)YOKE_OK;
    });
    return bound;
}

YOKE_KERNEL(_clamp_between)
{
    const yoke_operand *x = launch->operands;
    const yoke_operand low = bound_at(launch, 1, false), high = bound_at(launch, 2, true);
    return for_number_format(launch, "x", x[0].dtype, [&]<class In>() {
        if constexpr (std::is_same_v<In, Integers>)
            return map<In>(launch, x[3], SeldomWhole<kernels::ClampBetween>(), x[0], low, high);
        else
            return map<In>(launch, x[3], Blends::of<kernels::ClampBetween>(), x[0], low, high);
    });
}

YOKE_KERNEL(isclose)
{
    const yoke_arg *p = launch->params;
    const kernels::IsClose f{kernels::float_param(p[0]), kernels::float_param(p[1]), p[2].v.i != 0};
    return for_any_format(launch, "x", launch->operands[0].dtype, [&]<class In>() {
        if constexpr (std::is_same_v<In, Integers>)
            return binary<In, Bools>(launch, SeldomWhole<kernels::IsClose>{f});
        else
            return binary<In, Bools>(launch, f);
    });
}

YOKE_CUDA_END
