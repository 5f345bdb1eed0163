// Sums of scaled operands, bounds of each element, and nearly equal elements, over any strides.
#include "kernels/cpu/simd/pointwise.h"

YOKE_SIMD_BEGIN

// Adds the second operand times a number, or times its negative.
static yoke_status add_scaled(const yoke_launch *launch, bool negative)
{
    const yoke_arg &alpha = launch->params[0];
    return for_any(launch, "x", launch->operands[0].dtype, [&]<class T>() {
        if constexpr (is_float<T>) {
            const double scale = kernels::float_param(alpha);
            return binary<T>(launch, kGrain, kernels::AddScaled{negative ? -scale : scale});
        } else {
            const int64_t scale = negative ? (int64_t)(0 - (uint64_t)alpha.v.i) : alpha.v.i;
            return binary<T>(launch, kGrain, kernels::AddScaledWhole{scale});
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

// Steps from x, or from y, by a factor of the difference.
template <bool kFromX>
struct LerpBy {
    float factor;
    YOKE_HD float operator()(float x, float y) const { return (kFromX ? x : y) + factor * (y - x); }
};

// Maps halves by a number as the weight, which is in float32, from the end that is nearer.
template <class T>
static yoke_status lerp_by(const yoke_operand *x, float weight)
{
    if (weight < 0.5f && weight > -0.5f)
        return map<T, T, T>(Stored<T, LerpBy<true>>{{weight}}, kGrain, x[3], x[0], x[1]);
    return map<T, T, T>(Stored<T, LerpBy<false>>{{weight - 1}}, kGrain, x[3], x[0], x[1]);
}

YOKE_KERNEL(lerp)
{
    const yoke_operand *x = launch->operands;
    return for_float(launch, "x", x[0].dtype, [&]<class T>() {
        if constexpr (is_half<T>)
            if (x[2].flags & YOKE_OPERAND_SCALAR) return lerp_by<T>(x, *data_of<float>(x[2]));
        return ternary<T, kernels::Lerp>(launch, kGrain);
    });
}

YOKE_KERNEL(addcmul)
{
    const yoke_arg &value = launch->params[0];
    return for_number(launch, "x", launch->operands[0].dtype, [&]<class T>() {
        if constexpr (is_float<T>)
            return ternary<T>(launch, kGrain,
                              kernels::AddScaledProduct{kernels::float_param(value)});
        else
            return ternary<T>(launch, kGrain, kernels::AddScaledProductWhole{value.v.i});
    });
}

YOKE_KERNEL(addcdiv)
{
    const kernels::AddScaledQuotient f{kernels::float_param(launch->params[0])};
    return for_float(launch, "x", launch->operands[0].dtype,
                     [&]<class T>() { return ternary<T>(launch, kGrain, f); });
}

// The values of kernels::ClampBetween by comparisons one after another, of which gcc makes vectors.
struct HoldBetween {
    template <class T>
    YOKE_HD T operator()(T x, T low, T high) const
    {
        T held = kernels::select(x < low, low, x);
        held = kernels::select(held > high, high, held);
        if constexpr (is_float<T>) {
            held = kernels::select(low != low, low, held);
            held = kernels::select(high != high, high, held);
        }
        return held;
    }
};

YOKE_KERNEL(_clamp_between)
{
    const yoke_operand *x = launch->operands;
    return for_number(launch, "x", x[0].dtype, [&]<class T>() {
        if (!is_present(x[1]))
            return map<T, T, T>(Stored<T, kernels::Minimum>{}, kGrain, x[3], x[0], x[2]);
        if (!is_present(x[2]))
            return map<T, T, T>(Stored<T, kernels::Maximum>{}, kGrain, x[3], x[0], x[1]);
        return ternary<T, HoldBetween>(launch, kGrain);
    });
}

YOKE_KERNEL(isclose)
{
    const yoke_operand *x = launch->operands;
    const yoke_arg *p = launch->params;
    const kernels::IsClose f{kernels::float_param(p[0]), kernels::float_param(p[1]), p[2].v.i != 0};
    return for_any(launch, "x", x[0].dtype, [&]<class T>() {
        using L = loop_type<T>;
        return map<bool, L, L>(ToldAs<L, kernels::IsClose>{f}, kGrain, x[2], x[0], x[1]);
    });
}

YOKE_SIMD_END
