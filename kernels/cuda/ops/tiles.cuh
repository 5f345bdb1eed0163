// A tile of 64 x 64 of a product, by a block: what is the same wherever its operands come from.
//
// Contract: a block has kTileThreads threads. It fills, for each kTileDepth of the depth, a_tile with kTileSide rows of
// a and b_tile with as many columns of b, kTileDepth elements of each; thread (row, column) sums kTileEach x kTileEach
// elements of the result, kSpread apart.
#pragma once

#include "kernels/cuda/ops/kernel.cuh"

YOKE_CUDA_BEGIN

constexpr int kSpread = 16, kTileEach = 4;  // threads along a side, elements of each along it
constexpr int kTileThreads = kSpread * kSpread, kTileSide = kSpread * kTileEach, kTileDepth = 16;
// Rows have an unused element, which spreads columns over the banks of shared memory.
constexpr int kTileStepA = kTileDepth + 1, kTileStepB = kTileSide + 1;
constexpr int kTileSizeA = kTileSide * kTileStepA, kTileSizeB = kTileDepth * kTileStepB;

template <class C>
using TileSums = C[kTileEach][kTileEach];

// Adds the products of a step of the depth to the thread's sums.
template <class C, class A, class B>
__device__ inline void add_tile(A &a_tile, B &b_tile, int row, int column, TileSums<C> &sums)
{
    for (int d = 0; d < kTileDepth; d++) {
        C from_a[kTileEach], from_b[kTileEach];
        YOKE_UNROLL
        for (int i = 0; i < kTileEach; i++) {
            from_a[i] = a_tile[(row + i * kSpread) * kTileStepA + d];
            from_b[i] = b_tile[d * kTileStepB + column + i * kSpread];
        }
        YOKE_UNROLL
        for (int i = 0; i < kTileEach * kTileEach; i++)
            sums[i / kTileEach][i % kTileEach] += from_a[i / kTileEach] * from_b[i % kTileEach];
    }
}

// Calls write(row, column, number among the thread's rows, sum) for the thread's elements within the result. `row`
// and `column` belong to the first element.
template <class C, class F>
__device__ inline void write_tile(const TileSums<C> &sums, int64_t row, int64_t column,
                                  int64_t rows, int64_t columns, const F &write)
{
    YOKE_UNROLL
    for (int i = 0; i < kTileEach * kTileEach; i++) {
        const int64_t r = row + i / kTileEach * kSpread, q = column + i % kTileEach * kSpread;
        if (r < rows && q < columns) write(r, q, i / kTileEach, sums[i / kTileEach][i % kTileEach]);
    }
}

YOKE_CUDA_END
