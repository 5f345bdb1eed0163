// Conversion of an element's number to its place in N strided operands, on the device.
//
// If the innermost axis is long, a block goes through rows of this axis and divides once a row. Otherwise it divides
// for every element, by multiplication with a reciprocal that the host computed (T. Granlund, P. Montgomery, "Division
// by invariant integers using multiplication", 1994). A 64-bit division would take many times the code.
#pragma once

#include "kernels/common/loop.h"
#include "kernels/cuda/ops/kernel.cuh"

YOKE_CUDA_BEGIN

using kernels::add_axis;
using kernels::finish_loop;
using kernels::Loop;
using kernels::plan_loop;
using kernels::step_of;

// Division of n < 2^31 by a fixed 1 <= d < 2^31.
struct Divisor {
    uint32_t divisor = 1, factor = 0, shift = 0;

    Divisor() = default;
    explicit Divisor(int64_t d) : divisor((uint32_t)d)
    {
        while (((int64_t)1 << shift) < d) shift++;
        factor = (uint32_t)((((uint64_t)1 << 32) * (((uint64_t)1 << shift) - (uint64_t)d)) /
                                (uint64_t)d +
                            1);
    }
    __device__ uint32_t divide(uint32_t n) const { return (__umulhi(n, factor) + n) >> shift; }
};

// Division of n >= 0 by a fixed d >= 1. If all n and d are below 2^31, `narrow` is set, and the factor has 32 bits.
struct WideDivisor {
    uint64_t factor = 0;
    uint32_t shift = 0;

    WideDivisor() = default;
    WideDivisor(int64_t d, bool narrow)
    {
        __extension__ using Wide = unsigned __int128;
        const uint64_t by = (uint64_t)d;
        while (((uint64_t)1 << shift) < by) shift++;
        const uint64_t over = ((uint64_t)1 << shift) - by;
        factor = narrow ? (over << 32) / by + 1 : (uint64_t)(((Wide)over << 64) / by) + 1;
    }
    __device__ int64_t divide(int64_t n, bool narrow) const
    {
        if (narrow) return (__umulhi((uint32_t)n, (uint32_t)factor) + (uint32_t)n) >> shift;
        return (int64_t)((__umul64hi((uint64_t)n, factor) + (uint64_t)n) >> shift);
    }
};

// Division by a fixed length of numbers below `end`.
struct Split {
    int64_t length;
    bool narrow;
    WideDivisor divisor;

    Split(int64_t by, int64_t end)
        : length(by), narrow(end < ((int64_t)1 << 31) && by < ((int64_t)1 << 31))
    {
        if (by > 0) divisor = WideDivisor(by, narrow);
    }
    __device__ int64_t quotient(int64_t n) const { return divisor.divide(n, narrow); }
};

template <int N>
struct Place {
    char *data[N];
};

// A loop as a kernel takes it. Axis 0 is the innermost.
template <int N>
struct Walk {
    int ndim;
    bool narrow;  // every number of an element is below 2^31
    int64_t numel;
    int64_t shape[YOKE_MAX_NDIM];
    WideDivisor divisor[YOKE_MAX_NDIM];
    int64_t stride[YOKE_MAX_NDIM][N];  // bytes
    char *data[N];

    explicit Walk(const Loop<N> &loop)
        : ndim(loop.ndim), narrow(loop.numel < ((int64_t)1 << 31)), numel(loop.numel)
    {
        for (int i = 0; i < N; i++) data[i] = loop.data[i];
        for (int axis = 0; axis < ndim; axis++) {
            shape[axis] = loop.shape[axis];
            if (numel) divisor[axis] = WideDivisor(loop.shape[axis], narrow);
            for (int i = 0; i < N; i++) stride[axis][i] = loop.stride[axis][i];
        }
    }

    // Returns the place of element `number` of the axes from `first` on, at the start of the axes below. Operands
    // without a bit in kWhich stay at the start of all.
    template <unsigned kWhich = ~0u>
    __device__ Place<N> at(int64_t number, int first = 0) const
    {
        Place<N> place;
        for (int i = 0; i < N; i++) place.data[i] = data[i];
        for (int axis = first; axis < ndim && number; axis++) {
            int64_t rest = 0, index = number;
            if (axis < ndim - 1) {  // the last axis leaves no rest
                rest = divisor[axis].divide(number, narrow);
                index -= rest * shape[axis];
            }
            number = rest;
            for (int i = 0; i < N; i++)
                if (kWhich >> i & 1) place.data[i] += index * stride[axis][i];
        }
        return place;
    }
};

// Calls f(i, place) for every element i of the walk, by a grid of any size; see walk_grid.
template <int N, class F>
__device__ inline void walk_elements(const Walk<N> &walk, const F &f)
{
    const int64_t step = (int64_t)gridDim.x * blockDim.x,
                  first = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    // Goes by rows, or in a single row where every element needs divisions.
    const bool by_rows = gridDim.y > 1 || walk.shape[0] >= walk.numel;
    const int64_t length = by_rows ? walk.shape[0] : walk.numel,
                  rows = length ? walk.numel / length : 0;
    for (int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
        const Place<N> start = walk.at(by_rows ? row : 0, 1);
        for (int64_t column = first; column < length; column += step) {
            Place<N> place = by_rows ? start : walk.at(column);
            if (by_rows)
                for (int i = 0; i < N; i++) place.data[i] += column * walk.stride[0][i];
            f(row * length + column, place);
        }
    }
}

// Returns whether the operands lie alike and without gaps: a single run once the axes are joined.
template <int N>
inline bool is_one_run(const Loop<N> &loop, const int64_t (&sizes)[N])
{
    if (loop.ndim != 1) return false;
    for (int i = 0; i < N; i++)
        if (loop.numel != 1 && loop.stride[0][i] != sizes[i]) return false;
    return true;
}

// The shortest innermost axis that is worth a block's row.
constexpr int64_t kRowLength = 128;

// Returns the grid for walk_elements: rows along y if they are long and many.
template <int N>
inline Grid walk_grid(const yoke_launch *launch, const Walk<N> &walk)
{
    const int threads = block_size(kThreads);
    if (walk.ndim == 1 || walk.shape[0] < kRowLength)
        return {blocks_for(launch, walk.numel, threads), threads};
    const int64_t rows = walk.numel / walk.shape[0], columns = divide_up(walk.shape[0], threads);
    const int64_t busy = blocks_for(launch, walk.numel, threads);
    const int64_t along = min(columns, busy);
    const int64_t down = min(min(rows, (int64_t)65535), max(2, divide_up(busy, along)));
    return {along, threads, 0, max(2, down)};
}

YOKE_CUDA_END
