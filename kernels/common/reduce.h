// Reductions: sum, mean, prod, amax, amin, all, any, argmax, each as {init, reduce, combine,
// project}, and the one order they run in. moments.h and vector_norm.h have more of them.
//
// Contract
//  * Integers and bool are added in int64, and wrap. For f16, bf16 and f32, a chunk's sum or product is computed in
//    float, and chunks are joined in double. Extremes are computed in float, for f64 in double.
//  * reduce(state, x, i) adds the loaded element i to the state. combine(a, b) joins neighbouring states, a before b.
//    project(state, n) returns the result over n elements, in the accumulating type.
//  * reduce_span always adds in the same order: 16 parts within chunks of 1024, parts by halving, chunks by pairs. So
//    bits do not depend on the ISA, and the error of a sum grows with 64 + log n, not with n.
//  * If an element is NaN, amax and amin return NaN, and argmax returns the index of the first NaN. NaN counts as true.
//    Among equal values, argmax returns the first index.
//  * Without elements, sum is 0, prod is 1, mean is NaN, all is true and any is false. amax is then the lowest value,
//    and amin the highest. The op of argmax refuses an input without elements.
//  * An op may have chunk(x, stride, n), which returns the state of loaded elements. reduce_chunk() calls it instead
//    of adding parts. Ops that read a chunk twice, or compute it faster, have this function.
//  * An op may have a Part, which is smaller than its State, with part_init(), part(p, x) and join(p, q). state(p)
//    converts a Part to a State. If is_doubtful(p) is true, p has left its range. Then careful(n, at) returns the
//    state of the n elements at(0) to at(n - 1).
//  * An op with a slow careful() may have of_constant(n, x). It returns the state of n elements that all equal the
//    finite number x.
//  * An op whose combine() branches may have is_plain(state) and combine_plain(a, b), which needs two plain states.
//    state(p) is always plain.
#pragma once

#include "kernels/common/elementwise.h"
#include "kernels/common/span.h"

YOKE_KERNELS_BEGIN

template <class T>
using sum_type = std::conditional_t<is_float<T>, compute_type<T>, int64_t>;

// Returns -infinity, or the least integer.
template <class T>
YOKE_HD T lowest_value()
{
    if constexpr (is_float<T>)
        return -(T)kInfinity;
    else if constexpr (std::is_signed_v<T>)
        return (T)((uint64_t)1 << (sizeof(T) * 8 - 1));
    else
        return (T)0;
}

template <class T>
YOKE_HD T highest_value()
{
    if constexpr (is_float<T>)
        return (T)kInfinity;
    else
        return (T)(-1 - (int64_t)lowest_value<T>());  // its complement
}

// An op that has a Part.
template <class Op>
concept HasParts = requires
{
    typename Op::Part;
};

// Returns the state of n elements, from the joined `part`. If the op doubts the part, computes the state by
// op.careful().
template <class Op, class At>
YOKE_HD typename Op::State parts_state(const Op &op, int64_t n, typename Op::Part part,
                                       const At &at)
{
    return op.is_doubtful(part) ? op.careful(n, at) : op.state(part);
}

template <class T>
struct IntegerSum {
    using State = sum_type<T>;

    YOKE_HD State init() const { return (State)0; }
    YOKE_HD State reduce(State s, compute_type<T> x, int64_t) const
    {
        return Add()(s, convert<State>(x));
    }
    YOKE_HD State combine(State a, State b) const { return Add()(a, b); }
    YOKE_HD State project(State s, int64_t) const { return s; }
    YOKE_HD double mean(State s, double n) const { return (double)s / n; }
};

// Sum that is correct whenever the result is in the dtype's range, even if an intermediate sum is not. A double holds
// sums of floats. Sums of doubles have a second sum, of shrunk numbers.
template <class T>
struct FloatSum {
    using Part = compute_type<T>;
    struct Wide {
        double sum;
        double shrunk;
    };
    static constexpr bool kIsWide = sizeof(Part) == 8;
    using State = std::conditional_t<kIsWide, Wide, double>;
    static constexpr double kShrinking = 0x1p-64;

    YOKE_HD State init() const { return state((Part)0); }
    YOKE_HD State combine(State a, State b) const
    {
        if constexpr (kIsWide)
            return {a.sum + b.sum, a.shrunk + b.shrunk};
        else
            return a + b;
    }
    YOKE_HD double project(State s, int64_t) const { return mean(s, 1); }
    YOKE_HD double mean(State s, double n) const
    {
        if constexpr (kIsWide)
            return s.sum - s.sum == 0 ? s.sum / n : s.shrunk / n / kShrinking;
        else
            return s / n;
    }

    YOKE_HD Part part_init() const { return (Part)0; }
    YOKE_HD Part part(Part p, Part x) const { return p + x; }
    YOKE_HD Part join(Part p, Part q) const { return p + q; }
    YOKE_HD bool is_doubtful(Part p) const { return !(p - p == (Part)0); }
    YOKE_HD State state(Part p) const
    {
        if constexpr (kIsWide)
            return {p, p * kShrinking};
        else
            return (double)p;
    }
    template <class At>
    YOKE_HD State careful(int64_t n, const At &at) const
    {
        State s = init();
        YOKE_UNROLL
        for (int64_t i = 0; i < n; ++i) s = combine(s, state(at(i)));
        return s;
    }
};

template <class T>
using Sum = std::conditional_t<is_float<T>, FloatSum<T>, IntegerSum<T>>;

template <class T>
struct Mean : Sum<T> {
    using State = typename Sum<T>::State;

    YOKE_HD double project(State s, int64_t n) const { return this->mean(s, (double)n); }
};

// Flag of 0 or 1 with as many bits as a loaded element, so flags and elements fill vectors alike.
template <class T>
using flag_type =
    std::conditional_t<sizeof(compute_type<T>) == 1, uint8_t,
                       std::conditional_t<sizeof(compute_type<T>) == 4, uint32_t, uint64_t>>;

// Returns whether n elements are the same finite number. `capacity` is n, or a larger constant: a device unrolls
// loops of constant length. at(i) is defined for i below `capacity`.
template <class At>
YOKE_HD bool is_constant(int64_t capacity, const At &at, int64_t n)
{
    const auto first = at(0);
    using Flag = flag_type<std::remove_cv_t<decltype(first)>>;
    Flag differs = 0;
    YOKE_UNROLL
    for (int64_t i = 0; i < capacity; ++i)
        differs |= select(i < n, (Flag) !(at(i) == first), (Flag)0);
    return !differs && first - first == 0;
}

template <class T>
struct All {
    using State = flag_type<T>;

    YOKE_HD State init() const { return (State)1; }
    YOKE_HD State reduce(State s, compute_type<T> x, int64_t) const
    {
        return select(x != (compute_type<T>)0, s, (State)0);
    }
    YOKE_HD State combine(State a, State b) const { return a & b; }
    YOKE_HD bool project(State s, int64_t) const { return s != 0; }
};

template <class T>
struct Any {
    using State = flag_type<T>;

    YOKE_HD State init() const { return (State)0; }
    YOKE_HD State reduce(State s, compute_type<T> x, int64_t) const
    {
        return select(x != (compute_type<T>)0, (State)1, s);
    }
    YOKE_HD State combine(State a, State b) const { return a | b; }
    YOKE_HD bool project(State s, int64_t) const { return s != 0; }
};

template <class T>
struct Amax {
    using State = compute_type<T>;

    YOKE_HD State init() const { return lowest_value<State>(); }
    YOKE_HD State reduce(State s, State x, int64_t) const { return combine(s, x); }
    // Returns the larger value, or NaN if either value is NaN. A NaN in a fails the first comparison and stays. Each
    // step needs a single comparison, so the loop vectorises.
    YOKE_HD State combine(State a, State b) const
    {
        State larger = select(b > a, b, a);
        return select(b != b, b, larger);
    }
    YOKE_HD State project(State s, int64_t) const { return s; }
};

template <class T>
struct Amin {
    using State = compute_type<T>;

    YOKE_HD State init() const { return highest_value<State>(); }
    YOKE_HD State reduce(State s, State x, int64_t) const { return combine(s, x); }
    YOKE_HD State combine(State a, State b) const
    {
        State smaller = select(b < a, b, a);
        return select(b != b, b, smaller);
    }
    YOKE_HD State project(State s, int64_t) const { return s; }
};

template <class T>
struct Argmax {
    struct State {
        compute_type<T> value;
        int64_t index;
    };

    // Returns the initial state. No index is as large as INT64_MAX. So the first element replaces the initial state
    // even if all elements are -infinity.
    YOKE_HD State init() const { return {lowest_value<compute_type<T>>(), INT64_MAX}; }
    YOKE_HD State reduce(State s, compute_type<T> x, int64_t i) const { return combine(s, {x, i}); }
    YOKE_HD State combine(State a, State b) const
    {
        bool a_nan = a.value != a.value, b_nan = b.value != b.value;
        bool tie = (a.value == b.value) | (a_nan & b_nan);
        bool greater = (b.value > a.value) | (b_nan & !a_nan);
        bool take = greater | (tie & (b.index < a.index));
        return {select(take, b.value, a.value), select(take, b.index, a.index)};
    }
    YOKE_HD int64_t project(State s, int64_t) const { return s.index; }
};

// ---- the order ----------------------------------------------------------------------------------

inline constexpr int kReduceParts = 16;
inline constexpr int64_t kReduceChunk = 1024;

// Reduces at most one chunk of elements without a buffer: element i goes to part i % 16.
template <class Op, class C>
YOKE_HD typename Op::State reduce_parts(const Op &op, const C *x, int64_t stride, int64_t first,
                                        int64_t n)
{
    typename Op::State parts[kReduceParts];
    for (int part = 0; part < kReduceParts; ++part) parts[part] = op.init();
    int64_t whole = n - n % kReduceParts;
    for (int64_t i = 0; i < whole; i += kReduceParts) {
        YOKE_PARTS
        for (int part = 0; part < kReduceParts; ++part)
            parts[part] = op.reduce(parts[part], load<C>(x[(i + part) * stride]), first + i + part);
    }
    for (int64_t i = whole; i < n; ++i)
        parts[i - whole] = op.reduce(parts[i - whole], load<C>(x[i * stride]), first + i);
    for (int half = kReduceParts / 2; half > 0; half /= 2)
        for (int part = 0; part < half; ++part)
            parts[part] = op.combine(parts[part], parts[part + half]);
    return parts[0];
}

// Reduces at most one chunk by an op with a Part: element i goes to part i % 16. If the op doubts the result,
// op.careful() computes the state.
template <class Op, class C>
YOKE_HD typename Op::State reduce_wide_parts(const Op &op, const C *x, int64_t stride, int64_t n)
{
    typename Op::Part parts[kReduceParts];
    for (int part = 0; part < kReduceParts; ++part) parts[part] = op.part_init();
    int64_t whole = n - n % kReduceParts;
    for (int64_t i = 0; i < whole; i += kReduceParts) {
        YOKE_PARTS
        for (int part = 0; part < kReduceParts; ++part)
            parts[part] = op.part(parts[part], load<C>(x[(i + part) * stride]));
    }
    for (int64_t i = whole; i < n; ++i)
        parts[i - whole] = op.part(parts[i - whole], load<C>(x[i * stride]));
    for (int half = kReduceParts / 2; half > 0; half /= 2)
        for (int part = 0; part < half; ++part)
            parts[part] = op.join(parts[part], parts[part + half]);
    return parts_state(op, n, parts[0], [=](int64_t i) { return load<C>(x[i * stride]); });
}

// Reduces a chunk. f16 and bf16 pass through a buffer of floats; other dtypes are read in place.
template <class Op, class T>
YOKE_HD typename Op::State reduce_chunk(const Op &op, const T *x, int64_t stride, int64_t first,
                                        int64_t n)
{
    if constexpr (!is_half<T>) {
        if constexpr (requires { op.chunk(x, stride, n); })
            return op.chunk(x, stride, n);
        else if constexpr (HasParts<Op>)
            return reduce_wide_parts(op, x, stride, n);
        else
            return reduce_parts(op, x, stride, first, n);
    } else {
        float loaded[kReduceChunk];
        if (stride == 1)
            convert_span(x, n, loaded);
        else
            for (int64_t i = 0; i < n; ++i) loaded[i] = load<T>(x[i * stride]);
        return reduce_chunk(op, (const float *)loaded, 1, first, n);
    }
}

// Reduces n elements, `stride` apart. x[0] has the index `first`, for argmax.
template <class Op, class T>
YOKE_HD typename Op::State reduce_strided(const Op &op, const T *x, int64_t stride, int64_t n,
                                          int64_t first)
{
    // Partial results of 1, 2, 4, … chunks, as the digits of a binary counter: a pairwise sum
    // without recursion.
    typename Op::State partial[64];
    int depth = 0;
    for (int64_t chunk = 0; chunk * kReduceChunk < n; ++chunk) {
        int64_t begin = chunk * kReduceChunk;
        int64_t size = n - begin < kReduceChunk ? n - begin : kReduceChunk;
        typename Op::State s = reduce_chunk(op, x + begin * stride, stride, first + begin, size);
        for (int64_t digit = chunk; digit & 1; digit >>= 1) s = op.combine(partial[--depth], s);
        partial[depth++] = s;
    }
    if (depth == 0) return op.init();
    typename Op::State s = partial[--depth];
    while (depth > 0) s = op.combine(partial[--depth], s);
    return s;
}

// Reduces a row. If the stride is 1, the compiler knows the stride, so the parts vectorise.
template <class Op, class T>
YOKE_HD typename Op::State reduce_span(const Op &op, const T *x, int64_t stride, int64_t n,
                                       int64_t first = 0)
{
    return stride == 1 ? reduce_strided(op, x, 1, n, first)
                       : reduce_strided(op, x, stride, n, first);
}

// Returns the index of the first extreme element (Extreme is Amax or Amin). Finds the value first, then the value's
// first place.
template <template <class> class Extreme, class T>
YOKE_HD int64_t extreme_span(const T *x, int64_t stride, int64_t n)
{
    constexpr int64_t kBlock = 64;
    compute_type<T> top = reduce_span(Extreme<T>(), x, stride, n);
    auto is_top = [&](int64_t i) {
        compute_type<T> value = load<T>(x[i * stride]);
        return (int)(value == top) | ((int)(top != top) & (int)(value != value));
    };
    int64_t i = 0;
    for (int found = 0; i + kBlock <= n; i += kBlock) {
        for (int64_t j = 0; j < kBlock; ++j) found |= is_top(i + j);
        if (found) break;
    }
    while (i < n && !is_top(i)) ++i;
    return i;
}

// Returns the index that Argmax gives, faster.
template <class T>
YOKE_HD int64_t argmax_span(const T *x, int64_t stride, int64_t n)
{
    return extreme_span<Amax>(x, stride, n);
}

YOKE_KERNELS_END
