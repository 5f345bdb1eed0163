// Activations, forward and backward; elementwise.h tells the contract.
#pragma once

#include "kernels/common/normal.h"
#include "kernels/common/numeric.h"

YOKE_KERNELS_BEGIN

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
    // Returns g, or 0 if out is 0 or has a sign. If out is NaN, returns g. Compares the stored bits, without
    // widening.
    YOKE_HD bf16 operator()(bf16 g, bf16 out) const
    {
        const bool is_held = (int16_t)out.bits <= 0 && (out.bits & 0x7fff) <= 0x7f80;
        return bf16{select(is_held, (uint16_t)0, g.bits)};
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

// ---- GELU: x Phi(x), and its approximation by tanh ----------------------------------------------
//
// D. Hendrycks, K. Gimpel, "Gaussian error linear units", 2016. Both functions are symmetric. With t = |x| and a tail
// falling from 1/2 to 0, gelu(x) = relu(x) - t tail(t). So no digits cancel for negative x. Where the tail is 0, t is
// bounded, so infinity times 0 does not arise.

// Returns the derivative: 1 + excess for x from 0 on, -excess for negative x. Bounding t drops a NaN of x, so the NaN
// is restored from x.
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
        T body_ = reciprocal_within((T)1 + e);
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

// ---- sigmoid and its like -----------------------------------------------------------------------

// sigmoid(x) and 1 - sigmoid(x), each with its full relative accuracy; exp never overflows.
template <class T>
struct Sigmoids {
    T rising, falling;
};

template <class T>
YOKE_HD Sigmoids<T> sigmoids(T x)
{
    bool positive = x > (T)0;
    T e = kernels::exp_not_large(select(positive, -x, x));
    T large = reciprocal_within((T)1 + e), small = e * large;
    return {select(positive, large, small), select(positive, small, large)};
}

// Bound of arguments. Beyond this bound, on either side, sigmoid is 0 or 1 in every dtype. Arguments are held at the
// bound, so infinity is never multiplied by 0.
template <class T>
inline constexpr T kSigmoidEnd = (T)(sizeof(T) == 8 ? 800 : 120);

template <class T>
YOKE_HD T sigmoid_argument(T x)
{
    return select(x < -kSigmoidEnd<T>, -kSigmoidEnd<T>, x);
}

struct Sigmoid {
    template <class T>
    YOKE_HD T operator()(T x) const
    {
        return sigmoids(x).rising;
    }
};

struct SigmoidBackward {
    template <class T>
    YOKE_HD T operator()(T g, T out) const
    {
        return g * (((T)1 - out) * out);
    }
};

// S. Elfwing, E. Uchibe, K. Doya, "Sigmoid-weighted linear units", 2017.
struct Silu {
    template <class T>
    YOKE_HD T operator()(T x) const
    {
        T bounded = sigmoid_argument(x);
        return bounded * sigmoids(bounded).rising;
    }
};

struct SiluBackward {
    template <class T>
    YOKE_HD T operator()(T g, T x) const
    {
        T bounded = select(x > kSigmoidEnd<T>, kSigmoidEnd<T>, sigmoid_argument(x));
        Sigmoids<T> s = sigmoids(bounded);
        return g * (s.rising * ((T)1 + bounded * s.falling));
    }
};

// log(1 + exp(z)) / beta with z = beta x, as max(z, 0) + log(1 + exp(-|z|)): no overflow.
struct Softplus {
    double beta, threshold;
    template <class T>
    YOKE_HD T operator()(T x) const
    {
        T z = (T)beta * x;
        T positive = select(z > (T)0, z, (T)0);
        T soft = positive + kernels::log1p_of_unit(kernels::exp_not_large(select(z > (T)0, -z, z)));
        return select(z > (T)threshold, x, soft / (T)beta);
    }
};

struct SoftplusBackward {
    double beta, threshold;
    template <class T>
    YOKE_HD T operator()(T g, T x) const
    {
        T z = (T)beta * x;
        return select(z > (T)threshold, g, g * sigmoids(z).rising);
    }
};

struct LeakyRelu {
    double slope;
    template <class T>
    YOKE_HD T operator()(T x) const
    {
        return select(x > (T)0, x, x * (T)slope);
    }
};

struct LeakyReluBackward {
    double slope;
    template <class T>
    YOKE_HD T operator()(T g, T x) const
    {
        return select(x > (T)0, g, g * (T)slope);
    }
};

// D.-A. Clevert, T. Unterthiner, S. Hochreiter, "Exponential linear units", 2016.
struct Elu {
    double alpha;
    template <class T>
    YOKE_HD T operator()(T x) const
    {
        return select(x > (T)0, x, (T)alpha * kernels::expm1_below_zero(select(x > (T)0, (T)0, x)));
    }
};

struct EluBackward {
    double alpha;
    template <class T>
    YOKE_HD T operator()(T g, T x) const
    {
        return select(x <= (T)0, g * ((T)alpha * kernels::exp_not_large(select(x > (T)0, (T)0, x))),
                      g);
    }
};

YOKE_KERNELS_END
