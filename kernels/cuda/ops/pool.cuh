// Pooling on the device: axes that divide by multiplication, places of elements, and packs of channels.
//
// A thread has one element of the tensor that it writes, or a pack of channels of one pixel: where channels are
// neighbours in memory and fill packs of 16 bytes.
#pragma once

#include "kernels/common/pool.h"
#include "kernels/cuda/ops/any_half.cuh"
#include "kernels/cuda/ops/walk.cuh"

YOKE_CUDA_BEGIN

using kernels::PoolAxis;
using kernels::Taps;
using kernels::Windows;

// An axis whose divisions are by numbers that the host has prepared.
struct DividedAxis : PoolAxis {
    Split stride_split, dilation_split, in_split, out_split;

    explicit DividedAxis(const PoolAxis &a)
        : PoolAxis(a),
          stride_split(a.stride, reach(a)),
          dilation_split(a.dilation, reach(a)),
          in_split(a.in, shares(a)),
          out_split(a.out, shares(a))
    {
    }

private:
    // Returns a number above all that are divided by stride or dilation.
    static int64_t reach(const PoolAxis &a)
    {
        constexpr int64_t kLarge = (int64_t)1 << 28;
        const int64_t most = max(max(max(a.in, a.out), max(a.stride, a.padding)), a.dilation);
        return most < kLarge ? 4 * most : 8 * kLarge;
    }
    // Returns a number above all that are divided for adaptive windows.
    static int64_t shares(const PoolAxis &a)
    {
        constexpr int64_t kLarge = (int64_t)1 << 15;
        const int64_t most = max(a.in, a.out);
        return most < kLarge ? most * most : (int64_t)1 << 31;
    }
};

__device__ inline int64_t over_stride(const DividedAxis &a, int64_t n)
{
    return a.stride_split.quotient(n);
}
__device__ inline int64_t over_dilation(const DividedAxis &a, int64_t n)
{
    return a.dilation_split.quotient(n);
}
// Returns whole * o / parts, rounded down, without this product.
__device__ inline int64_t part_of(const Split &whole, int64_t o, const Split &parts)
{
    const int64_t each = parts.quotient(whole.length), rest = whole.length - each * parts.length;
    return each * o + parts.quotient(rest * o);
}
__device__ inline int64_t first_position(const DividedAxis &a, int64_t o)
{
    return part_of(a.in_split, o, a.out_split);
}
__device__ inline int64_t first_window(const DividedAxis &a, int64_t i)
{
    return part_of(a.out_split, i, a.in_split);
}

// Position of an element, and distances in elements from a position to the next.
struct PoolIndex {
    int64_t n, c, y, x;
};
struct PoolSteps {
    int64_t n, c, y, x;

    PoolSteps(bool is_nhwc, int64_t channels, int64_t height, int64_t width)
        : n(channels * height * width),
          c(is_nhwc ? 1 : height * width),
          y(is_nhwc ? width * channels : width),
          x(is_nhwc ? channels : 1)
    {
    }
    __device__ int64_t image(const PoolIndex &at) const { return at.n * n + at.c * c; }
    __device__ int64_t pixel(const PoolIndex &at) const { return image(at) + at.y * y + at.x * x; }
};

// A call as a kernel takes it: an element, or a pack of `pack` channels, of the written tensor for each number below
// `count`.
struct PoolJob : kernels::PoolOf<DividedAxis> {
    int64_t pack, count;
    PoolSteps of_in, of_out;
    Split last, middle, first;  // lengths of the written tensor's axes, from the innermost on
    bool many;                  // adds_many()

    PoolJob(const kernels::Pool &p, int64_t height, int64_t width, int64_t channels_at_once)
        : PoolOf{p.dtype, p.is_nhwc, p.has_wide_places, p.counts_padding, p.n,
                 p.c,     p.divisor, DividedAxis(p.y),  DividedAxis(p.x), p.in,
                 p.out,   p.places},
          pack(channels_at_once),
          count(p.n * p.c / channels_at_once * height * width),
          of_in(p.is_nhwc, p.c, p.y.in, p.x.in),
          of_out(p.is_nhwc, p.c, p.y.out, p.x.out),
          last(p.is_nhwc ? p.c / channels_at_once : width, count),
          middle(p.is_nhwc ? width : height, count),
          first(p.is_nhwc ? height : p.c, count),
          many(kernels::adds_many(p))
    {
    }
    __device__ PoolIndex at(int64_t i) const
    {
        const int64_t a = last.quotient(i), b = middle.quotient(a), image = first.quotient(b);
        const int64_t inner = i - a * last.length, between = a - b * middle.length,
                      outer = b - image * first.length;
        return is_nhwc ? PoolIndex{image, inner * pack, outer, between}
                       : PoolIndex{image, outer, between, inner};
    }
};

// Returns whether threads may take packs of `pack` channels, each of `size` bytes.
inline bool takes_packs(const kernels::Pool &p, int64_t pack, int64_t size)
{
    return p.is_nhwc && p.c % pack == 0 && is_aligned(p.in, pack * size) &&
           is_aligned(p.out, pack * size) && is_aligned(p.places, pack);
}

// The dtype is that of the elements, for AnyHalf.
template <class T, int V>
__device__ inline void take_values(yoke_dtype dtype, const void *array, int64_t at,
                                   compute_type<T> (&to)[V])
{
    if constexpr (V == 1)
        to[0] = widen_as<T>(dtype, ((const T *)array)[at]);
    else
        unpack<T, V>(load_pack<V>((const T *)array + at), to);
}

template <class T, int V>
__device__ inline void put_values(yoke_dtype dtype, void *array, int64_t at,
                                  const compute_type<T> (&from)[V])
{
    if constexpr (V == 1)
        ((T *)array)[at] = stored_as<T>(dtype, from[0]);
    else
        store_pack<V>((T *)array + at, pack_of<T, V>(from));
}

// Starts `packs`, or `elements` if a thread cannot take packs, for the pixels of the written tensor.
template <class T>
inline yoke_status start_pool(const yoke_launch *launch, const kernels::Pool &p, int64_t height,
                              int64_t width, void (*packs)(PoolJob), void (*elements)(PoolJob))
{
    constexpr int V = kPackLength<T>;
    const bool packed = takes_packs(p, V, sizeof(T));
    const PoolJob job(p, height, width, packed ? V : 1);
    const int threads = block_size(kThreads);
    return start(launch, packed ? packs : elements,
                 {blocks_for(launch, job.count, threads), threads}, job);
}

YOKE_CUDA_END
