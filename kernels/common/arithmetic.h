// Elementwise arithmetic and plain functions; elementwise.h tells the contract.
#pragma once

#include "kernels/common/numeric.h"
#include "kernels/common/power.h"
#include "kernels/common/trigonometry.h"

YOKE_KERNELS_BEGIN

// The unsigned type in which an integer's arithmetic wraps without undefined behaviour.
template <class T>
using wrapping_type = std::conditional_t<sizeof(T) == 1, uint8_t,
                                         std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>;

struct Add {
    template <class T>
    YOKE_HD T operator()(T a, T b) const
    {
        using U = wrapping_type<T>;
        if constexpr (is_float<T>)
            return a + b;
        else
            return (T)((U)((U)a + (U)b));
    }
};

// Type in which a sum is kept between additions. Halves are kept as float, so a sum is rounded once. Other types are
// kept as stored.
template <class T>
using sum_kept = std::conditional_t<is_half<T>, float, T>;

template <class K>
YOKE_HD K added(K a, K b)
{
    return store<K>(Add()(load<K>(a), load<K>(b)));
}

struct Sub {
    template <class T>
    YOKE_HD T operator()(T a, T b) const
    {
        using U = wrapping_type<T>;
        if constexpr (is_float<T>)
            return a - b;
        else
            return (T)((U)((U)a - (U)b));
    }
};

struct Mul {
    template <class T>
    YOKE_HD T operator()(T a, T b) const
    {
        using U = wrapping_type<T>;
        if constexpr (is_float<T>)
            return a * b;
        else
            return (T)((U)((U)a * (U)b));
    }
};

// Division of floats only. The op's type rule converts integers to f32 before.
struct Div {
    template <class T>
    YOKE_HD T operator()(T a, T b) const
    {
        static_assert(is_float<T>, "division is defined for floats");
        return a / b;
    }
};

struct Neg {
    template <class T>
    YOKE_HD T operator()(T x) const
    {
        using U = wrapping_type<T>;
        if constexpr (is_float<T>)
            return -x;
        else
            return (T)((U)((U)0 - (U)x));
    }
};

struct Abs {
    template <class T>
    YOKE_HD T operator()(T x) const
    {
        if constexpr (is_float<T>)
            return select(x > (T)0, x, (T)0 - x);  // 0 - -0 is 0
        else
            return select(x < (T)0, Neg()(x), x);
    }
};

// Sign of x: -1, 0 or 1. NaN gives NaN.
struct Sign {
    template <class T>
    YOKE_HD T operator()(T x) const
    {
        T below = select(x < (T)0, (T)((T)0 - (T)1), x);
        return select(x > (T)0, (T)1, below);
    }
};

struct AbsBackward {
    template <class T>
    YOKE_HD T operator()(T g, T x) const
    {
        return g * Sign()(x);
    }
};

struct Maximum {
    template <class T>
    YOKE_HD T operator()(T a, T b) const
    {
        return select(a > b || a != a, a, b);
    }
};

struct Minimum {
    template <class T>
    YOKE_HD T operator()(T a, T b) const
    {
        return select(a < b || a != a, a, b);
    }
};

// Gradient of the first argument. Equal arguments share the gradient. If an argument is NaN, the gradient passes.
struct MaximumBackward {
    template <class T>
    YOKE_HD T operator()(T g, T x, T y) const
    {
        return select(x < y, (T)0, select(x == y, g * (T)0.5, g));
    }
};

struct MinimumBackward {
    template <class T>
    YOKE_HD T operator()(T g, T x, T y) const
    {
        return select(x > y, (T)0, select(x == y, g * (T)0.5, g));
    }
};

// Clamp of x to [low, high]. A missing bound is the end of the type. If low > high, the result is high. If a bound is
// NaN, every result is NaN.
template <class T>
struct Clamp {
    T low, high;
    YOKE_HD T operator()(T x) const
    {
        T raised = select(x < low, low, x);
        T held = select(raised > high, high, raised);
        return select(low != low, low, select(high != high, high, held));
    }
};

// Gradient of clamp: g within the bounds and on a bound, else 0.
template <class T>
struct ClampBackward {
    T low, high;
    YOKE_HD T operator()(T g, T x) const { return select(x >= low && x <= high, g, (T)0); }
};

struct Floor {
    template <class T>
    YOKE_HD T operator()(T x) const
    {
        if constexpr (is_float<T>)
            return kernels::floor(x);
        else
            return x;
    }
};

struct Ceil {
    template <class T>
    YOKE_HD T operator()(T x) const
    {
        if constexpr (is_float<T>)
            return kernels::ceil(x);
        else
            return x;
    }
};

struct Round {
    template <class T>
    YOKE_HD T operator()(T x) const
    {
        if constexpr (is_float<T>)
            return kernels::round_to_even(x);
        else
            return x;
    }
};

// ---- functions ----------------------------------------------------------------------------------

// Exponential. Functors name kernels::exp and similar functions in full, because the C library's names are as near
// inside a functor.
struct Exp {
    template <class T>
    YOKE_HD T operator()(T x) const
    {
        return kernels::exp(x);
    }
};

struct ExpBackward {
    template <class T>
    YOKE_HD T operator()(T g, T out) const
    {
        return g * out;
    }
};

struct Log {
    template <class T>
    YOKE_HD T operator()(T x) const
    {
        return kernels::log(x);
    }
};

struct LogBackward {
    template <class T>
    YOKE_HD T operator()(T g, T x) const
    {
        return g / x;
    }
};

struct Sqrt {
    template <class T>
    YOKE_HD T operator()(T x) const
    {
        return kernels::sqrt(x);
    }
};

struct SqrtBackward {
    template <class T>
    YOKE_HD T operator()(T g, T out) const
    {
        return g / (out + out);
    }
};

struct Rsqrt {
    template <class T>
    YOKE_HD T operator()(T x) const
    {
        return (T)1 / kernels::sqrt(x);
    }
};

// Gradient of rsqrt. As in all gradients of powers, the product begins with g. So each partial product lies between g
// and the result, and does not overflow before the result.

struct RsqrtBackward {
    template <class T>
    YOKE_HD T operator()(T g, T out) const
    {
        return (T)-0.5 * g * out * out * out;
    }
};

struct Reciprocal {
    template <class T>
    YOKE_HD T operator()(T x) const
    {
        return (T)1 / x;
    }
};

struct ReciprocalBackward {
    template <class T>
    YOKE_HD T operator()(T g, T out) const
    {
        return -g * out * out;
    }
};

struct Sin {
    template <class T>
    YOKE_HD T operator()(T x) const
    {
        return kernels::sin(x);
    }
};

struct SinBackward {
    template <class T>
    YOKE_HD T operator()(T g, T x) const
    {
        return g * kernels::cos(x);
    }
};

struct Cos {
    template <class T>
    YOKE_HD T operator()(T x) const
    {
        return kernels::cos(x);
    }
};

struct CosBackward {
    template <class T>
    YOKE_HD T operator()(T g, T x) const
    {
        return -g * kernels::sin(x);
    }
};

struct Erf {
    template <class T>
    YOKE_HD T operator()(T x) const
    {
        return kernels::erf(x);
    }
};

struct ErfBackward {
    template <class T>
    YOKE_HD T operator()(T g, T x) const
    {
        return g * ((T)1.1283791670955126 * kernels::exp_of_minus_square(x));
    }
};

// ---- powers -------------------------------------------------------------------------------------

// Power x^y. For integers, y is at least 0: the op refuses other exponents.
struct Pow {
    template <class T>
    YOKE_HD T operator()(T x, T y) const
    {
        if constexpr (is_float<T>)
            return kernels::pow(x, y);
        else
            return (T)kernels::integer_power((wrapping_type<T>)x, (wrapping_type<T>)y);
    }
};

// Square of x. Square and cube are the powers that scripts use most.
struct Square {
    template <class T>
    YOKE_HD T operator()(T x) const
    {
        return Mul()(x, x);
    }
};

struct Cube {
    template <class T>
    YOKE_HD T operator()(T x) const
    {
        return x * x * x;
    }
};

struct SquareBackward {
    template <class T>
    YOKE_HD T operator()(T g, T x) const
    {
        return (T)2 * (g * x);
    }
};

struct CubeBackward {
    template <class T>
    YOKE_HD T operator()(T g, T x) const
    {
        return (T)3 * (g * x * x);
    }
};

// Gradient of x^y by x. x^0 is 1 everywhere, so the slope for y = 0 is 0, even at x = 0.
struct PowBackward {
    template <class T>
    YOKE_HD T operator()(T g, T x, T y) const
    {
        return select(y == (T)0, (T)0, g * (y * kernels::pow(x, y - (T)1)));
    }
};

// Gradient of x^y by y. 0^y is 0 for all y above 0; at y = 0 the slope is 0 by agreement.
struct PowExponentBackward {
    template <class T>
    YOKE_HD T operator()(T g, T x, T y, T out) const
    {
        return select(x == (T)0 && y >= (T)0, (T)0, g * (out * kernels::log(x)));
    }
};

YOKE_KERNELS_END
