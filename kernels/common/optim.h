// Optimizer step for an element, and the arithmetic of loss scaling. Kernels run both over every parameter in a
// single pass.
//
// Contract: state and arithmetic are in the parameter's compute_type, or in the type of the f32 master copy. State of
// zeros means "no step yet". Definitions are PyTorch's.
#pragma once

#include <cmath>

#include "kernels/common/numeric.h"

YOKE_KERNELS_BEGIN

YOKE_HD float square_root(float x)
{
    return ::sqrtf(x);
}
YOKE_HD double square_root(double x)
{
    return ::sqrt(x);
}

// Returns the gradient plus weight_decay times the parameter. If weight_decay is 0, the parameter is left out: an
// infinite parameter times 0 would make the gradient NaN.
template <class T>
YOKE_HD T decayed(T parameter, T gradient, T weight_decay)
{
    return select(weight_decay != (T)0, gradient + weight_decay * parameter, gradient);
}

// Stochastic gradient descent with momentum (no dampening), as in I. Sutskever et al., "On the
// importance of initialization and momentum in deep learning", 2013, in PyTorch's form: the
// learning rate multiplies the buffer. A buffer of zeros takes the first gradient as it is.
template <class T>
struct Sgd {
    T learning_rate;
    T momentum;
    T weight_decay;
    bool nesterov;

    // Returns the parameter after a step without momentum. This step has no buffer.
    YOKE_HD T operator()(T parameter, T gradient) const
    {
        return parameter - learning_rate * decayed(parameter, gradient, weight_decay);
    }

    YOKE_HD T operator()(T parameter, T gradient, T &buffer) const
    {
        T g = decayed(parameter, gradient, weight_decay);
        buffer = momentum * buffer + g;
        return parameter - learning_rate * select(nesterov, g + momentum * buffer, buffer);
    }
};

// Adam: D. Kingma and J. Ba, "Adam: a method for stochastic optimization", 2014; AdamW: I.
// Loshchilov and F. Hutter, "Decoupled weight decay regularization", 2017. What is the same for all
// elements of one step is worked out once, in double.
template <class T>
struct Adam {
    T first_weight;   // 1 - beta1
    T beta2;          // beta2 and 1 - beta2
    T second_weight;  //
    T eps;
    T step_size;     // lr / (1 - beta1^t)
    T root_scale;    // 1 / sqrt(1 - beta2^t)
    T weight_decay;  // in the gradient: 0 if decoupled
    T kept;          // 1 - lr * weight_decay if decoupled, else 1

    YOKE_HD T operator()(T parameter, T gradient, T &first, T &second) const
    {
        T g = decayed(parameter, gradient, weight_decay);
        first = first + first_weight * (g - first);
        second = beta2 * second + second_weight * (g * g);
        T denominator = square_root(second) * root_scale + eps;
        return kept * parameter - step_size * (first / denominator);
    }
};

struct AdamOptions {
    double learning_rate, beta1, beta2, eps, weight_decay;
    bool decoupled;
};

// Returns the constants of step number t; the first step is number 1.
template <class T>
YOKE_HD Adam<T> adam_step(const AdamOptions &o, double t)
{
    double first = 1.0 - ::pow(o.beta1, t), second = 1.0 - ::pow(o.beta2, t);
    return {(T)(1.0 - o.beta1),
            (T)o.beta2,
            (T)(1.0 - o.beta2),
            (T)o.eps,
            (T)(o.learning_rate / first),
            (T)(1.0 / ::sqrt(second)),
            o.decoupled ? (T)0 : (T)o.weight_decay,
            o.decoupled ? (T)(1.0 - o.learning_rate * o.weight_decay) : (T)1};
}

// ---- loss scaling -------------------------------------------------------------------------------

// Returns 1 if x is infinite or NaN, else 0.
YOKE_HD uint32_t not_finite(float x)
{
    return (uint32_t)((bit_cast<uint32_t>(x) & 0x7f800000u) == 0x7f800000u);
}
YOKE_HD uint64_t not_finite(double x)
{
    constexpr uint64_t kExponent = 0x7ff0000000000000u;
    return (uint64_t)((bit_cast<uint64_t>(x) & kExponent) == kExponent);
}

// Returns the inverse of a loss scale, computed in double and rounded once.
YOKE_HD float unscale_factor(float scale)
{
    return (float)(1.0 / (double)scale);
}

struct ScaleRule {
    double growth_factor, backoff_factor;
    int64_t growth_interval;
    float smallest;

    // Updates the scale after an iteration. After an overflow, shrinks the scale, but not below `smallest`. After
    // growth_interval iterations without overflow, grows the scale, unless it would become infinite.
    YOKE_HD void operator()(float &scale, int32_t &tracker, bool overflowed) const
    {
        if (overflowed) {
            const auto shrunk = (float)((double)scale * backoff_factor);
            scale = select(shrunk < smallest, smallest, shrunk);
            tracker = 0;
        } else if ((int64_t)tracker + 1 == growth_interval) {
            float grown = (float)((double)scale * growth_factor);
            if (!not_finite(grown)) scale = grown;
            tracker = 0;
        } else {
            tracker++;
        }
    }
};

// ---- clipping -----------------------------------------------------------------------------------

// Returns the factor for gradients of this norm, so the norm becomes max_norm at most. The factor is 1 at most. A
// norm of NaN gives NaN.
YOKE_HD double clip_factor(double norm, double max_norm)
{
    double factor = max_norm / (norm + 1e-6);
    return select(factor > 1.0, 1.0, factor);
}

// Factors by which a kernel multiplies gradients in C, one after the other. The product of both factors may be below
// C's normal numbers although the results are normal.
template <class C>
struct ClipFactors {
    C first, second;
};

template <class C>
YOKE_HD ClipFactors<C> clip_factors(double norm, double max_norm)
{
    constexpr double kLeast = sizeof(C) == 4 ? 0x1p-126 : 0x1p-1022;
    const double factor = clip_factor(norm, max_norm);
    if (!(factor < kLeast)) return {(C)1, (C)factor};
    return {(C)kLeast, (C)(max_norm / ((norm + 1e-6) * kLeast))};
}

YOKE_KERNELS_END
