// Common parts of batch_norm, group_norm and their gradients: the memory of a call, and numbers computed from sums.
#pragma once

#include "kernels/common/channel_numbers.h"
#include "kernels/cuda/ops/plane_maps.cuh"
#include "kernels/cuda/ops/plane_sums.cuh"

YOKE_CUDA_BEGIN

using kernels::ByChannel;
template <class State, class C>
using Room = kernels::PlaneRoom<Scratch, State, C>;

// Calls f(i) for every i below n, each in a thread.
template <class F>
__global__ void for_each(int64_t n, F f)
{
    YOKE_NO_UNROLL
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
         i += (int64_t)gridDim.x * blockDim.x)
        f(i);
}

template <class F>
inline yoke_status start_each(const yoke_launch *launch, int64_t n, const F &f)
{
    const int threads = block_size(kThreads);
    if (n == 0) return YOKE_OK;
    return start(launch, for_each<F>, {blocks_for(launch, n, threads), threads}, n, f);
}

YOKE_CUDA_END
