// What a reduction is to the kernels of reduce.cuh: an Op, the axes it runs over, and what a thread has taken in.
//
// An Op has
//  * Element element(Value): what a value of a format counts as; State init(): of nothing; State combine(State, State);
//  * State reduce(State, Element, int64_t i): with element i of a result, i rising from call to call; or else the
//    members of a two-pass op of kernels/common/moments.h, which goes twice over what is in registers, or those of an
//    op with a Part (kernels/common/reduce.h), whose parts are what is in registers;
//  * void put(char *out, State): the result's place gets it;
//  * where it needs more of a result than its elements, Op at(const Place<kSides> &): itself, knowing that result.
// A State is made of 4-byte words.
#pragma once

#include "kernels/common/axes.h"
#include "kernels/common/moments.h"
#include "kernels/cuda/ops/formats.cuh"
#include "kernels/cuda/ops/walk.cuh"

YOKE_CUDA_BEGIN

// ---- sizes --------------------------------------------------------------------------------------------------------

constexpr int64_t kReduceBlocks = 2048;  // that keep any device busy
constexpr int64_t kLongestRun = 64;      // packs that one thread takes of one item

inline int64_t power_of_two_from(int64_t n)
{
    int64_t power = 1;
    while (power < n) power *= 2;
    return power;
}

// ---- axes --------------------------------------------------------------------------------------------------------

using kernels::kMore;
using kernels::kResult;
using kernels::kX;
constexpr int kSides = kMore + 2;

struct ReduceAxes : kernels::ReducedAxes<kSides> {
    yoke_dtype dtype;  // of x

    ReduceAxes(const yoke_operand &x, const yoke_operand &result, const bool *is_reduced,
               const yoke_operand *more0 = nullptr, const yoke_operand *more1 = nullptr)
        : ReducedAxes<kSides>(x, result, is_reduced, more0, more1), dtype(x.dtype)
    {
    }

    // Whether neighbours in memory belong to different results.
    bool by_columns() const
    {
        const int64_t along_kept = kernels::stride_size(kept.stride[0][kX]),
                      along_reduced = kernels::stride_size(reduced.stride[0][0]);
        if (kept.numel == 1 || reduced.numel == 0) return false;
        return reduced.numel == 1 || (along_kept && along_kept < along_reduced);
    }
};

// ---- what a thread has taken in ------------------------------------------------------------------------------------

template <class Op>
constexpr bool kLooksTwice = requires(const Op &op)
{
    op.first_init();
};

// All of a two-pass op over K elements at once.
template <int K, class Op, class C>
__device__ inline typename Op::State look_twice(const Op &op, const C (&x)[K])
{
    C first = op.first_init(), a = 0, b = 0;
    YOKE_UNROLL
    for (int k = 0; k < K; k++) first = op.first(first, x[k]);
    const C centre = op.centre(first, K);
    YOKE_UNROLL
    for (int k = 0; k < K; k++) {
        a += op.second_a(x[k], centre);
        if constexpr (Op::kHasSecondB) b += op.second_b(x[k], centre);
    }
    return kernels::two_pass_state(op, K, first, a, b, [&](int64_t k) { return x[k]; });
}

// Results side by side, so that none waits for the one before it and sums stay short.
template <class Op, int kWanted>
struct Fold {
    using State = typename Op::State;
    using Element = typename Op::Element;
    static constexpr int kParts = kLooksTwice<Op> || kernels::HasParts<Op> ? 1 : kWanted;
    State part[kParts];

    __device__ void begin(const Op &op)
    {
        YOKE_UNROLL
        for (int k = 0; k < kParts; k++) part[k] = op.init();
    }

    // Elements i, i + step, … of the result.
    template <int K>
    __device__ void take(const Op &op, const Element (&x)[K], int64_t i, int64_t step)
    {
        if constexpr (kLooksTwice<Op>) {
            part[0] = op.combine(part[0], look_twice<K>(op, x));
        } else if constexpr (kernels::HasParts<Op>) {
            typename Op::Part sum = op.part_init();
            YOKE_UNROLL
            for (int k = 0; k < K; k++) sum = op.part(sum, x[k]);
            part[0] = op.combine(part[0],
                                 kernels::parts_state(op, K, sum, [&](int64_t k) { return x[k]; }));
        } else {
            YOKE_UNROLL
            for (int k = 0; k < K; k++)
                part[k % kParts] = op.reduce(part[k % kParts], x[k], i + k * step);
        }
    }

    __device__ State finish(const Op &op)
    {
        YOKE_UNROLL
        for (int half = kParts / 2; half > 0; half /= 2)
            for (int k = 0; k < half; k++) part[k] = op.combine(part[k], part[k + half]);
        return part[0];
    }
};

// The op as it is for one result.
template <class Op>
__device__ inline Op op_at(const Op &op, const Place<kSides> &place)
{
    if constexpr (requires { op.at(place); })
        return op.at(place);
    else
        return op;
}

// ---- ops of kernels/common ------------------------------------------------------------------------------------------

// Of values as they are, and with a result of a dtype that it is told.
template <class C, class F>
struct OfValues : F {
    using Element = C;
    int dtype;
    __device__ Element element(C x) const { return x; }
};

YOKE_CUDA_END
