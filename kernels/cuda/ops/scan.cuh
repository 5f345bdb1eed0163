// Running sums over the threads of a block.
#pragma once

#include "kernels/cuda/ops/kernel.cuh"

YOKE_CUDA_BEGIN

// Returns the sum of `mine` over the earlier threads of the group. `total` becomes the sum over all threads.
template <class S>
__device__ inline S sum_before(S mine, int group, S &total)
{
    YOKE_SHARED(S, sums, kWarp);
    const int width = group < kWarp ? group : kWarp, in_warp = (int)threadIdx.x % width;
    S through = mine;
    for (int distance = 1; distance < width; distance *= 2) {
        const S before = __shfl_up_sync(kWholeWarp, through, (unsigned)distance, width);
        if (in_warp >= distance) through = through + before;
    }
    S before = __shfl_up_sync(kWholeWarp, through, 1u, width);
    if (in_warp == 0) before = 0;
    total = __shfl_sync(kWholeWarp, through, width - 1, width);
    if (group <= kWarp) return before;
    __syncthreads();  // an earlier call may still read
    if (in_warp == 0) sums[warp_of_thread()] = total;
    __syncthreads();
    S of_warps = 0;
    total = 0;
    for (int warp = 0; warp < group / kWarp; warp++) {
        if (warp == warp_of_thread()) of_warps = total;
        total = total + (S)sums[warp];
    }
    return of_warps + before;
}

// Replaces the n values by the sums before each, in a single block. Returns the sum of all values to every thread.
template <class S>
__device__ inline S sum_in_place(S *values, int64_t n)
{
    S sum = 0;
    for (int64_t first = 0; first < n; first += blockDim.x) {
        const int64_t i = first + threadIdx.x;
        S all;
        const S before = sum_before(i < n ? values[i] : S(0), (int)blockDim.x, all);
        if (i < n) values[i] = sum + before;
        sum = sum + all;
    }
    return sum;
}

YOKE_CUDA_END
