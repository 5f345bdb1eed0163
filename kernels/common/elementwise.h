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

// ---- GELU: x Phi(x), and its approximation by tanh
// -------------------------------------------------- D. Hendrycks, K. Gimpel, "Gaussian error
// linear units", 2016.

// Below -40 either form is 0 in every dtype; held there, -infinity gives 0 and not 0 * infinity.
template <class T>
YOKE_HD T gelu_argument(T x)
{
    return select(x < (T)-40, (T)-40, x);
}

struct Gelu {
    template <class T>
    YOKE_HD T operator()(T x) const
    {
        T bounded = gelu_argument(x);
        return bounded * normal_distribution(bounded).cdf;
    }
};

// d/dx x Phi(x) = Phi(x) + x phi(x). Above 40 the second term is 0; held there for infinity's sake.
struct GeluBackward {
    template <class T>
    YOKE_HD T operator()(T g, T x) const
    {
        T bounded = select(x > (T)40, (T)40, gelu_argument(x));
        Normal<T> normal = normal_distribution(bounded);
        return g * (normal.cdf + bounded * normal.density);
    }
};

// 1 + tanh(y) = 2 / (1 + exp(-2y)): one exp, and no cancellation for negative x.
template <class T>
YOKE_HD T gelu_tanh_gate(T x)
{
    const T kTwoRootTwoOverPi = (T)1.5957691216057308;
    return (T)1 / ((T)1 + kernels::exp(-kTwoRootTwoOverPi * x * ((T)1 + (T)0.044715 * x * x)));
}

struct GeluTanh {
    template <class T>
    YOKE_HD T operator()(T x) const
    {
        T bounded = gelu_argument(x);
        return bounded * gelu_tanh_gate(bounded);
    }
};

struct GeluTanhBackward {
    template <class T>
    YOKE_HD T operator()(T g, T x) const
    {
        const T kTwoRootTwoOverPi = (T)1.5957691216057308;
        T bounded = select(x > (T)40, (T)40, gelu_argument(x));
        T gate = gelu_tanh_gate(bounded);
        T slope = kTwoRootTwoOverPi * ((T)1 + (T)(3 * 0.044715) * bounded * bounded);
        return g * (gate + bounded * gate * ((T)1 - gate) * slope);
    }
};

YOKE_KERNELS_END
