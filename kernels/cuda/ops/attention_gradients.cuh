// A launch of attention's backward kernels.
#pragma once

#include "kernels/cuda/ops/attention_work.cuh"

YOKE_CUDA_BEGIN

// Operands in the order of the loop over heads; in the launch it is another.
enum { kGrad = kAttended, kOut, kQueryGrad, kKeyGrad, kValueGrad, kBackwardOperands };

template <class In>
struct BackwardLaunch : AttentionWork<In, kBackwardOperands> {
    using C = typename In::Value;
    AttentionRows grad, out, d_query, d_key, d_value;
    const C *lse;  // dense
    C *dots;       // result row times its gradient: subtracted in softmax's gradient
};

template <class In>
__global__ void find_dots(const BackwardLaunch<In> launch)
{
    using C = typename In::Value;
    const AttentionSizes &s = launch.sizes;
    const int64_t warps = (int64_t)gridDim.x * blockDim.x / kWarp;
    for (int64_t row = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / kWarp;
         row < s.heads * s.queries; row += warps) {
        const Place<kBackwardOperands> place = launch.heads.at(row / s.queries);
        const int64_t q = row % s.queries;
        const HeadRows<In> grad{place.data[kGrad], s.queries, s.value_width, launch.grad},
            out{place.data[kOut], s.queries, s.value_width, launch.out};
        C dot = (C)0;
        for (int64_t d = place_in_warp(); d < s.value_width; d += kWarp)
            dot += grad.at(q, d) * out.at(q, d);
        dot = reduce_warp(dot, [](C a, C b) { return a + b; });
        if (place_in_warp() == 0) launch.dots[row] = dot;
    }
}

// Operands of a head, for the kernels.
template <class In>
struct BackwardHead : AttentionHead<In, kBackwardOperands, BackwardLaunch<In>> {
    using C = typename In::Value;
    using AttentionHead<In, kBackwardOperands, BackwardLaunch<In>>::AttentionHead;

    __device__ HeadRows<In> grad() const
    {
        const AttentionSizes &s = this->launch.sizes;
        return {this->place.data[kGrad], s.queries, s.value_width, this->launch.grad};
    }
    // Returns the probability of a pair from its score without the mask. The pair must exist.
    __device__ C probability(C score, int64_t q, int64_t k) const
    {
        this->add_mask(score, q, k);
        return kernels::attention_probability(score, this->launch.lse[row(q)]);
    }
    __device__ C dot(int64_t q) const { return this->launch.dots[row(q)]; }

private:
    __device__ int64_t row(int64_t q) const
    {
        return this->number * this->launch.sizes.queries + q;
    }
};

YOKE_CUDA_END
