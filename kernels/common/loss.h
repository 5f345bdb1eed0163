// Softmax and what is built on it: one state of a row, from which softmax, log_softmax and cross
// entropy follow.
//
// Contract
//  * C is the computing type, float or double. Subtracting the row's maximum first keeps exp from
//    overflowing.
//  * A row with NaN or +infinity, and a row of nothing but -infinity, gives NaN throughout; a
//    single -infinity gives probability 0.
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

    // exp(-infinity - -infinity) would be NaN; while nothing finite was seen, 0 stands for the
    // maximum.
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
    // -log softmax of the true class.
    YOKE_HD C cross_entropy(C x_target) const { return kernels::log(sum) - (x_target - max); }
};

// For reduce_span: the second pass over a row whose maximum is known.
template <class T>
struct SumExp {
    using State = compute_type<T>;
    State shift;

    YOKE_HD State init() const { return (State)0; }
    YOKE_HD State reduce(State s, State x, int64_t) const { return s + kernels::exp(x - shift); }
    YOKE_HD State combine(State a, State b) const { return a + b; }
};

// A row's state in two passes, both of which vectorise: on a CPU faster than one pass with two exp
// an element.
template <class T>
YOKE_HD SoftmaxState<compute_type<T>> softmax_state(const T *x, int64_t stride, int64_t n)
{
    SoftmaxState<compute_type<T>> s = SoftmaxState<compute_type<T>>::init();
    s.max = reduce_span(Amax<T>(), x, stride, n);
    s.sum = reduce_span(SumExp<T>{s.shift()}, x, stride, n);
    return s;
}

// ---- backward -----------------------------------------------------------------------------------

// dot is the row's sum of g * out.
template <class C>
YOKE_HD C softmax_backward(C g, C out, C dot)
{
    return (g - dot) * out;
}

// sum is the row's sum of g.
template <class C>
YOKE_HD C log_softmax_backward(C g, C out, C sum)
{
    return g - kernels::exp(out) * sum;
}

// For one logit: g is the loss's gradient, already divided by the rows where the mean was taken.
template <class C>
YOKE_HD C cross_entropy_backward(C g, C probability, bool is_target)
{
    return g * (probability - select(is_target, (C)1, (C)0));
}

YOKE_KERNELS_END
