// Vector norms of any order p as reductions, and their gradient.
//
// Contract
//  * p = 0 counts the elements other than 0. Infinity and -infinity give the largest and the least magnitude. Any
//    other p gives (sum |x|^p)^(1/p). NaN passes through.
//  * Powers are added in the computing type. If the powers of a chunk leave this type's range, or come near its end,
//    |x| is first divided by the chunk's largest magnitude (for p < 0 by the least).
//  * The gradient is 0 where the norm is 0 (a subgradient), and where x is 0.
#pragma once

#include "kernels/common/reduce.h"

YOKE_KERNELS_BEGIN

template <class C>
YOKE_HD C magnitude(C x)
{
    return select(x < (C)0, -x, x + (C)0);  // + 0: -0 becomes 0
}

// Returns size^p for size >= 0 and any p but 0. log(0) is -infinity, so 0 gives 0, or infinity for p < 0.
template <class C>
YOKE_HD C raised(C size, C p)
{
    return kernels::exp(p * kernels::log(size));
}

// A sum of terms of x / scale.
struct ScaledSum {
    double scale;
    double sum;
};

// Sum of term(x), and the norm computed from the sum.
template <class T, class Order>
struct SumNorm {
    using Part = compute_type<T>;
    using State = ScaledSum;
    // Within these a few thousand terms are added without a loss.
    static constexpr Part kLeast = sizeof(Part) == 4 ? (Part)0x1p-100 : (Part)0x1p-900;
    Order order;

    YOKE_HD State init() const { return {1, 0}; }
    YOKE_HD State combine(State a, State b) const
    {
        if constexpr (Order::kRaises)
            if (a.scale != b.scale) return combine_scaled(a, b);
        return combine_plain(a, b);
    }
    YOKE_HD bool is_plain(State s) const { return s.scale == 1; }
    YOKE_HD State combine_plain(State a, State b) const { return {a.scale, a.sum + b.sum}; }
    YOKE_HD double project(State s, int64_t) const { return s.scale * order.root(s.sum); }

    YOKE_HD Part part_init() const { return (Part)0; }
    YOKE_HD Part part(Part p, Part x) const { return p + order.term(x); }
    YOKE_HD Part join(Part p, Part q) const { return p + q; }
    YOKE_HD bool is_doubtful(Part p) const
    {
        if constexpr (Order::kRaises)
            return !((p >= kLeast) & (p <= 1 / kLeast));
        else
            return !(p < (Part)kInfinity);
    }
    YOKE_HD State state(Part p) const { return {1, (double)p}; }
    YOKE_HD State of_constant(int64_t n, Part x) const
    {
        const double size = (double)magnitude(x);
        if (Order::kRaises && size > 0) return {size, (double)n};
        return {1, (double)n * order.term(size)};
    }
    template <class At>
    YOKE_HD State careful(int64_t n, const At &at) const
    {
        if (n == 0) return init();
        if (is_constant(n, at, n)) return of_constant(n, (Part)at(0));
        double scale = 1;
        if constexpr (Order::kRaises) scale = leading(n, at);
        scale = select((scale > 0) & (scale < (double)kInfinity), scale, 1.0);
        double sum = 0;
        YOKE_UNROLL
        for (int64_t i = 0; i < n; ++i) sum += scaled_term((double)at(i), scale);
        return {scale, sum};
    }

private:
    // Returns the term of x / scale. A backend's order may have a function for it.
    YOKE_HD double scaled_term(double x, double scale) const
    {
        if constexpr (requires { order.scaled_term(x, scale); })
            return order.scaled_term(x, scale);
        else
            return order.term(x / scale);
    }
    YOKE_HD State combine_scaled(State a, State b) const
    {
        if (!((a.sum < (double)kInfinity) & (b.sum < (double)kInfinity))) return {1, a.sum + b.sum};
        const bool is_a = b.sum == 0 || (a.sum != 0 && order.leads(a.scale, b.scale));
        const State more = is_a ? a : b, less = is_a ? b : a;
        if (less.sum == 0) return more;
        return {more.scale, more.sum + less.sum * scaled_term(less.scale, more.scale)};
    }
    template <class At>
    YOKE_HD double leading(int64_t n, const At &at) const
    {
        double found = magnitude((double)at(0));
        YOKE_UNROLL
        for (int64_t i = 1; i < n; ++i) {
            const double size = magnitude((double)at(i));
            found = select(order.leads(size, found), size, found);
        }
        return found;
    }
};

struct OrderZero {
    static constexpr bool kRaises = false;
    template <class C>
    YOKE_HD C term(C x) const
    {
        return select(x != (C)0, (C)1, (C)0);
    }
    YOKE_HD double root(double s) const { return s; }
};

struct OrderOne {
    static constexpr bool kRaises = false;
    template <class C>
    YOKE_HD C term(C x) const
    {
        return magnitude(x);
    }
    YOKE_HD double root(double s) const { return s; }
};

// The squares. Orders that raise x to a power have leads(a, b): whether a counts for more than b.
struct OrderTwo {
    static constexpr bool kRaises = true;
    YOKE_HD bool leads(double a, double b) const { return a > b; }
    template <class C>
    YOKE_HD C term(C x) const
    {
        return x * x;
    }
    YOKE_HD double root(double s) const { return __builtin_sqrt(s); }
};

struct OrderAny {
    static constexpr bool kRaises = true;
    double p;

    YOKE_HD bool leads(double a, double b) const { return p < 0 ? a < b : a > b; }
    template <class C>
    YOKE_HD C term(C x) const
    {
        return raised(magnitude(x), (C)p);
    }
    YOKE_HD double root(double s) const { return raised(s, 1 / p); }
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

// The norm of many tensors, of an order p above 0, from sums of their parts.
struct TotalNorm {
    double p;

    YOKE_HD bool is_max() const { return p == (double)kInfinity; }
    // Returns the sum of a single term: `power`, the power of a magnitude `size`. If the power lies outside a
    // double's range, `size` becomes the scale, and the sum is 1.
    YOKE_HD ScaledSum term(double size, double power) const
    {
        const bool fits = (power >= 0x1p-900) & (power <= 0x1p900);
        return (fits | (size == 0)) ? ScaledSum{1, power} : ScaledSum{size, 1};
    }
    YOKE_HD ScaledSum combine(ScaledSum a, ScaledSum b) const
    {
        if (is_max()) return {1, Amax<double>().combine(a.sum, b.sum)};
        if (a.scale == b.scale) return {a.scale, a.sum + b.sum};
        if (p == 2) return SumNorm<double, OrderTwo>{}.combine(a, b);
        return SumNorm<double, OrderAny>{{p}}.combine(a, b);
    }
    YOKE_HD double project(ScaledSum s) const
    {
        if (is_max() | (p == 1)) return s.sum;
        if (p == 2) return SumNorm<double, OrderTwo>{}.project(s, 0);
        return SumNorm<double, OrderAny>{{p}}.project(s, 0);
    }
};

// Gradient sign(x) (|x| / norm)^(p - 1) g for finite p. The ratio keeps the power from overflowing.
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
