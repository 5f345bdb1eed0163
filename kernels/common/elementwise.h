// The arithmetic of elementwise ops, forward and backward, in the type an element is computed in.
//
// Contract
//  * A functor takes and gives compute_type<T>; the kernel loads and stores (numeric.h).
//  * Integers wrap modulo 2^bits; bool is computed in 8 bits and tested against 0, so + is "or", *
//    is "and".
//  * NaN passes through every function, relu included.
//  * A backward functor's arguments are the incoming gradient g and what the op saved: its result
//    `out` where that is enough, else its input x.
#pragma once

#include "kernels/common/math.h"
#include "kernels/common/numeric.h"

YOKE_KERNELS_BEGIN

// The unsigned type in which an integer's arithmetic wraps without undefined behaviour.
template <class T>
using wrapping_type = std::conditional_t<sizeof(T) == 1, uint8_t,
                                         std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>;

template <class T>
YOKE_HD T from_wrapped(wrapping_type<T> x)
{
    if constexpr (std::is_same_v<T, bool>)
        return x != 0;
    else
        return (T)x;
}

struct Add {
    template <class T>
    YOKE_HD T operator()(T a, T b) const
    {
        using U = wrapping_type<T>;
        if constexpr (is_float<T>)
            return a + b;
        else
            return from_wrapped<T>((U)((U)a + (U)b));
    }
};

struct Sub {
    template <class T>
    YOKE_HD T operator()(T a, T b) const
    {
        using U = wrapping_type<T>;
        if constexpr (is_float<T>)
            return a - b;
        else
            return from_wrapped<T>((U)((U)a - (U)b));
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
            return from_wrapped<T>((U)((U)a * (U)b));
    }
};

// Floats only: integers are divided as f32, which the op's type rule sees to.
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
            return from_wrapped<T>((U)((U)0 - (U)x));
    }
};

// kernels::exp and its like are named in full: inside a functor the C library's names are as near.
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

struct Relu {
    template <class T>
    YOKE_HD T operator()(T x) const
    {
        return select(x < (T)0, (T)0, x);
    }
};

// The derivative at 0 is 0. A NaN in out lets g through: no gradient is lost without a trace.
struct ReluBackward {
    template <class T>
    YOKE_HD T operator()(T g, T out) const
    {
        return select(out <= (T)0, (T)0, g);
    }
};

struct Tanh {
    template <class T>
    YOKE_HD T operator()(T x) const
    {
        return kernels::tanh(x);
    }
};

struct TanhBackward {
    template <class T>
    YOKE_HD T operator()(T g, T out) const
    {
        return g * ((T)1 - out * out);
    }
};

// ---- GELU: x Phi(x), and its approximation by tanh -------------------------------------------------
// D. Hendrycks, K. Gimpel, "Gaussian error linear units", 2016.
//
// Both are symmetric: with a tail that falls from 1/2 to 0 and t = |x|, gelu(x) = relu(x) - t tail(t). Thus nothing
// cancels for negative x. Where the tail is 0, t is held, so that infinity times 0 does not arise.

// The derivative for positive x is 1 + excess, for negative -excess. What holds t holds NaN too: x brings it back.
template <class T>
YOKE_HD T gelu_slope(T x, T excess)
{
    return select(x != x, x, select(x < (T)0, -excess, (T)1 + excess));
}

struct Gelu {
    template <class T>
    YOKE_HD T operator()(T x) const
    {
        T t = magnitude_at_most(x, kNormalReach<T>);
        return Relu()(x) - t * normal_tail(t).tail;
    }
};

struct GeluBackward {
    template <class T>
    YOKE_HD T operator()(T g, T x) const
    {
        T t = magnitude_at_most(x, kNormalReach<T>);
        NormalTail<T> normal = normal_tail(t);
        return g * gelu_slope(x, t * normal.density - normal.tail);
    }
};

// With y = sqrt(2 / pi) (t + 0.044715 t^3): the tail is (1 - tanh y) / 2 = e / (1 + e), e = exp(-2y).
template <class T>
struct GeluTanhTail {
    T t;
    T body;  // 1 - tail
    T tail;

    YOKE_HD static GeluTanhTail at(T x)
    {
        T size = magnitude_at_most(x, std::is_same_v<T, float> ? (T)10.75 : (T)40);
        T slope = (T)-1.5957691216057308 + (T)(-1.5957691216057308 * 0.044715) * (size * size);
        T e = exp_small(size * slope);
        T body_ = (T)1 / ((T)1 + e);
        return {size, body_, e * body_};
    }
};

struct GeluTanh {
    template <class T>
    YOKE_HD T operator()(T x) const
    {
        auto [t, body, tail] = GeluTanhTail<T>::at(x);
        return Relu()(x) - t * tail;
    }
};

struct GeluTanhBackward {
    template <class T>
    YOKE_HD T operator()(T g, T x) const
    {
        auto [t, body, tail] = GeluTanhTail<T>::at(x);
        T slope = (T)1.5957691216057308 + (T)(3 * 1.5957691216057308 * 0.044715) * (t * t);
        return g * gelu_slope(x, t * slope * tail * body - tail);
    }
};

YOKE_KERNELS_END
