// Activations, forward and backward; elementwise.h tells the contract.
#pragma once

#include "kernels/common/math.h"
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
    T e = kernels::exp(select(positive, -x, x));
    T large = (T)1 / ((T)1 + e), small = e * large;
    return {select(positive, large, small), select(positive, small, large)};
}

// Beyond this either way sigmoid is 0 or 1 in every dtype; held there, infinity is not multiplied by 0.
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
        T soft = positive + kernels::log1p_of_unit(kernels::exp(select(z > (T)0, -z, z)));
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
        return select(x <= (T)0, g * ((T)alpha * kernels::exp(select(x > (T)0, (T)0, x))), g);
    }
};

YOKE_KERNELS_END
