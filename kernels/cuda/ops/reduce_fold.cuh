// Interface of a reduction for the kernels of reduce.cuh: an Op, the reduced axes, and the state of a thread.
//
// An Op has
//  * Element element(Value): the element for a value of a format; State init(): the state of no elements; State
//    combine(State, State);
//  * State reduce(State, Element, int64_t i): adds element i of a result, with i rising from call to call. Instead,
//    an Op may have the members of a two-pass op of kernels/common/moments.h, whose passes go over registers, or of
//    an op with a Part (kernels/common/reduce.h), whose parts are the elements in registers;
//  * void put(char *out, State): writes the result to its place;
//  * optionally, Op at(const Place<kSides> &): the op for a given result, if the op needs more than the result's
//    elements.
// A State consists of 4-byte words.
#pragma once

#include "kernels/common/axes.h"
#include "kernels/common/moments.h"
#include "kernels/cuda/ops/careful.cuh"
#include "kernels/cuda/ops/formats.cuh"
#include "kernels/cuda/ops/walk.cuh"

YOKE_CUDA_BEGIN

// ---- sizes --------------------------------------------------------------------------------------------------------

constexpr int64_t kReduceBlocks = 2048;  // enough for any device
constexpr int64_t kLongestRun = 64;      // packs of an item for each thread

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
    yoke_dtype dtype;  // data type of x

    ReduceAxes(const yoke_operand &x, const yoke_operand &result, const bool *is_reduced,
               const yoke_operand *more0 = nullptr, const yoke_operand *more1 = nullptr)
        : ReducedAxes<kSides>(x, result, is_reduced, more0, more1), dtype(x.dtype)
    {
    }

    // Returns whether neighbours in memory belong to different results.
    bool by_columns() const
    {
        const int64_t along_kept = kernels::stride_size(kept.stride[0][kX]),
                      along_reduced = kernels::stride_size(reduced.stride[0][0]);
        if (kept.numel == 1 || reduced.numel == 0) return false;
        return reduced.numel == 1 || (along_kept && along_kept < along_reduced);
    }
};

// ---- state of a thread --------------------------------------------------------------------------------------------

template <class Op>
constexpr bool kLooksTwice = requires(const Op &op)
{
    op.first_init();
};

// Loads of a thread before it uses the first. Two loads of doubles, 16 bytes each, keep enough bytes in flight.
template <class In, class Op>
constexpr int kLoadsAtOnce = std::is_same_v<typename In::Value, double> && !kLooksTwice<Op> ? 2 : 4;

// Returns the state of a two-pass op over K elements, in both passes.
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
    return state_of_passes(op, first, a, b, x);
}

// State of a thread: several parts side by side, so no addition waits for the previous addition, and sums stay short.
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

    // Adds elements i, i + step, … of the result to the state.
    template <int K>
    __device__ void take(const Op &op, const Element (&x)[K], int64_t i, int64_t step)
    {
        if constexpr (kLooksTwice<Op>) {
            part[0] = op.combine(part[0], look_twice<K>(op, x));
        } else if constexpr (kernels::HasParts<Op>) {
            typename Op::Part sum = op.part_init();
            YOKE_UNROLL
            for (int k = 0; k < K; k++) sum = op.part(sum, x[k]);
            part[0] = op.combine(part[0], state_of_part(op, sum, x));
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

// Returns the op for a given result.
template <class Op>
__device__ inline Op op_at(const Op &op, const Place<kSides> &place)
{
    if constexpr (requires { op.at(place); })
        return op.at(place);
    else
        return op;
}

// ---- ops of kernels/common ------------------------------------------------------------------------------------------

// Op over unchanged values, whose result has a dtype known at run time.
template <class C, class F>
struct OfValues : F {
    using Element = C;
    int dtype;
    __device__ Element element(C x) const { return x; }
};

YOKE_CUDA_END
