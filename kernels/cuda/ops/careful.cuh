// States of a thread's elements from sums that an op may doubt: reduce.h and moments.h tell the contract.
//
// A doubted sum is seldom. Its elements go through memory to a function that is not inlined, so the kernel has no
// unrolled copy of the careful arithmetic.
#pragma once

#include "kernels/common/moments.h"
#include "kernels/cuda/ops/kernel.cuh"

YOKE_CUDA_BEGIN

template <class Op, class C>
__device__ __attribute__((noinline)) inline typename Op::State careful_apart(Op op, int n,
                                                                             const C *x)
{
    return op.careful(n, [x](int64_t k) { return x[k]; });
}

template <class Op, class C, int K>
__device__ inline typename Op::State careful_state(const Op &op, const C (&x)[K])
{
    C kept[K];
    YOKE_UNROLL
    for (int k = 0; k < K; k++) kept[k] = x[k];
    return careful_apart<Op, C>(op, K, kept);
}

// Returns the state of K elements from their joined part.
template <class Op, class C, int K>
__device__ inline typename Op::State state_of_part(const Op &op, typename Op::Part part,
                                                   const C (&x)[K])
{
    return op.is_doubtful(part) ? careful_state(op, x) : op.state(part);
}

// Returns the state of K elements from the sums of two passes.
template <class Op, class C, int K>
__device__ inline typename Op::State state_of_passes(const Op &op, C first, C a, C b,
                                                     const C (&x)[K])
{
    if constexpr (requires { op.is_doubtful(K, a, b); })
        if (op.is_doubtful(K, a, b)) return careful_state(op, x);
    return op.state(K, first, a, b);
}

YOKE_CUDA_END
