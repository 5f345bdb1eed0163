// Combining the elements of several ranks, for a build of an instruction set: combination.h has the contract.
#pragma once

#include "kernels/common/combination.h"
#include "kernels/common/reduce.h"
#include "kernels/common/span.h"

YOKE_KERNELS_BEGIN

struct CombineMax {
    template <class C>
    YOKE_HD C operator()(C a, C b) const
    {
        return Amax<C>().combine(a, b);
    }
};

struct CombineMin {
    template <class C>
    YOKE_HD C operator()(C a, C b) const
    {
        return Amin<C>().combine(a, b);
    }
};

// Elements that pass through buffers at a time. Three such buffers fit the first-level cache.
constexpr int64_t kCombineBlock = 1024;

// Combines the elements of two ranks without a buffer, as fast as memory allows.
template <class Op, class T>
static void combine_two(const T *a, const T *b, T *out, int64_t n)
{
    YOKE_PARTS_IN_PLACE
    for (int64_t i = 0; i < n; ++i) out[i] = Op()(a[i], b[i]);
}

template <class Op, class C>
static void combine_into(C *__restrict sums, const C *__restrict x, int64_t n)
{
    for (int64_t i = 0; i < n; ++i) sums[i] = Op()(sums[i], x[i]);
}

template <class C>
static void divide(C *sums, int64_t n, int64_t divisor)
{
    if constexpr (is_float<C>) {
        if (divisor == 1) return;
        const C by = (C)divisor;
        for (int64_t i = 0; i < n; ++i) sums[i] = sums[i] / by;
    }
}

template <class Op, class In, class Out>
static void combine(const Combination &call)
{
    using C = compute_type<In>;
    const auto input = [&](int rank) { return (const In *)call.inputs[rank]; };
    Out *out = (Out *)call.out;
    if constexpr (std::is_same_v<In, Out> && std::is_same_v<In, C>) {
        if (call.input_count == 2 && call.divisor == 1)
            return combine_two<Op>(input(0), input(1), out, call.count);
    }
    C sums[kCombineBlock], loaded[kCombineBlock];
    for (int64_t begin = 0; begin < call.count; begin += kCombineBlock) {
        const int64_t left = call.count - begin, n = left < kCombineBlock ? left : kCombineBlock;
        convert_span(input(0) + begin, n, sums);
        for (int rank = 1; rank < call.input_count; ++rank) {
            if constexpr (std::is_same_v<In, C>) {
                combine_into<Op>(sums, input(rank) + begin, n);
            } else {
                convert_span(input(rank) + begin, n, loaded);
                combine_into<Op>(sums, (const C *)loaded, n);
            }
        }
        divide(sums, n, call.divisor);
        convert_span((const C *)sums, n, out + begin);
    }
}

// Computes sums or products. 16-bit floats are combined in f32, and partial inputs and outputs are f32.
template <class Op, class T>
static void combine_sums(const Combination &call)
{
    if constexpr (is_half<T>) {
        if (call.partial_in && call.partial_out) return combine<Op, float, float>(call);
        if (call.partial_in) return combine<Op, float, T>(call);
        if (call.partial_out) return combine<Op, T, float>(call);
    }
    combine<Op, T, T>(call);
}

struct CombineByType {
    const Combination &call;

    template <class T>
    void operator()() const
    {
        if (call.reduction == YOKE_REDUCE_MAX) return combine<CombineMax, T, T>(call);
        if (call.reduction == YOKE_REDUCE_MIN) return combine<CombineMin, T, T>(call);
        if constexpr (!is_small<T> && !std::is_same_v<T, bool8>) {
            if (call.reduction == YOKE_REDUCE_PROD) return combine_sums<Mul, T>(call);
            combine_sums<Add, T>(call);
        }
    }
};

// Computes a combination of any dtype and reduction that can_reduce allows: the CombineFn of this build.
static inline void combine_elements(const Combination &call)
{
#define YOKE_CASE(name, type) \
    case name:                \
        return CombineByType{call}.operator()<type>();
    switch (call.dtype) {
        YOKE_FLOAT_TYPES(YOKE_CASE)
        YOKE_STORED_FLOAT_TYPES(YOKE_CASE)
        YOKE_INTEGER_TYPES(YOKE_CASE)
        YOKE_BOOL_TYPES(YOKE_CASE)
    }
#undef YOKE_CASE
}

YOKE_KERNELS_END
