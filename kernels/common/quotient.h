// Whole quotients and their remainders: fmod, remainder, floor_divide and div with a rounding mode.
//
// Contract
//  * Floats: fmod is exact, as in the C library; the others follow from fmod as in Python. A division by 0 gives NaN or
//    infinity.
//  * Integers wrap modulo 2^bits. A division by 0 gives 0: the kernels report it.
//  * quick() is for loops: a float result, and whether it is wrong. For a quotient of 2^22 or more, an infinity or a
//    NaN it is wrong, and the functor itself gives the result.
#pragma once

#include "kernels/common/arithmetic.h"
#include "kernels/common/functions.h"

YOKE_KERNELS_BEGIN

// Quotient of integers, rounded towards 0, and its remainder.
template <class T>
struct Division {
    T quotient, rest;
};

template <class T>
YOKE_HD Division<T> divide_whole(T a, T b)
{
    // -1 would overflow at the lowest number.
    bool negates = std::is_signed_v<T> && b == (T)-1;
    T safe = select(b == (T)0 || negates, (T)1, b);
    T quotient;
    if constexpr (sizeof(T) == 1)
        quotient = (T)(int32_t)((float)a / (float)safe);
    else if constexpr (sizeof(T) == 4)
        quotient = (T)((double)a /
                       (double)safe);  // exact: no quotient of 32 bits rounds up to a whole number
    else
        quotient = a / safe;
    quotient = select(negates, Neg()(a), select(b == (T)0, (T)0, quotient));
    return {quotient, Sub()(a, Mul()(quotient, b))};
}

// Returns whether a remainder of truncation has another sign than the divisor.
template <class T>
YOKE_HD bool is_across(T rest, T b)
{
    return (rest != (T)0) & ((rest < (T)0) != (b < (T)0));
}

YOKE_HD float fmod_exact(float a, float b)
{
    return ::fmodf(a, b);
}
YOKE_HD double fmod_exact(double a, double b)
{
    return ::fmod(a, b);
}

// Returns whether two numbers have different signs, of which the first is not 0.
YOKE_HD bool differ_in_sign(float x, float y)
{
    return (x != 0.0f) & (((bit_cast<int32_t>(x) ^ bit_cast<int32_t>(y))) < 0);
}

// Quotient of floats, truncated, and its remainder; and 1 if both are not right, else 0.
struct QuickDivision {
    float quotient, rest, wrong;
};

// Divides floats with a quotient below 2^22. The product and the difference are exact: fused, or in double. A float
// quotient may be rounded up to a whole number; then the remainder has the wrong sign.
YOKE_HD QuickDivision divide_quick(float a, float b)
{
#if defined(__FMA__) || defined(__CUDA_ARCH__)
    float size = absolute(a / b);
    bool right = (size < 0x1p22f) & (absolute(b) < kInfinity);
    float sign = bit_cast<float>((bit_cast<uint32_t>(a) ^ bit_cast<uint32_t>(b)) & 0x80000000u);
    float quotient = with_sign_of(truncated(select(right, size, 0.0f)), sign);
    float rest = __builtin_fmaf(-quotient, b, a);
    bool beyond = differ_in_sign(rest, a);
    quotient = select(beyond, quotient - with_sign_of(1.0f, sign), quotient);
    rest = select(beyond, rest + with_sign_of(absolute(b), a), rest);
    return {quotient, with_sign_of(absolute(rest), a), select(right, 0.0f, 1.0f)};
#else
    double x = (double)a, y = (double)b, exact = x / y;
    bool right = exact * exact < 0x1p44 && y * y < (double)kInfinity;
    double quotient = (double)(int32_t)select(right, exact, 0.0);
    float rest = (float)(x - quotient * y);
    return {(float)quotient, with_sign_of(absolute(rest), a), (float)select(right, 0.0, 1.0)};
#endif
}

struct QuickResult {
    float value, wrong;
};

struct Fmod {
    template <class T>
    YOKE_HD T operator()(T a, T b) const
    {
        if constexpr (is_float<T>)
            return fmod_exact(a, b);
        else
            return divide_whole(a, b).rest;
    }
    YOKE_HD static QuickResult quick(float a, float b)
    {
        QuickDivision d = divide_quick(a, b);
        return {d.rest, d.wrong};
    }
};

struct Remainder {
    template <class T>
    YOKE_HD T operator()(T a, T b) const
    {
        T rest = Fmod()(a, b);
        return select(is_across(rest, b), Add()(rest, b), rest);
    }
    YOKE_HD static QuickResult quick(float a, float b)
    {
        QuickDivision d = divide_quick(a, b);
        return {select(differ_in_sign(d.rest, b), d.rest + b, d.rest), d.wrong};
    }
};

// Quotient rounded down: of floats, so that quotient * b + remainder is a.
struct FloorDivide {
    template <class T>
    YOKE_HD T operator()(T a, T b) const
    {
        if constexpr (!is_float<T>) {
            Division<T> d = divide_whole(a, b);
            return select(is_across(d.rest, b), Sub()(d.quotient, (T)1), d.quotient);
        } else {
            // In double, so that a quotient of floats is rounded once.
            T rest = fmod_exact(a, b), plain = a / b;
            double quotient = ((double)a - (double)rest) / (double)b;
            quotient = select(is_across(rest, b), quotient - 1.0, quotient);
            double below = kernels::floor(quotient);
            below = select(quotient - below > 0.5, below + 1.0, below);
            T zero = select(plain < (T)0, -(T)0, (T)0 * plain);
            return select(b == (T)0, plain, select(quotient == 0.0, zero, (T)below));
        }
    }
    YOKE_HD static QuickResult quick(float a, float b)
    {
        QuickDivision d = divide_quick(a, b);
        float below = select(differ_in_sign(d.rest, b), d.quotient - 1.0f, d.quotient);
        uint32_t sign = (bit_cast<uint32_t>(a) ^ bit_cast<uint32_t>(b)) & 0x80000000u;
        return {select(below == 0.0f, bit_cast<float>(sign), below), d.wrong};
    }
};

struct TruncDivide {
    template <class T>
    YOKE_HD T operator()(T a, T b) const
    {
        if constexpr (is_float<T>)
            return truncated(a / b);
        else
            return divide_whole(a, b).quotient;
    }
};

YOKE_KERNELS_END
