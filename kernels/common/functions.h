// Elementwise functions beside arithmetic.h, forward and backward; elementwise.h tells the contract.
#pragma once

#include "kernels/common/activation.h"
#include "kernels/common/arcs.h"
#include "kernels/common/arithmetic.h"
#include "kernels/common/exponentials.h"
#include "kernels/common/numeric.h"

YOKE_KERNELS_BEGIN

// Defines a functor of one argument by a function of this namespace.
#define YOKE_FUNCTION(name, function)    \
    struct name {                        \
        template <class T>               \
        YOKE_HD T operator()(T x) const  \
        {                                \
            return kernels::function(x); \
        }                                \
    };
YOKE_FUNCTION(Log1p, log1p)
YOKE_FUNCTION(Expm1, expm1)
YOKE_FUNCTION(Log2, log2)
YOKE_FUNCTION(Log10, log10)
YOKE_FUNCTION(Exp2, exp2)
YOKE_FUNCTION(Tan, tan)
YOKE_FUNCTION(Atan, atan)
YOKE_FUNCTION(Asin, asin)
YOKE_FUNCTION(Acos, acos)
YOKE_FUNCTION(Sinh, sinh)
YOKE_FUNCTION(Cosh, cosh)
YOKE_FUNCTION(Erfinv, erfinv)
#undef YOKE_FUNCTION

// Returns x without its fraction; the sign stays, also of 0.
YOKE_HD float truncated(float x)
{
#if defined(__SSE4_1__) || defined(__CUDA_ARCH__)
    return __builtin_truncf(x);
#else
    return with_sign_of(kernels::floor(absolute(x)), x);
#endif
}
YOKE_HD double truncated(double x)
{
    return ::trunc(x);
}

struct Trunc {
    template <class T>
    YOKE_HD T operator()(T x) const
    {
        if constexpr (is_float<T>)
            return truncated(x);
        else
            return x;
    }
};

struct Frac {
    template <class T>
    YOKE_HD T operator()(T x) const
    {
        return x - Trunc()(x);
    }
};

// Values in place of NaN and of infinities.
template <class T>
struct NanToNum {
    T nan, above, below;
    YOKE_HD T operator()(T x) const
    {
        if constexpr (!is_float<T>) {
            return x;
        } else {
            T held = select(x == (T)kInfinity, above, select(x == (T)-kInfinity, below, x));
            return select(x != x, nan, held);
        }
    }
};

struct Atan2 {
    template <class T>
    YOKE_HD T operator()(T x, T y) const
    {
        return kernels::atan2(x, y);
    }
};

// log(exp(a) + exp(b)): the larger, plus log(1 + exp(-|a - b|)). Two equal infinities have no difference.
struct LogAddExp {
    template <class T>
    YOKE_HD T operator()(T a, T b) const
    {
        T larger = select(a > b, a, b), less = select(a > b, b - a, a - b);
        T distance = select(a == b, (T)0, less);
        return larger + kernels::log1p_of_unit(kernels::exp_not_large(distance));
    }
};

// ---- slopes: g times the derivative -------------------------------------------------------------

struct SlopeOfExp {
    template <class T>
    YOKE_HD T operator()(T g, T x) const
    {
        return g * kernels::exp(x);
    }
};

struct SlopeOfExp2 {
    template <class T>
    YOKE_HD T operator()(T g, T out) const
    {
        return g * (T)0.6931471805599453 * out;
    }
};

struct SlopeOfLog1p {
    template <class T>
    YOKE_HD T operator()(T g, T x) const
    {
        return g / ((T)1 + x);
    }
};

// g / (x times the logarithm of the base); the quotient first, because the product of x may be subnormal.
struct SlopeOfLog2 {
    template <class T>
    YOKE_HD T operator()(T g, T x) const
    {
        return g * (T)1.4426950408889634 / x;
    }
};

struct SlopeOfLog10 {
    template <class T>
    YOKE_HD T operator()(T g, T x) const
    {
        return g * (T)0.4342944819032518 / x;
    }
};

struct SlopeOfSquare {
    template <class T>
    YOKE_HD T operator()(T g, T x) const
    {
        return g * (x + x);
    }
};

struct SlopeOfTan {
    template <class T>
    YOKE_HD T operator()(T g, T out) const
    {
        return g + g * out * out;
    }
};

// g / (1 + x^2); of a large x, whose square may overflow, through its inverse.
struct SlopeOfAtan {
    template <class T>
    YOKE_HD T operator()(T g, T x) const
    {
        bool large = x > (T)1 || x < (T)-1;
        T t = select(large, (T)1 / x, x);
        T y = g / ((T)1 + t * t);
        return select(large, y * t * t, y);
    }
};

struct SlopeOfAsin {
    template <class T>
    YOKE_HD T operator()(T g, T x) const
    {
        return g / kernels::sqrt(((T)1 - x) * ((T)1 + x));
    }
};

struct SlopeOfAcos {
    template <class T>
    YOKE_HD T operator()(T g, T x) const
    {
        return -g / kernels::sqrt(((T)1 - x) * ((T)1 + x));
    }
};

struct SlopeOfSinh {
    template <class T>
    YOKE_HD T operator()(T g, T x) const
    {
        return g * kernels::cosh(x);
    }
};

struct SlopeOfCosh {
    template <class T>
    YOKE_HD T operator()(T g, T x) const
    {
        return g * kernels::sinh(x);
    }
};

// g sqrt(pi) / 2 exp(out^2), as a quotient, because exp_of_minus_square is precise.
struct SlopeOfErfinv {
    template <class T>
    YOKE_HD T operator()(T g, T out) const
    {
        return g * (T)0.886226925452758 / kernels::exp_of_minus_square(out);
    }
};

// g where x is finite, else 0.
struct SlopeOfFinite {
    template <class T>
    YOKE_HD T operator()(T g, T x) const
    {
        return select(x - x == (T)0, g, (T)0);
    }
};

// y / (x^2 + y^2), the derivative of atan2 by x. At the origin it is 0. In double, squares of floats do not overflow;
// squares of doubles are of numbers divided by the larger of both.
struct SlopeOfAtan2 {
    YOKE_HD float operator()(float g, float x, float y) const
    {
        double a = (double)x, b = (double)y, square = a * a + b * b;
        return (float)select(square == 0.0, 0.0, (double)g * b / square);
    }
    YOKE_HD double operator()(double g, double x, double y) const
    {
        double a = select(x < 0, -x, x), b = select(y < 0, -y, y);
        double most = select(a > b, a, b), unit = select(most == 0, 1.0, most);
        double u = x / unit, v = y / unit, square = u * u + v * v;
        return select(most == 0, 0.0, g * (v / square) / unit);
    }
};

// sigmoid(x - y), the derivative of logaddexp by x. Two equal infinities share the gradient.
struct SlopeOfLogAddExp {
    template <class T>
    YOKE_HD T operator()(T g, T x, T y) const
    {
        return g * sigmoids(select(x == y, (T)0, x - y)).rising;
    }
};

// ---- sums of products ---------------------------------------------------------------------------

struct AddScaled {
    double alpha;
    template <class T>
    YOKE_HD T operator()(T x, T y) const
    {
        return x + (T)alpha * y;
    }
};

// x + alpha * y of integers, modulo 2^bits.
struct AddScaledWhole {
    int64_t alpha;
    template <class T>
    YOKE_HD T operator()(T x, T y) const
    {
        using U = wrapping_type<T>;
        return (T)(U)((U)x + (U)((U)(uint64_t)alpha * (U)y));
    }
};

// From both ends, as PyTorch: so the result for a weight of 1 is exactly y.
struct Lerp {
    template <class T>
    YOKE_HD T operator()(T x, T y, T weight) const
    {
        T rise = y - x;
        bool near = weight < (T)0.5 && weight > (T)-0.5;
        return select(near, x + weight * rise, y - rise * ((T)1 - weight));
    }
};

struct AddScaledProduct {
    double value;
    template <class T>
    YOKE_HD T operator()(T x, T a, T b) const
    {
        return x + (T)value * a * b;
    }
};

struct AddScaledProductWhole {
    int64_t value;
    template <class T>
    YOKE_HD T operator()(T x, T a, T b) const
    {
        using U = wrapping_type<T>;
        return (T)(U)((U)x + (U)((U)((U)(uint64_t)value * (U)a) * (U)b));
    }
};

struct AddScaledQuotient {
    double value;
    template <class T>
    YOKE_HD T operator()(T x, T a, T b) const
    {
        return x + (T)value * a / b;
    }
};

// x held between bounds of each element; NaN of any of the three wins.
struct ClampBetween {
    template <class T>
    YOKE_HD T operator()(T x, T low, T high) const
    {
        return Minimum()(Maximum()(x, low), high);
    }
};

// |a - b| <= atol + rtol |b|; equal values are close, infinities too. Differences of integers are in double, where two
// of 64 bits may be equal without being so: these are compared themselves.
struct IsClose {
    double rtol, atol;
    bool equal_nan;
    template <class T>
    YOKE_HD bool operator()(T a, T b) const
    {
        using C = std::conditional_t<std::is_same_v<T, float>, float, double>;
        C x = (C)a, y = (C)b, gap = x - y, size = select(y < (C)0, -y, y);
        C distance = select(gap < (C)0, -gap, gap);
        // A difference that is not finite is never small, even beside an infinite bound.
        C bound = select(distance - distance == (C)0, (C)atol + (C)rtol * size, (C)-1);
        if constexpr (sizeof(T) == 8 && !is_float<T>)
            return (distance <= bound) | (a == b);
        else
            return (distance <= bound) | (x == y) | (equal_nan & (x != x) & (y != y));
    }
};

YOKE_KERNELS_END
