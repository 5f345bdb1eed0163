// What a reduction is to the kernels of reduce.cuh: an Op, the axes it runs over, and what a thread has taken in.
//
// An Op has
//  * Element element(Value): what a value of a format counts as; State init(): of nothing; State combine(State, State);
//  * State reduce(State, Element, int64_t i): with element i of a result, i rising from call to call; or else the
//    members of a two-pass op of kernels/common/moments.h, which goes twice over what is in registers;
//  * void put(char *out, State): the result's place gets it;
//  * where it needs more of a result than its elements, Op at(const Place<kSides> &): itself, knowing that result.
// A State is made of 4-byte words.
#pragma once

#include "kernels/common/axes.h"
#include "kernels/common/reduce.h"
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

// Operands of a kept element: x, the result, and up to two more that an op reads.
constexpr int kX = 0, kResult = 1, kMore = 2, kSides = 4;

struct ReduceAxes {
    Loop<kSides> kept;
    Loop<1> reduced;
    yoke_dtype dtype;  // of x

    // The result may lack the reduced axes; `more` have them, with length 1.
    ReduceAxes(const yoke_operand &x, const yoke_operand &result, const bool *is_reduced,
               const yoke_operand *more0 = nullptr, const yoke_operand *more1 = nullptr)
        : dtype(x.dtype)
    {
        const yoke_operand *more[2] = {more0, more1};
        kept.ndim = reduced.ndim = 0;
        kept.numel = reduced.numel = 1;
        kept.data[kX] = reduced.data[0] = data_of<char>(x);
        kept.data[kResult] = data_of<char>(result);
        for (int i = 0; i < 2; i++)
            kept.data[kMore + i] = more[i] ? data_of<char>(*more[i]) : nullptr;
        const bool keepdim = result.ndim == x.ndim;
        int result_axis = result.ndim - 1;
        for (int axis = x.ndim - 1; axis >= 0; axis--) {
            const int64_t step = x.strides[axis] * dtype_size(x.dtype);
            if (is_reduced[axis]) {
                add_axis<1>(reduced, x.shape[axis], {step});
            } else {
                int64_t steps[kSides] = {step,
                                         result.strides[result_axis] * dtype_size(result.dtype)};
                for (int i = 0; i < 2; i++)
                    steps[kMore + i] = more[i] ? step_of(*more[i], axis, x.ndim) : 0;
                add_axis<kSides>(kept, x.shape[axis], steps);
            }
            if (keepdim || !is_reduced[axis]) result_axis--;
        }
        finish_loop<kSides>(kept);
        finish_loop<1>(reduced);
    }

    // Whether neighbours in memory belong to different results.
    bool by_columns() const
    {
        const int64_t along_kept = size_of(kept.stride[0][kX]),
                      along_reduced = size_of(reduced.stride[0][0]);
        if (kept.numel == 1 || reduced.numel == 0) return false;
        return reduced.numel == 1 || (along_kept && along_kept < along_reduced);
    }

    static int64_t size_of(int64_t stride) { return stride < 0 ? -stride : stride; }
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
    return op.state(K, first, a, b);
}

// Results side by side, so that none waits for the one before it and sums stay short.
template <class Op, int kWanted>
struct Fold {
    using State = typename Op::State;
    using Element = typename Op::Element;
    static constexpr int kLanes = kLooksTwice<Op> ? 1 : kWanted;
    State lane[kLanes];

    __device__ void begin(const Op &op)
    {
        YOKE_UNROLL
        for (int k = 0; k < kLanes; k++) lane[k] = op.init();
    }

    // Elements i, i + step, … of the result.
    template <int K>
    __device__ void take(const Op &op, const Element (&x)[K], int64_t i, int64_t step)
    {
        if constexpr (kLooksTwice<Op>) {
            lane[0] = op.combine(lane[0], look_twice<K>(op, x));
        } else {
            YOKE_UNROLL
            for (int k = 0; k < K; k++)
                lane[k % kLanes] = op.reduce(lane[k % kLanes], x[k], i + k * step);
        }
    }

    __device__ State finish(const Op &op)
    {
        YOKE_UNROLL
        for (int half = kLanes / 2; half > 0; half /= 2)
            for (int k = 0; k < half; k++) lane[k] = op.combine(lane[k], lane[k + half]);
        return lane[0];
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
