// Place of a draw of random numbers in a seed's sequence, for kernels.
//
// Contract: a replay of a graph repeats the arguments of its launches, but must draw new numbers. So a launch's
// offset may have a base: a number in device memory, which the kernel adds to the offset.
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
    // Returns the counter of the draw's first block of random numbers.
    __device__ uint64_t first() const { return base ? offset + (uint64_t)*base : offset; }
};

// Blocks on a multiprocessor at once (as many as registers permit without spilling), and blocks of a grid for each
// multiprocessor. The second is a multiple of the first, so no block runs alone while other multiprocessors idle.
template <class T>
inline constexpr int kResident = kFitting<(sizeof(T) == 2 ? 6 : 8), kThreads>;
constexpr int64_t kDrawBlocks = 24;

YOKE_CUDA_END
