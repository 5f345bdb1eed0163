// Elementwise arithmetic and functions, over any strides.
#include "kernels/cpu/simd/pointwise.h"
#include "kernels/cpu/simd/iterate.h"

YOKE_SIMD_BEGIN

YOKE_ARITHMETIC_OPS(YOKE_UNARY, YOKE_BINARY)

// ---- bounds ----------------------------------------------------------------------------------------------------

YOKE_KERNEL(clamp)
{
    return for_number(launch, "x", launch->operands[0].dtype, [&]<class T>() {
        using C = kernels::Clamp<compute_type<T>>;
        const yoke_arg *params = launch->params;
        return unary<T>(
            launch, kGrain,
            C{kernels::bound_of<T>(params[0], false), kernels::bound_of<T>(params[1], true)});
    });
}

YOKE_KERNEL(_clamp_backward)
{
    return for_float(launch, "x", launch->operands[1].dtype, [&]<class T>() {
        using C = kernels::ClampBackward<compute_type<T>>;
        const yoke_arg *params = launch->params;
        return binary<T>(
            launch, kGrain,
            C{kernels::bound_of<T>(params[0], false), kernels::bound_of<T>(params[1], true)});
    });
}

// ---- larger, smaller, powers: gradients ------------------------------------------------------------------------

YOKE_POINTWISE(_maximum_backward, for_float, kGrain,
               (ternary<T, kernels::MaximumBackward>(launch, kGrain)))
YOKE_POINTWISE(_minimum_backward, for_float, kGrain,
               (ternary<T, kernels::MinimumBackward>(launch, kGrain)))

// Returns the exponent common to all elements if it is 2 or 3, because these powers are products; else 0.
template <class T>
static int small_power(const yoke_operand &y)
{
    if (!is_float<T> || y.numel != 1) return 0;
    compute_type<T> exponent = load<T>(*data_of<T>(y));
    return exponent == 2 ? 2 : exponent == 3 ? 3 : 0;
}

YOKE_KERNEL(_pow_backward)
{
    const yoke_operand *x = launch->operands;
    return for_float(launch, "grad", x[0].dtype, [&]<class T>() {
        switch (small_power<T>(x[2])) {
            case 2:
                return map<T, T, T>(Stored<T, kernels::SquareBackward>{}, kGrain, x[3], x[0], x[1]);
            case 3:
                return map<T, T, T>(Stored<T, kernels::CubeBackward>{}, kGrain, x[3], x[0], x[1]);
            default:
                return ternary<T, kernels::PowBackward>(launch, kCostlyGrain);
        }
    });
}

YOKE_KERNEL(_pow_exponent_backward)
{
    const yoke_operand *x = launch->operands;
    return for_float(launch, "x", x[0].dtype, [&]<class T>() {
        return map<T, T, T, T, T>(Stored<T, kernels::PowExponentBackward>{}, kCostlyGrain, x[4],
                                  x[0], x[1], x[2], x[3]);
    });
}

// Returns a negative element of an exponent, or 0 if there is none.
template <class T>
static T negative_exponent(const yoke_operand &y)
{
    Loop<1> loop;
    plan_loop<1>(loop, {&y});
    T found = 0;
    walk<1>(loop, 0, loop.numel, [&](char *const *data, const int64_t *stride, int64_t n) {
        for (int64_t i = 0; i < n && found >= 0; i++) {
            T value = *(const T *)(data[0] + i * stride[0]);
            found = value < 0 ? value : found;
        }
    });
    return found;
}

YOKE_KERNEL(pow)
{
    const yoke_operand *x = launch->operands;
    return for_number(launch, "x", x[0].dtype, [&]<class T>() {
        if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
            T exponent = negative_exponent<T>(x[1]);
            if (exponent < 0)
                return fail(
                    YOKE_E_VALUE,
                    "pow: an exponent is %lld, and a negative power of an integer is not an integer; cast x to a floating dtype",
                    (long long)exponent);
        }
        if constexpr (is_float<T>) {
            if (small_power<T>(x[1]) == 2)
                return map<T, T>(Stored<T, kernels::Square>{}, kGrain, x[2], x[0]);
            if (small_power<T>(x[1]) == 3)
                return map<T, T>(Stored<T, kernels::Cube>{}, kGrain, x[2], x[0]);
        }
        return binary<T, kernels::Pow>(launch, kCostlyGrain);
    });
}

YOKE_SIMD_END
