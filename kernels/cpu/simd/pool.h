// What poolings share: the lanes in which they are computed, and how they are shared out.
//
// Lanes are the channels of a pixel where x lies NHWC, the pixels of a row of the result elsewhere. Halves are widened
// in runs as they are read, and narrowed as they are written. A gradient gathers: each pixel, or row, of it is written
// once, with the sum over the windows that hold it.
#pragma once

#include "kernels/common/pool.h"
#include "kernels/cpu/simd/halves.h"
#include "kernels/cpu/simd/share.h"

YOKE_SIMD_BEGIN

using kernels::Pool;
using kernels::PoolAxis;
using kernels::Taps;
using kernels::Windows;

constexpr int64_t kLanes = 256;  // that are computed at a time

// The lanes of a row of the result whose tap at `offset` from their first stands within x.
inline Windows lanes_of(const PoolAxis &a, int64_t offset, int64_t first, int64_t n)
{
    const int64_t at = offset - a.padding,  // of lane 0 of the whole row
        begin = at < 0 ? divide_up(-at, a.stride) : 0,
                  end = at < a.in ? (a.in - 1 - at) / a.stride + 1 : 0;
    const int64_t from = min(max(begin - first, 0), n);
    return {from, max(from, min(end - first, n))};
}

// The taps that stand within x for some of n lanes.
inline Windows taps_of_lanes(const PoolAxis &a, int64_t first, int64_t n)
{
    const int64_t of_first = first * a.stride - a.padding, of_last = of_first + (n - 1) * a.stride,
                  begin = of_last < 0 ? divide_up(-of_last, a.dilation) : 0,
                  end = of_first < a.in ? min(a.kernel, divide_up(a.in - of_first, a.dilation)) : 0;
    return {begin, end};
}

// run(lane's first pixel, lanes) for pieces of a row of the result.
template <class F>
inline void each_piece(int64_t width, const F &run)
{
    for (int64_t first = 0; first < width; first += kLanes) run(first, min(kLanes, width - first));
}

// A row of x, or of the result, of a plane, in C.
template <class C>
inline const C *see_row(yoke_dtype dtype, const void *array, int64_t row, int64_t width, C *buffer)
{
    return see_run(dtype, array, row * width, width, buffer);
}

// pixel(number, channel, channels) or row(number, room) for all that is written, of `height` and `width`.
template <class C, class Pixel, class Row>
inline yoke_status each_part(const yoke_launch *launch, const Pool &p, int64_t height,
                             int64_t width, const Pixel &pixel, const Row &row)
{
    const int64_t work =
        divide_up(p.y.in * p.x.in, height * width) + p.y.out * p.x.out / (height * width);
    if (p.is_nhwc) {
        parallel_shares(p.n * height * width, max(1, kGrain / (p.c * work)),
                        [&](int64_t begin, int64_t end) {
                            for (; begin < end; begin++)
                                each_piece(p.c, [&](int64_t c, int64_t n) { pixel(begin, c, n); });
                        });
        return YOKE_OK;
    }
    const int64_t slots = team_size(), room = p.x.in + 2 * p.x.out;
    Scratch scratch(launch);
    if (yoke_status status = scratch.reserve((uint64_t)(slots * room) * sizeof(C))) return status;
    parallel_shares(p.n * p.c * height, max(1, kGrain / (width * work)), slots,
                    [&](int64_t begin, int64_t end, int slot) {
                        for (; begin < end; begin++) row(begin, scratch.as<C>() + slot * room);
                    });
    return YOKE_OK;
}

YOKE_SIMD_END
