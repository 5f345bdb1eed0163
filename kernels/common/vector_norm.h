// Vector norms of any order p as reductions, and their gradient.
//
// Contract
//  * p = 0 counts what is not 0; infinity and -infinity give the largest and the least magnitude;
//    any other p gives (sum |x|^p)^(1/p). NaN passes through. Nothing is scaled first: |x|^p must
//    fit into the computing type, as everywhere else.
//  * The gradient is 0 where the norm is 0 (a subgradient), and where x is 0.
#pragma once

#include "kernels/common/reduce.h"

YOKE_KERNELS_BEGIN

template <class C>
YOKE_HD C magnitude(C x)
{
    return select(x < (C)0, -x, x + (C)0);  // + 0: -0 becomes 0
}

YOKE_HD float square_root(float x)
{
    return __builtin_sqrtf(x);
}

YOKE_HD double square_root(double x)
{
    return __builtin_sqrt(x);
}

// size^p for size >= 0 and any p but 0. log(0) is -infinity, so 0 gives 0, or infinity for p < 0.
template <class C>
YOKE_HD C raised(C size, C p)
{
    return kernels::exp(p * kernels::log(size));
}

// A sum of term(x), and what becomes of it.
template <class T, class Order>
struct SumNorm {
    using State = compute_type<T>;
    Order order;

    YOKE_HD State init() const { return (State)0; }
    YOKE_HD State reduce(State s, State x, int64_t) const { return s + order.term(x); }
    YOKE_HD State combine(State a, State b) const { return a + b; }
    YOKE_HD State project(State s, int64_t) const { return order.root(s); }
};

struct OrderZero {
    template <class C>
    YOKE_HD C term(C x) const
    {
        return select(x != (C)0, (C)1, (C)0);
    }
    template <class C>
    YOKE_HD C root(C s) const
    {
        return s;
    }
};

struct OrderOne {
    template <class C>
    YOKE_HD C term(C x) const
    {
        return magnitude(x);
    }
    template <class C>
    YOKE_HD C root(C s) const
    {
        return s;
    }
};

struct OrderTwo {
    template <class C>
    YOKE_HD C term(C x) const
    {
        return x * x;
    }
    template <class C>
    YOKE_HD C root(C s) const
    {
        return square_root(s);
    }
};

struct OrderAny {
    double p;

    template <class C>
    YOKE_HD C term(C x) const
    {
        return raised(magnitude(x), (C)p);
    }
    template <class C>
    YOKE_HD C root(C s) const
    {
        return raised(s, (C)(1 / p));
    }
};

// The largest (or least) magnitude, by Amax (or Amin).
template <class T, template <class> class Extreme>
struct ExtremeNorm : Extreme<T> {
    using State = compute_type<T>;

    YOKE_HD State init() const
    {
        return select(Extreme<T>().init() > (State)0, (State)kInfinity, (State)0);
    }
    YOKE_HD State reduce(State s, State x, int64_t) const { return this->combine(s, magnitude(x)); }
};

// sign(x) (|x| / norm)^(p - 1) g for finite p: a ratio, so that nothing overflows.
struct NormBackward {
    double p;

    template <class C>
    YOKE_HD C operator()(C g, C x, C norm) const
    {
        C ratio = magnitude(x) / norm;
        C power = select(p == 2, ratio, select(p == 1, (C)1, raised(ratio, (C)(p - 1))));
        C slope = select(x < (C)0, -power, power) * g;
        return select((x == (C)0) | (norm == (C)0) | (p == 0), (C)0, slope);
    }
};

YOKE_KERNELS_END
