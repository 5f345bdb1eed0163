// Reductions with two passes over their elements: variance, and the logarithm of a sum of exponentials.
//
// Contract
//  * A two-pass op first reduces to a centre (mean or maximum). Then it adds two functions of x and the centre. Both
//    passes go over one chunk (or block of rows) while the chunk is in the cache. Then states of chunks are combined.
//  * first_init, first: the first pass; `first` also joins two results of this pass. centre(first, n): the centre of
//    n elements. second_a, second_b: the terms of the second pass. state(n, first, a, b): the state from all sums.
//    kHasSecondB: whether second_b is more than 0.
//  * Moments combine in double (T. F. Chan, G. H. Golub, R. J. LeVeque, "Updating formulae and a pairwise algorithm
//    for computing sample variances", 1979). A chunk's mean need not be exact: the sum of the deviations corrects the
//    mean.
//  * An op may doubt its plain sums: is_doubtful(n, a, b). Then careful(n, at) gives the state instead; at(i) is
//    element i. An op may have of_constant(n, x), as in reduce.h.
//  * Without elements, the variance is NaN and logsumexp is -infinity. A row with only -infinity gives -infinity too.
//    A row with +infinity (and no NaN) gives +infinity.
#pragma once

#include "kernels/common/reduce.h"

YOKE_KERNELS_BEGIN

// Returns the state of n elements from the sums of both passes. If the op doubts the sums, computes the state by
// element.
template <class Op, class C, class At>
YOKE_HD typename Op::State two_pass_state(const Op &op, int64_t n, C first, C a, C b, const At &at)
{
    if constexpr (requires { op.careful(n, at); })
        if (op.is_doubtful(n, a, b)) return op.careful(n, at);
    return op.state(n, first, a, b);
}

// Reduces one chunk by any two-pass op. In both passes, element i goes to part i % 16; parts are joined by halving.
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
    return two_pass_state(op, n, first[0], a[0], b[0], [=](int64_t i) { return x[i * stride]; });
}

// Count, mean, and sum of squared deviations from the mean. The deviations were multiplied by `scale`.
template <class C>
struct MomentsState {
    double count;
    double mean;
    double squares;
    static constexpr double scale = 1;  // double holds the squares of all floats
};
template <>
struct MomentsState<double> {
    double count;
    double mean;
    double squares;
    double scale;
};

// Contract
//  * Plain sums of squares in C are used if they neither overflow, nor vanish, nor consist of the mean's rounding
//    error. Otherwise the first element is subtracted from all elements, in double. So equal elements have squares of
//    exactly 0.
//  * If squares of doubles overflow or vanish, the scale is kShrinking or kStretching; else 1. A state of scale 1 has
//    squares of at least kLeastSquares.
template <class T>
struct Moments {
    using C = compute_type<T>;
    using State = MomentsState<C>;
    static constexpr bool kHasSecondB = true;
    static constexpr bool kIsScaled = sizeof(C) == 8;
    static constexpr double kShrinking = 0x1p-600, kStretching = 0x1p600;
    static constexpr double kLeastSquares = kIsScaled ? 0x1p-900 : 0x1p-100;

    YOKE_HD static State state_of(double count, double mean, double squares, double scale)
    {
        if constexpr (kIsScaled)
            return {count, mean, squares, scale};
        else
            return {count, mean, squares};
    }
    YOKE_HD State init() const { return state_of(0, 0, 0, 1); }
    YOKE_HD State combine(State s, State t) const
    {
        if constexpr (kIsScaled) {
            if (s.count == 0) return t;
            if (t.count == 0) return s;
            double scale = select(s.scale < t.scale, s.scale, t.scale);
            State joined = joined_at(scale, s, t);
            while (!(joined.squares < (double)kInfinity) && scale > kShrinking)
                joined = joined_at(scale *= kShrinking, s, t);
            return joined;
        } else {
            double count = s.count + t.count;
            double part = t.count / select(count > 0, count, 1.0);
            double delta = t.mean - s.mean;
            return {count, s.mean + delta * part,
                    s.squares + t.squares + delta * delta * (s.count * part)};
        }
    }
    template <class X>
    YOKE_HD State chunk(const X *x, int64_t stride, int64_t n) const
    {
        return two_pass_chunk(*this, x, stride, n);
    }
    // Returns the squares divided by the count less `correction`. If this divisor is not above 0, returns NaN or
    // infinity.
    YOKE_HD double variance(State s, double correction) const
    {
        return scaled_variance(s, correction) / s.scale / s.scale;
    }
    YOKE_HD double deviation(State s, double correction) const
    {
        return __builtin_sqrt(scaled_variance(s, correction)) / s.scale;
    }

    YOKE_HD double mean(State s) const { return s.mean; }

    YOKE_HD C first_init() const { return (C)0; }
    YOKE_HD C first(C s, C x) const { return s + x; }
    YOKE_HD C centre(C sum, int64_t n) const { return sum / (C)n; }
    YOKE_HD C second_a(C x, C centre) const { return x - centre; }
    YOKE_HD C second_b(C x, C centre) const { return (x - centre) * (x - centre); }
    // `share` is the least part of the squares that must be about the mean: the rest is lost digits.
    YOKE_HD bool is_doubtful(int64_t n, C deviations, C squares, double share = 0.5) const
    {
        const double about_mean = about(n, deviations, squares);
        return !(about_mean >= kLeastSquares && about_mean >= share * (double)squares &&
                 squares < (C)kInfinity);
    }
    YOKE_HD State state(int64_t n, C sum, C deviations, C squares) const
    {
        return plain_state(n, centre(sum, n), deviations, squares);
    }
    // Makes a state of plain sums about a centre that are not in doubt.
    YOKE_HD static State plain_state(int64_t n, C centre, C deviations, C squares)
    {
        const double shift = (double)deviations * (1 / (double)n);
        return state_of((double)n, (double)centre + shift, about(n, deviations, squares), 1);
    }
    YOKE_HD static State of_constant(int64_t n, C x)
    {
        return state_of((double)n, (double)x, 0, kStretching);
    }
    template <class At>
    YOKE_HD State careful(int64_t n, const At &at) const
    {
        return careful(n, at, n);
    }
    // Returns the state of the first n of `capacity` elements, computed in double. `capacity` is n or a larger
    // constant: a device unrolls loops of constant length.
    template <class At>
    YOKE_HD State careful(int64_t capacity, const At &at, int64_t n) const
    {
        if (capacity == 0) return init();
        if (is_constant(capacity, at, n)) return of_constant(n, at(0));
        double scale = 1;
        for (;;) {
            const State found = careful_at(scale, capacity, at, n);
            if (!kIsScaled || scale != 1) return found;
            if (!(found.squares < (double)kInfinity))
                scale = kShrinking;
            else if (found.squares < kLeastSquares)
                scale = kStretching;
            else
                return found;
        }
    }

private:
    // Returns squares of deviations from a centre, less the error of the centre. Multiplies by 1 / n, so loops over
    // columns share the division.
    YOKE_HD static double about(int64_t n, C deviations, C squares)
    {
        return (double)squares - (double)deviations * ((double)deviations * (1 / (double)n));
    }
    YOKE_HD static double scaled_variance(State s, double correction)
    {
        const double divisor = s.count - correction;
        return s.squares / select(divisor > 0, divisor, 0.0);
    }
    YOKE_HD static State joined_at(double scale, State s, State t)
    {
        const double count = s.count + t.count, part = t.count / count;
        const double of_s = scale / s.scale, of_t = scale / t.scale;
        // Two means may be further apart than the largest double; scaled down first they are not.
        const bool far = scale < 1;
        const double delta = far ? t.mean * scale - s.mean * scale : (t.mean - s.mean) * scale;
        const double mean =
            far ? (s.mean * scale + delta * part) / scale : s.mean + delta * part / scale;
        return state_of(
            count, mean,
            s.squares * of_s * of_s + t.squares * of_t * of_t + delta * delta * (s.count * part),
            scale);
    }
    template <class At>
    YOKE_HD static State careful_at(double scale, int64_t capacity, const At &at, int64_t n)
    {
        const double start = (double)at(0);
        const bool far = scale < 1;
        auto from_start = [&](int64_t i) {
            const double x = (double)at(i);
            return far ? x * scale - start * scale : (x - start) * scale;
        };
        double sum = 0, rest = 0, squares = 0;
        YOKE_UNROLL
        for (int64_t i = 0; i < capacity; ++i)
            if (i < n) sum += from_start(i);
        const double centre = sum / (double)n;
        YOKE_UNROLL
        for (int64_t i = 0; i < capacity; ++i) {
            const double deviation = i < n ? from_start(i) - centre : 0.0;
            rest += deviation;
            squares += deviation * deviation;
        }
        const double shift = rest / (double)n, offset = centre + shift;
        squares -= rest * shift;
        return state_of((double)n, far ? (start * scale + offset) / scale : start + offset / scale,
                        select(squares < 0, 0.0, squares), scale);
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

        // Returns the number subtracted before exp: the maximum, or 0 if the maximum is infinite. Otherwise
        // exp(infinity - infinity) would give NaN.
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

// Gradient g exp(x - out): softmax times g. If only -infinity was summed, the gradient is 0.
struct LogSumExpBackward {
    template <class C>
    YOKE_HD C operator()(C g, C x, C out) const
    {
        return g * kernels::exp(x - select(out == -(C)kInfinity, (C)0, out));
    }
};

// Gradient slope (x - mean). Computed in double, because a mean of many floats has more digits than a float.
struct VarBackward {
    YOKE_HD float operator()(double slope, float x, double mean) const
    {
        return (float)(slope * ((double)x - mean));
    }
    // Returns the gradient of doubles. Halves x and the mean, so their difference does not overflow.
    YOKE_HD double operator()(double slope, double x, double mean) const
    {
        return slope * (x * 0.5 - mean * 0.5) * 2;
    }
};

YOKE_KERNELS_END
