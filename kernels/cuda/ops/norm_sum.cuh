// Common parts of layer_norm and its gradient, with additions for norms of a sum.
#pragma once

#include "kernels/common/norm.h"
#include "kernels/cuda/ops/rows.cuh"

YOKE_CUDA_BEGIN

using kernels::GradientSums;

// Adds both sums over the threads of a group. Every thread gets the result.
template <class C>
__device__ inline GradientSums<C> sum_pairs(GradientSums<C> sums, int group)
{
    return reduce_group(sums, group, GradientSums<C>::init(),
                        [](const GradientSums<C> &a, const GradientSums<C> &b) {
                            return GradientSums<C>::combine(a, b);
                        });
}

// Format of the other operands beside rows of N operands with a sum: if the sum is float32, they may also be halves.
// Without a sum there are four operands, all of one dtype.
template <class In, int N>
using Beside = std::conditional_t<N == 4 || !std::is_same_v<In, Singles>, In, Floats>;

constexpr int kOther = 4;  // operand with the gradient of the sum itself

// Returns a + b as a separate rounding: the compiler must not fuse the multiplication for a with this addition.
__device__ inline float add_apart(float a, float b)
{
#if defined(__CUDA_ARCH__)
    return __fadd_rn(a, b);
#else
    return a + b;
#endif
}
__device__ inline double add_apart(double a, double b)
{
#if defined(__CUDA_ARCH__)
    return __dadd_rn(a, b);
#else
    return a + b;
#endif
}

// Adds the gradient of the sum itself, if there is such an operand, to a pack of dx.
template <class In, bool kPacked, int V, int N, class C>
__device__ inline void add_other(const Rows<N> &rows, const Place<N> &place, int64_t first, int at,
                                 C (&dx)[V])
{
    if constexpr (N > kOther) {
        C other[V];
        Chunk<In, V, kPacked>(rows, kOther, place.data[kOther], first).take(at, (C)0, other);
        YOKE_UNROLL
        for (int k = 0; k < V; k++) dx[k] = add_apart(dx[k], other[k]);
    }
}

YOKE_CUDA_END
