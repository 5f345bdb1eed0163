// Losses of two numbers, a prediction x and a target, with their slopes in both.
//
// Contract
//  * A functor gives value, of_x and of_target (the derivatives, but for kSlopeFactor) in the computing type, float or
//    double.
//  * NaN passes. Where a limit has a value it is taken: 0 log 0 is 0, log(1 + exp(x)) does not overflow.
#pragma once

#include "kernels/common/activation.h"
#include "kernels/common/numeric.h"

YOKE_KERNELS_BEGIN

// Returns log(1 + y) for y >= -1. The quotient corrects the rounding of 1 + y (W. Kahan).
template <class C>
YOKE_HD C log_one_plus(C y)
{
    C u = (C)1 + y, step = u - (C)1;
    C ratio = y / select(step == (C)0, (C)1, step);
    return select(step == (C)0, y, kernels::log(u) * ratio);
}

// Returns -1, 0 or 1, the sign of d; NaN for NaN.
template <class C>
YOKE_HD C slope_of_absolute(C d)
{
    C sign = select(d > (C)0, (C)1, select(d < (C)0, (C)-1, (C)0));
    return select(d != d, d, sign);
}

template <class C>
YOKE_HD C size_of(C d)
{
    return select(d < (C)0, -d, d);
}

struct SquaredError {
    template <class C>
    YOKE_HD C value(C x, C t) const
    {
        return (x - t) * (x - t);
    }
    template <class C>
    YOKE_HD C of_x(C x, C t) const
    {
        return x - t;
    }
    template <class C>
    YOKE_HD C of_target(C x, C t) const
    {
        return t - x;
    }
};

// Factor of of_x and of_target, which comes last in a gradient: twice a difference may overflow where the gradient,
// divided by the number of elements, does not.
template <class F>
constexpr int kSlopeFactor = 1;
template <>
inline constexpr int kSlopeFactor<SquaredError> = 2;

struct AbsoluteError {
    template <class C>
    YOKE_HD C value(C x, C t) const
    {
        return size_of(x - t);
    }
    template <class C>
    YOKE_HD C of_x(C x, C t) const
    {
        return slope_of_absolute(x - t);
    }
    template <class C>
    YOKE_HD C of_target(C x, C t) const
    {
        return slope_of_absolute(t - x);
    }
};

// A parabola below beta, lines above (R. Girshick, "Fast R-CNN", 2015); with beta 0 the absolute error.
struct SmoothL1 {
    double beta;

    template <class C>
    YOKE_HD C value(C x, C t) const
    {
        C size = size_of(x - t), b = (C)beta;
        return select(size < b, (C)0.5 * size * (size / b), size - (C)0.5 * b);
    }
    template <class C>
    YOKE_HD C of_x(C x, C t) const
    {
        C d = x - t, b = (C)beta;
        return select(size_of(d) < b, d / b, slope_of_absolute(d));
    }
    template <class C>
    YOKE_HD C of_target(C x, C t) const
    {
        return -of_x(x, t);
    }
};

// Returns a b. If a is 0, returns 0, even for an infinite b; if b is NaN, returns NaN.
template <class C>
YOKE_HD C product_of_weight(C a, C b)
{
    return select(a == (C)0, b != b ? b : (C)0, a * b);
}

// Returns log(1 + exp(-size)) for a size of 0 or more.
template <class C>
YOKE_HD C softplus_of_minus(C size)
{
    return kernels::log1p_of_unit(kernels::exp_not_large(-size));
}

// Loss -(t log s + (1 - t) log(1 - s)) with s = sigmoid(x). The slope never subtracts a rounded s from t or 1: if s
// is nearly 1, such a difference has no correct digits.
struct LogitCrossEntropy {
    template <class C>
    YOKE_HD C value(C x, C t) const
    {
        C mistaken = select(x < (C)0, t, (C)1 - t), size = size_of(x);
        return product_of_weight(mistaken, size) + softplus_of_minus(size);
    }
    template <class C>
    YOKE_HD C of_x(C x, C t) const
    {
        Sigmoids<C> s = sigmoids(x);
        return ((C)1 - t) * s.rising - t * s.falling;
    }
    template <class C>
    YOKE_HD C of_target(C x, C) const
    {
        return -x;
    }
};

// w log(1 + exp(x)): what a class of weight w adds to the cross entropy of a logit.
struct WeightedSoftplus {
    template <class C>
    YOKE_HD C value(C x, C w) const
    {
        return product_of_weight(w, of_target(x, w));
    }
    template <class C>
    YOKE_HD C of_x(C x, C w) const
    {
        return w * sigmoids(x).rising;
    }
    template <class C>
    YOKE_HD C of_target(C x, C) const
    {
        return Relu()(x) + softplus_of_minus(size_of(x));
    }
};

// Loss x of weight w. An infinite loss of weight 0 adds 0.
struct WeightedLoss {
    template <class C>
    YOKE_HD C value(C x, C w) const
    {
        return product_of_weight(w, x);
    }
    template <class C>
    YOKE_HD C of_x(C, C w) const
    {
        return w;
    }
    template <class C>
    YOKE_HD C of_target(C x, C) const
    {
        return x;
    }
};

// The cross entropy of a probability x, with logarithms held above -100 so that a certain mistake has a finite loss.
struct BinaryCrossEntropy {
    template <class C>
    YOKE_HD static C held(C logarithm)
    {
        return select(logarithm < (C)-100, (C)-100, logarithm);
    }
    template <class C>
    YOKE_HD C value(C x, C t) const
    {
        return (t - (C)1) * held(log_one_plus(-x)) - t * held(kernels::log(x));
    }
    template <class C>
    YOKE_HD C of_x(C x, C t) const
    {
        C spread = ((C)1 - x) * x;
        return (x - t) / select(spread < (C)1e-12, (C)1e-12, spread);
    }
    template <class C>
    YOKE_HD C of_target(C x, C) const
    {
        return held(log_one_plus(-x)) - held(kernels::log(x));
    }
};

// t (log t - x) of a log-probability x and a probability t.
struct KlDivergence {
    template <class C>
    YOKE_HD C value(C x, C t) const
    {
        return select(t == (C)0, (C)0, t * (kernels::log(t) - x));
    }
    template <class C>
    YOKE_HD C of_x(C, C t) const
    {
        return -t;
    }
    template <class C>
    YOKE_HD C of_target(C x, C t) const
    {
        return kernels::log(t) + (C)1 - x;
    }
};

// Kullback-Leibler loss whose target is given as a logarithm.
struct KlDivergenceOfLogs {
    template <class C>
    YOKE_HD C value(C x, C t) const
    {
        return select(t == -(C)kInfinity, (C)0, kernels::exp(t) * (t - x));
    }
    template <class C>
    YOKE_HD C of_x(C, C t) const
    {
        return -kernels::exp(t);
    }
    template <class C>
    YOKE_HD C of_target(C x, C t) const
    {
        return select(t == -(C)kInfinity, (C)0, kernels::exp(t) * (t - x + (C)1));
    }
};

// ---- by name ----------------------------------------------------------------------------------------------------

// LOSS(kind, the name that the op is given, the functor); `beta` is the op's parameter.
#define YOKE_PAIR_LOSSES(LOSS)                                 \
    LOSS(kMse, "mse", kernels::SquaredError())                 \
    LOSS(kL1, "l1", kernels::AbsoluteError())                  \
    LOSS(kSmoothL1, "smooth_l1", kernels::SmoothL1{beta})      \
    LOSS(kLogits, "bce_logits", kernels::LogitCrossEntropy())  \
    LOSS(kSoftplus, "softplus", kernels::WeightedSoftplus())   \
    LOSS(kWeighted, "weighted", kernels::WeightedLoss())       \
    LOSS(kProbabilities, "bce", kernels::BinaryCrossEntropy()) \
    LOSS(kKl, "kl", kernels::KlDivergence())                   \
    LOSS(kKlOfLogs, "kl_log", kernels::KlDivergenceOfLogs())

#define YOKE_PAIR_LOSS_KIND(kind, name, functor) kind,
enum class PairLoss { YOKE_PAIR_LOSSES(YOKE_PAIR_LOSS_KIND) kNone };
#undef YOKE_PAIR_LOSS_KIND

// Returns the loss with this name, or kNone if no loss has this name.
inline PairLoss pair_loss_named(const char *name)
{
#define YOKE_PAIR_LOSS_NAME(kind, text, functor) text,
    static const char *const names[] = {YOKE_PAIR_LOSSES(YOKE_PAIR_LOSS_NAME)};
#undef YOKE_PAIR_LOSS_NAME
    int kind = 0;
    while (kind < (int)PairLoss::kNone && strcmp(name, names[kind]) != 0) kind++;
    return (PairLoss)kind;
}

// Defines the case of a kind in a switch: returns f(functor).
#define YOKE_PAIR_LOSS_CASE(kind, name, functor) \
    case kernels::PairLoss::kind:                \
        return f(functor);

YOKE_KERNELS_END
