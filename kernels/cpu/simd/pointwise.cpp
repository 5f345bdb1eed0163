// Elementwise arithmetic and functions, over any strides.
#include "kernels/cpu/simd/pointwise.h"

YOKE_SIMD_BEGIN

YOKE_BINARY(add, for_any, Add, kGrain)
YOKE_BINARY(sub, for_any, Sub, kGrain)
YOKE_BINARY(mul, for_any, Mul, kGrain)
YOKE_BINARY(div, for_float, Div, kGrain)
YOKE_BINARY(maximum, for_any, Maximum, kGrain)
YOKE_BINARY(minimum, for_any, Minimum, kGrain)
YOKE_UNARY(neg, for_number, Neg, kGrain)
YOKE_UNARY(abs, for_number, Abs, kGrain)
YOKE_UNARY(sign, for_number, Sign, kGrain)
YOKE_UNARY(floor, for_number, Floor, kGrain)
YOKE_UNARY(ceil, for_number, Ceil, kGrain)
YOKE_UNARY(round, for_number, Round, kGrain)

YOKE_UNARY(exp, for_float, Exp, kCostlyGrain)
YOKE_UNARY(log, for_float, Log, kCostlyGrain)
YOKE_UNARY(sqrt, for_float, Sqrt, kCostlyGrain)
YOKE_UNARY(rsqrt, for_float, Rsqrt, kCostlyGrain)
YOKE_UNARY(reciprocal, for_float, Reciprocal, kGrain)
YOKE_UNARY(sin, for_float, Sin, kCostlyGrain)
YOKE_UNARY(cos, for_float, Cos, kCostlyGrain)
YOKE_UNARY(erf, for_float, Erf, kCostlyGrain)

YOKE_BINARY(_abs_backward, for_float, AbsBackward, kGrain)
YOKE_BINARY(_sqrt_backward, for_float, SqrtBackward, kGrain)
YOKE_BINARY(_rsqrt_backward, for_float, RsqrtBackward, kGrain)
YOKE_BINARY(_reciprocal_backward, for_float, ReciprocalBackward, kGrain)
YOKE_BINARY(_sin_backward, for_float, SinBackward, kCostlyGrain)
YOKE_BINARY(_cos_backward, for_float, CosBackward, kCostlyGrain)
YOKE_BINARY(_erf_backward, for_float, ErfBackward, kCostlyGrain)

// ---- bounds ----------------------------------------------------------------------------------------------------

// A bound as T, or the end of T where there is none, or none within reach.
template <class T>
static compute_type<T> bound(const yoke_arg &arg, bool is_upper)
{
    if (arg.kind == YOKE_ARG_FLOAT) return load<T>(convert<T>(arg.v.f));
    if (arg.kind == YOKE_ARG_NONE && is_float<T>)
        return (compute_type<T>)(is_upper ? __builtin_inf() : -__builtin_inf());
    if (arg.kind == YOKE_ARG_NONE) return load<T>(convert<T>(is_upper ? 1e30 : -1e30));
    if (is_float<T> || sizeof(T) == 8) return load<T>(convert<T>(arg.v.i));
    return load<T>(convert<T>((double)arg.v.i));  // a double beyond the ends of T gives the end
}

YOKE_KERNEL(clamp)
{
    return for_number(launch, "x", launch->operands[0].dtype, [&]<class T>() {
        using C = kernels::Clamp<compute_type<T>>;
        const yoke_arg *params = launch->params;
        return unary<T>(launch, kGrain, C{bound<T>(params[0], false), bound<T>(params[1], true)});
    });
}

YOKE_KERNEL(_clamp_backward)
{
    return for_float(launch, "x", launch->operands[1].dtype, [&]<class T>() {
        using C = kernels::ClampBackward<compute_type<T>>;
        const yoke_arg *params = launch->params;
        return binary<T>(launch, kGrain, C{bound<T>(params[0], false), bound<T>(params[1], true)});
    });
}

// ---- larger, smaller, powers: gradients ------------------------------------------------------------------------

template <class T, class F>
static yoke_status ternary(const yoke_launch *launch, int64_t grain)
{
    const yoke_operand *x = launch->operands;
    return map_many<T, T, T, T>(
        x[3], x[0], x[1], x[2], [](T g, T a, T b) __attribute__((always_inline)) {
            return store<T>(F()(load<T>(g), load<T>(a), load<T>(b)));
        },
        grain);
}

YOKE_POINTWISE(_maximum_backward, for_float, kGrain,
               (ternary<T, kernels::MaximumBackward>(launch, kGrain)))
YOKE_POINTWISE(_minimum_backward, for_float, kGrain,
               (ternary<T, kernels::MinimumBackward>(launch, kGrain)))

// The one exponent of all elements if it is 2 or 3, which are products; else 0.
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
                return map<T, T, T>(x[3], x[0], x[1], Stored<T, kernels::SquareBackward>{});
            case 3:
                return map<T, T, T>(x[3], x[0], x[1], Stored<T, kernels::CubeBackward>{});
            default:
                return ternary<T, kernels::PowBackward>(launch, kCostlyGrain);
        }
    });
}

YOKE_KERNEL(_pow_exponent_backward)
{
    const yoke_operand *x = launch->operands;
    return for_float(launch, "x", x[0].dtype, [&]<class T>() {
        return map_many<T>(x[4], x[0], x[1], x[2], x[3], kernels::PowExponentBackward(),
                           kCostlyGrain);
    });
}

// The first negative element of an exponent, or 0.
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
                return fail(YOKE_E_VALUE,
                            "pow: an exponent is %lld, and a negative power of an integer is no "
                            "integer; cast x to a floating dtype",
                            (long long)exponent);
        }
        if constexpr (is_float<T>) {
            if (small_power<T>(x[1]) == 2)
                return map<T, T>(x[2], x[0], Stored<T, kernels::Square>{});
            if (small_power<T>(x[1]) == 3) return map<T, T>(x[2], x[0], Stored<T, kernels::Cube>{});
        }
        return binary<T, kernels::Pow>(launch, kCostlyGrain);
    });
}

YOKE_SIMD_END
