// Softmax, log_softmax and cross entropy, all computed from one state of a row.
//
// Contract
//  * C is the computing type, float or double. The row's maximum is subtracted first, so exp does not overflow.
//  * A row with NaN or +infinity, and a row with only -infinity, gives NaN throughout. A single -infinity gives
//    probability 0.
//  * A NaN may be missing in a state's maximum, never in its sum.
#pragma once

#include "kernels/common/reduce.h"

YOKE_KERNELS_BEGIN

// The row's maximum and the sum of exp(x - maximum). combine and push make it in one pass (M.
// Milakov, N. Gimelshein, "Online normalizer calculation for softmax", 2018).
template <class C>
struct SoftmaxState {
    C max;
    C sum;

    YOKE_HD static SoftmaxState init() { return {-(C)kInfinity, (C)0}; }

    // Returns the number subtracted before exp: the maximum, or 0 if the maximum is -infinity. Otherwise
    // exp(-infinity - -infinity) would give NaN.
    YOKE_HD C shift() const { return select(max == -(C)kInfinity, (C)0, max); }

    YOKE_HD static SoftmaxState combine(SoftmaxState a, SoftmaxState b)
    {
        SoftmaxState s{select(a.max < b.max, b.max, a.max), (C)0};
        s.sum = a.sum * kernels::exp(a.max - s.shift()) + b.sum * kernels::exp(b.max - s.shift());
        return s;
    }

    YOKE_HD void push(C x) { *this = combine(*this, {x, (C)1}); }

    YOKE_HD C softmax(C x) const { return kernels::exp(x - max) / sum; }
    YOKE_HD C log_softmax(C x) const { return (x - max) - kernels::log(sum); }
    // Returns -log softmax of the true class, whose logit is x_target.
    YOKE_HD C cross_entropy(C x_target) const { return kernels::log(sum) - (x_target - max); }
};

// ---- passes over a dense row that is in the cache -----------------------------------------------
//
// Four vectors of parts hide the latency of an addition. They are joined by halving, blocks of rows
// in order and in double: the error of a sum does not grow with the row.

inline constexpr int kRowParts = 64;
inline constexpr int kRowGroup = 16;  // step of the loop over the remaining elements
inline constexpr int64_t kRowBlock = 4096;

// Joins kWidth parts, a power of two, by halving. Returns the result; overwrites the parts.
template <int kWidth, class C, class F>
YOKE_HD C join_parts(C *parts, const F &f)
{
    for (int half = kWidth / 2; half > 0; half /= 2)
        for (int part = 0; part < half; ++part) parts[part] = f(parts[part], parts[part + half]);
    return parts[0];
}

// Joins the parts of a row of n elements. If the row is shorter than kRowParts, only the first kRowGroup parts are in
// use.
template <class C, class F>
YOKE_HD C join_parts_of(int64_t n, C *parts, const F &f)
{
    return n < kRowParts ? join_parts<kRowGroup>(parts, f) : join_parts<kRowParts>(parts, f);
}

struct Larger {
    template <class C>
    YOKE_HD C operator()(C a, C b) const
    {
#if defined(__CUDA_ARCH__)
        return ::fmax(b, a);  // an instruction, which leaves NaN out as well
#else
        return select(b > a, b, a);
#endif
    }
};

// Returns the largest element, ignoring NaN. If there is no such element, returns -infinity.
template <class C>
YOKE_HD C row_max(const C *x, int64_t n)
{
    constexpr Larger larger;
    C parts[kRowParts];
    for (int part = 0; part < kRowParts; ++part) parts[part] = -(C)kInfinity;
    int64_t i = 0;
    for (; i + kRowParts <= n; i += kRowParts) {
        YOKE_PARTS
        for (int part = 0; part < kRowParts; ++part) parts[part] = larger(parts[part], x[i + part]);
    }
    for (; i + kRowGroup <= n; i += kRowGroup) {
        YOKE_PARTS
        for (int part = 0; part < kRowGroup; ++part) parts[part] = larger(parts[part], x[i + part]);
    }
    C top = n < kRowGroup ? -(C)kInfinity : join_parts_of(n, parts, larger);
    for (; i < n; ++i) top = larger(top, x[i]);
    return top;
}

// Returns the sum of f(i) for i from 0 to n - 1.
template <class C, class F>
YOKE_HD C row_sum(int64_t n, const F &f)
{
    double total = 0;
    for (int64_t begin = 0; begin < n; begin += kRowBlock) {
        int64_t end = n - begin < kRowBlock ? n : begin + kRowBlock;
        C parts[kRowParts];
        for (int part = 0; part < kRowParts; ++part) parts[part] = (C)0;
        int64_t i = begin;
        for (; i + kRowParts <= end; i += kRowParts) {
            YOKE_PARTS
            for (int part = 0; part < kRowParts; ++part) parts[part] += f(i + part);
        }
        for (int part = 0; i < end; ++i, part = (part + 1) % kRowGroup) parts[part] += f(i);
        total += (double)join_parts_of(n, parts, Add());
    }
    return (C)total;
}

// Adds exp(x - shift) to the parts. With kKeep, also writes these terms to `out`.
template <int kWidth, bool kKeep, class C>
YOKE_HD void exp_parts(const C *x, C shift, C *out, C *parts)
{
    YOKE_PARTS_IN_PLACE
    for (int part = 0; part < kWidth; ++part) {
        C e = kernels::exp_not_large(x[part] - shift);
        if constexpr (kKeep) out[part] = e;
        parts[part] += e;
    }
}

struct Nothing {
    YOKE_HD void operator()(int64_t) const {}
};

// Returns the sum of exp(x[i] - shift); shift is not less than any x. With kKeep, also writes the terms to `out`,
// which may be x. The last few elements are computed as a full group, because exp of single elements would dominate
// the time of a short row. Calls ahead(i) before each step of kRowParts.
template <bool kKeep, class C, class Ahead = Nothing>
YOKE_HD C row_sum_exp(const C *x, int64_t n, C shift, C *out, const Ahead &ahead = {})
{
    double total = 0;
    for (int64_t begin = 0; begin < n; begin += kRowBlock) {
        int64_t end = n - begin < kRowBlock ? n : begin + kRowBlock;
        C parts[kRowParts];
        for (int part = 0; part < kRowParts; ++part) parts[part] = (C)0;
        int64_t i = begin;
        for (; i + kRowParts <= end; i += kRowParts) {
            ahead(i);
            exp_parts<kRowParts, kKeep>(x + i, shift, kKeep ? out + i : out, parts);
        }
        for (; i + kRowGroup <= end; i += kRowGroup)
            exp_parts<kRowGroup, kKeep>(x + i, shift, kKeep ? out + i : out, parts);
        if (int rest = (int)(end - i)) {
            C group[kRowGroup];
            for (int part = 0; part < kRowGroup; ++part) group[part] = -(C)kInfinity;
            for (int part = 0; part < rest; ++part) group[part] = x[i + part];
            exp_parts<kRowGroup, true>(group, shift, group, parts);
            if constexpr (kKeep)
                for (int part = 0; part < rest; ++part) out[i + part] = group[part];
        }
        total += (double)join_parts_of(n, parts, Add());
    }
    return (C)total;
}

// Op for reduce_span: the sum of exp(x - shift), as the second pass over a row of any stride and dtype.
template <class T>
struct SumExp {
    using State = compute_type<T>;
    State shift;

    YOKE_HD State init() const { return (State)0; }
    YOKE_HD State reduce(State s, State x, int64_t) const
    {
        return s + kernels::exp_not_large(x - shift);
    }
    YOKE_HD State combine(State a, State b) const { return a + b; }
};

// Computes a row's state in two passes. Both passes vectorise: on a CPU this is faster than one pass with two exp an
// element.
template <class T>
YOKE_HD SoftmaxState<compute_type<T>> softmax_state(const T *x, int64_t stride, int64_t n)
{
    using C = compute_type<T>;
    SoftmaxState<C> s = SoftmaxState<C>::init();
    if constexpr (std::is_same_v<T, C>) {
        if (stride == 1) {
            s.max = row_max(x, n);
            s.sum = row_sum_exp<false>(x, n, s.shift(), (C *)nullptr);
            return s;
        }
    }
    s.max = reduce_span(Amax<T>(), x, stride, n);
    s.sum = reduce_span(SumExp<T>{s.shift()}, x, stride, n);
    return s;
}

// ---- backward -----------------------------------------------------------------------------------

// Returns softmax's gradient for an element. `dot` is the row's sum of g * out.
template <class C>
YOKE_HD C softmax_backward(C g, C out, C dot)
{
    return (g - dot) * out;
}

// Returns log_softmax's gradient for an element. `sum` is the row's sum of g.
template <class C>
YOKE_HD C log_softmax_backward(C g, C out, C sum)
{
    return g - kernels::exp_not_large(out) * sum;
}

// Returns the gradient of a logit. g is the loss's gradient; if the loss is a mean, g is already divided by the
// number of rows.
template <class C>
YOKE_HD C cross_entropy_backward(C g, C probability, bool is_target)
{
    return g * (probability - select(is_target, (C)1, (C)0));
}

YOKE_KERNELS_END
