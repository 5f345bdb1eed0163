// Where a draw of random numbers stands in a seed's sequence, for kernels.
//
// Contract: within a graph a replay repeats its launches' arguments, yet draws anew. So the offset that a launch is
// given may have a base, a number in device memory that the kernel adds to it.
#pragma once

#include "kernels/common/draw.h"
#include "kernels/cuda/ops/kernel.cuh"

YOKE_CUDA_BEGIN

struct Draw : kernels::DrawPlace {
    const int64_t *base;

    Draw(const yoke_launch *launch, const yoke_arg *seed_and_offset)
        : Draw(launch, DrawPlace(seed_and_offset))
    {
    }
    Draw(const yoke_launch *launch, const DrawPlace &place)
        : DrawPlace(place), base(launch->random_base)
    {
    }
    // The counter of its first block.
    __device__ uint64_t first() const { return base ? offset + (uint64_t)*base : offset; }
};

// Blocks of threads that a multiprocessor is to hold, as many as registers permit without spilling, and the blocks that
// a grid has for each: a multiple, so that none is left over while others idle.
template <class T>
inline constexpr int kResident = kFitting<(sizeof(T) == 2 ? 6 : 8), kThreads>;
constexpr int64_t kDrawBlocks = 24;

YOKE_CUDA_END
