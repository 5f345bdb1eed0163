// Reductions that look at their elements twice: variance, and the logarithm of a sum of exponentials.
//
// Contract
//  * A two-pass op first reduces to a centre (mean, or maximum), then adds two functions of x and
//    the centre. Both passes go over one chunk (or block of rows), while it is in the cache; states
//    of chunks are combined.
//  * first_init, first: the first pass, also of two results of it. centre(first, n) from the result
//    over n elements. second_a, second_b: the terms of the second pass. state(n, first, a, b):
//    what they amount to. kHasSecondB: whether second_b is more than 0.
//  * Moments combine in double (T. F. Chan, G. H. Golub, R. J. LeVeque, "Updating formulae and a
//    pairwise algorithm for computing sample variances", 1979). A chunk's mean need not be exact:
//    what the deviations add up to corrects it.
//  * Of nothing, the variance is NaN and logsumexp is -infinity; a row of nothing but -infinity
//    gives -infinity too, one with +infinity (and no NaN) +infinity.
#pragma once

#include "kernels/common/reduce.h"

YOKE_KERNELS_BEGIN

// One chunk by any two-pass op: part i % 16 in both passes, parts joined by halving.
template <class Op, class C>
YOKE_HD typename Op::State two_pass_chunk(const Op &op, const C *x, int64_t stride, int64_t n)
{
    C first[kReduceParts], a[kReduceParts], b[kReduceParts];
    for (int part = 0; part < kReduceParts; ++part) first[part] = op.first_init();
    for (int part = 0; part < kReduceParts; ++part) a[part] = b[part] = (C)0;
    int64_t whole = n - n % kReduceParts;
    for (int64_t i = 0; i < whole; i += kReduceParts) {
        YOKE_PARTS
        for (int part = 0; part < kReduceParts; ++part)
            first[part] = op.first(first[part], x[(i + part) * stride]);
    }
    for (int64_t i = whole; i < n; ++i)
        first[i - whole] = op.first(first[i - whole], x[i * stride]);
    for (int half = kReduceParts / 2; half > 0; half /= 2)
        for (int part = 0; part < half; ++part)
            first[part] = op.first(first[part], first[part + half]);
    const C centre = op.centre(first[0], n);
    for (int64_t i = 0; i < whole; i += kReduceParts) {
        YOKE_PARTS
        for (int part = 0; part < kReduceParts; ++part) {
            a[part] += op.second_a(x[(i + part) * stride], centre);
            b[part] += op.second_b(x[(i + part) * stride], centre);
        }
    }
    for (int64_t i = whole; i < n; ++i) {
        a[i - whole] += op.second_a(x[i * stride], centre);
        b[i - whole] += op.second_b(x[i * stride], centre);
    }
    for (int half = kReduceParts / 2; half > 0; half /= 2) {
        for (int part = 0; part < half; ++part) {
            a[part] += a[part + half];
            b[part] += b[part + half];
        }
    }
    return op.state(n, first[0], a[0], b[0]);
}

// The count, the mean and the sum of squared deviations from it.
template <class T>
struct Moments {
    using C = compute_type<T>;
    static constexpr bool kHasSecondB = true;
    struct State {
        double count;
        double mean;
        double squares;
    };

    YOKE_HD State init() const { return {0, 0, 0}; }
    YOKE_HD State combine(State s, State t) const
    {
        double count = s.count + t.count;
        double part = t.count / select(count > 0, count, 1.0);
        double delta = t.mean - s.mean;
        return {count, s.mean + delta * part,
                s.squares + t.squares + delta * delta * (s.count * part)};
    }
    template <class X>
    YOKE_HD State chunk(const X *x, int64_t stride, int64_t n) const
    {
        return two_pass_chunk(*this, x, stride, n);
    }
    // Divided by what is left of the count: NaN or infinity if that is nothing.
    YOKE_HD double variance(State s, double correction) const
    {
        double divisor = s.count - correction;
        return s.squares / select(divisor > 0, divisor, 0.0);
    }

    YOKE_HD C first_init() const { return (C)0; }
    YOKE_HD C first(C s, C x) const { return s + x; }
    YOKE_HD C centre(C sum, int64_t n) const { return sum / (C)n; }
    YOKE_HD C second_a(C x, C centre) const { return x - centre; }
    YOKE_HD C second_b(C x, C centre) const { return (x - centre) * (x - centre); }
    YOKE_HD State state(int64_t n, C sum, C deviations, C squares) const
    {
        double shift = (double)deviations / (double)n;
        return {(double)n, (double)centre(sum, n) + shift,
                (double)squares - (double)deviations * shift};
    }
};

// The maximum, and the sum of exp(x - shift()).
template <class T>
struct LogSumExp {
    using C = compute_type<T>;
    static constexpr bool kHasSecondB = false;
    struct State {
        C max;
        C sum;

        // exp(infinity - infinity) would be NaN: an infinite maximum is not subtracted.
        YOKE_HD C shift() const { return LogSumExp().centre(max, 0); }
    };

    YOKE_HD State init() const { return {-(C)kInfinity, (C)0}; }
    YOKE_HD State combine(State s, State t) const
    {
        State r{first(s.max, t.max), (C)0};
        C shift = r.shift();
        r.sum = s.sum * kernels::exp(s.max - shift) + t.sum * kernels::exp(t.max - shift);
        return r;
    }
    template <class X>
    YOKE_HD State chunk(const X *x, int64_t stride, int64_t n) const
    {
        return two_pass_chunk(*this, x, stride, n);
    }
    YOKE_HD C project(State s, int64_t) const { return kernels::log(s.sum) + s.shift(); }

    YOKE_HD C first_init() const { return -(C)kInfinity; }
    YOKE_HD C first(C s, C x) const { return Amax<C>().combine(s, x); }
    YOKE_HD C centre(C max, int64_t) const
    {
        return select((max == -(C)kInfinity) | (max == (C)kInfinity), (C)0, max);
    }
    YOKE_HD C second_a(C x, C centre) const { return kernels::exp(x - centre); }
    YOKE_HD C second_b(C, C) const { return (C)0; }
    YOKE_HD State state(int64_t, C max, C sum, C) const { return {max, sum}; }
};

// g exp(x - out): softmax, times the gradient; 0 where nothing but -infinity was summed.
struct LogSumExpBackward {
    template <class C>
    YOKE_HD C operator()(C g, C x, C out) const
    {
        return g * kernels::exp(x - select(out == -(C)kInfinity, (C)0, out));
    }
};

struct VarBackward {
    template <class C>
    YOKE_HD C operator()(C g, C x, C mean) const
    {
        return g * (x - mean);
    }
};

YOKE_KERNELS_END
