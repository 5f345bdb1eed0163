// Softmax and what is built on it: one state of a row, from which softmax, log_softmax and cross
// entropy follow.
//
// Contract
//  * C is the computing type, float or double. Subtracting the row's maximum first keeps exp from
//    overflowing.
//  * A row with NaN or +infinity, and a row of nothing but -infinity, gives NaN throughout; a
//    single -infinity gives probability 0.
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

// ---- passes over a dense row that is in the cache -----------------------------------------------
//
// Four vectors of lanes hide the latency of an addition. They are joined by halving, blocks of rows
// in order and in double: the error of a sum does not grow with the row.

inline constexpr int kRowLanes = 64;
inline constexpr int kRowGroup = 16;  // what is left over goes by this many
inline constexpr int64_t kRowBlock = 4096;

// Joins `width` lanes, a power of two, by halving.
template <int kWidth, class C, class F>
YOKE_HD C join_lanes(C *lanes, const F &f)
{
    for (int half = kWidth / 2; half > 0; half /= 2)
        for (int lane = 0; lane < half; ++lane) lanes[lane] = f(lanes[lane], lanes[lane + half]);
    return lanes[0];
}

// Short rows never use the lanes beyond a group.
template <class C, class F>
YOKE_HD C join_lanes_of(int64_t n, C *lanes, const F &f)
{
    return n < kRowLanes ? join_lanes<kRowGroup>(lanes, f) : join_lanes<kRowLanes>(lanes, f);
}

struct Larger {
    template <class C>
    YOKE_HD C operator()(C a, C b) const
    {
        return select(b > a, b, a);
    }
};

// The largest element that is not NaN; -infinity of nothing.
template <class C>
YOKE_HD C row_max(const C *x, int64_t n)
{
    constexpr Larger larger;
    C lanes[kRowLanes];
    for (int lane = 0; lane < kRowLanes; ++lane) lanes[lane] = -(C)kInfinity;
    int64_t i = 0;
    for (; i + kRowLanes <= n; i += kRowLanes) {
        YOKE_LANES
        for (int lane = 0; lane < kRowLanes; ++lane) lanes[lane] = larger(lanes[lane], x[i + lane]);
    }
    for (; i + kRowGroup <= n; i += kRowGroup) {
        YOKE_LANES
        for (int lane = 0; lane < kRowGroup; ++lane) lanes[lane] = larger(lanes[lane], x[i + lane]);
    }
    C top = n < kRowGroup ? -(C)kInfinity : join_lanes_of(n, lanes, larger);
    for (; i < n; ++i) top = larger(top, x[i]);
    return top;
}

// The sum of f(i) for i below n.
template <class C, class F>
YOKE_HD C row_sum(int64_t n, const F &f)
{
    double total = 0;
    for (int64_t begin = 0; begin < n; begin += kRowBlock) {
        int64_t end = n - begin < kRowBlock ? n : begin + kRowBlock;
        C lanes[kRowLanes];
        for (int lane = 0; lane < kRowLanes; ++lane) lanes[lane] = (C)0;
        int64_t i = begin;
        for (; i + kRowLanes <= end; i += kRowLanes) {
            YOKE_LANES
            for (int lane = 0; lane < kRowLanes; ++lane) lanes[lane] += f(i + lane);
        }
        for (int lane = 0; i < end; ++i, lane = (lane + 1) % kRowGroup) lanes[lane] += f(i);
        total += (double)join_lanes_of(n, lanes, Add());
    }
    return (C)total;
}

// exp(x - shift), added to lanes, and kept in `out` where kKeep.
template <int kWidth, bool kKeep, class C>
YOKE_HD void exp_lanes(const C *x, C shift, C *out, C *lanes)
{
    YOKE_LANES_IN_PLACE
    for (int lane = 0; lane < kWidth; ++lane) {
        C e = kernels::exp_not_large(x[lane] - shift);
        if constexpr (kKeep) out[lane] = e;
        lanes[lane] += e;
    }
}

struct Nothing {
    YOKE_HD void operator()(int64_t) const {}
};

// The sum of exp(x[i] - shift), where shift is not less than any x; the terms go to `out` where
// kKeep, which may be x itself. The last few elements are made a full group: exp one at a time would
// cost more than all the rest of a short row. ahead(i) is called before each step of kRowLanes.
template <bool kKeep, class C, class Ahead = Nothing>
YOKE_HD C row_sum_exp(const C *x, int64_t n, C shift, C *out, const Ahead &ahead = {})
{
    double total = 0;
    for (int64_t begin = 0; begin < n; begin += kRowBlock) {
        int64_t end = n - begin < kRowBlock ? n : begin + kRowBlock;
        C lanes[kRowLanes];
        for (int lane = 0; lane < kRowLanes; ++lane) lanes[lane] = (C)0;
        int64_t i = begin;
        for (; i + kRowLanes <= end; i += kRowLanes) {
            ahead(i);
            exp_lanes<kRowLanes, kKeep>(x + i, shift, kKeep ? out + i : out, lanes);
        }
        for (; i + kRowGroup <= end; i += kRowGroup)
            exp_lanes<kRowGroup, kKeep>(x + i, shift, kKeep ? out + i : out, lanes);
        if (int rest = (int)(end - i)) {
            C group[kRowGroup];
            for (int lane = 0; lane < kRowGroup; ++lane) group[lane] = -(C)kInfinity;
            for (int lane = 0; lane < rest; ++lane) group[lane] = x[i + lane];
            exp_lanes<kRowGroup, true>(group, shift, group, lanes);
            if constexpr (kKeep)
                for (int lane = 0; lane < rest; ++lane) out[i + lane] = group[lane];
        }
        total += (double)join_lanes_of(n, lanes, Add());
    }
    return (C)total;
}

// For reduce_span: the second pass over a row of any stride and dtype.
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

// A row's state in two passes, both of which vectorise: on a CPU faster than one pass with two exp
// an element.
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
    return g - kernels::exp_not_large(out) * sum;
}

// For one logit: g is the loss's gradient, already divided by the rows where the mean was taken.
template <class C>
YOKE_HD C cross_entropy_backward(C g, C probability, bool is_target)
{
    return g * (probability - select(is_target, (C)1, (C)0));
}

YOKE_KERNELS_END
