// Common parts of poolings: the lanes of the computation, and their division.
//
// If x is NHWC, lanes are the channels of a pixel; else lanes are the pixels of a row of the result. Halves are
// widened in runs when read, and narrowed when written. A gradient gathers: each pixel, or row, of the gradient is
// written once, with the sum over the windows around it.
#pragma once

#include "kernels/common/pool.h"
#include "kernels/cpu/simd/halves.h"
#include "kernels/cpu/simd/share.h"

YOKE_SIMD_BEGIN

using kernels::Pool;
using kernels::PoolAxis;
using kernels::Taps;
using kernels::Windows;

constexpr int64_t kLanes = 256;  // computed at a time

// Returns the lanes of a row of the result whose tap at `offset` lies within x.
inline Windows lanes_of(const PoolAxis &a, int64_t offset, int64_t first, int64_t n)
{
    const int64_t at = offset - a.padding,  // position of lane 0 of the whole row
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

// Channels [c, c + n) of a row of `width` pixels, NHWC: run(first lane, lanes, their place in the array) for each piece
// of them that lies together, a whole row where these are all channels. Pixel x has lanes [x * n, x * n + n).
template <class F>
inline void each_run(const Pool &p, int64_t row, int64_t width, int64_t c, int64_t n, const F &run)
{
    if (n == p.c) return run(0, width * n, row * width * n);
    for (int64_t x = 0; x < width; x++) run(x * n, n, (row * width + x) * p.c + c);
}

// Returns the channels of each_run of a row of x, or of the result, in C.
template <class C>
inline const C *see_pixels(const Pool &p, const void *array, int64_t row, int64_t width, int64_t c,
                           int64_t n, C *buffer)
{
    if (n == p.c) return see_run(p.dtype, array, row * width * n, width * n, buffer);
    each_run(p, row, width, c, n, [&](int64_t lane, int64_t count, int64_t at) {
        take_run(p.dtype, array, at, count, buffer + lane);
    });
    return buffer;
}

// How many elements of x or the result an element of what is written, `height` by `width`, has to do with.
inline int64_t work_of(const Pool &p, int64_t height, int64_t width)
{
    return divide_up(p.y.in * p.x.in, height * width) + p.y.out * p.x.out / (height * width);
}

// row(number, room) for each row of what is written, of an image where x lies NHWC, of a plane elsewhere. The room is
// for two rows of x and two of the result, of as many channels as are taken at a time.
template <class C, class Row>
inline yoke_status each_row(const yoke_launch *launch, const Pool &p, int64_t height, int64_t width,
                            const Row &row)
{
    const int64_t lanes = p.is_nhwc ? p.c : 1, rows = p.n * p.c / lanes * height;
    const int64_t slots = team_size(), room = 2 * (p.x.in + p.x.out) * min(lanes, kLanes);
    Scratch scratch(launch);
    if (yoke_status status = scratch.reserve((uint64_t)(slots * room) * sizeof(C))) return status;
    parallel_shares(rows, max(1, kGrain / (width * lanes * work_of(p, height, width))), slots,
                    [&](int64_t begin, int64_t end, int slot) {
                        for (; begin < end; begin++) row(begin, scratch.as<C>() + slot * room);
                    });
    return YOKE_OK;
}

// pixel(number, channel, channels) or row(number, room) for all that is written, of `height` and `width`.
template <class C, class Pixel, class Row>
inline yoke_status each_part(const yoke_launch *launch, const Pool &p, int64_t height,
                             int64_t width, const Pixel &pixel, const Row &row)
{
    if (!p.is_nhwc) return each_row<C>(launch, p, height, width, row);
    parallel_shares(p.n * height * width, max(1, kGrain / (p.c * work_of(p, height, width))),
                    [&](int64_t begin, int64_t end) {
                        for (; begin < end; begin++)
                            each_piece(p.c, [&](int64_t c, int64_t n) { pixel(begin, c, n); });
                    });
    return YOKE_OK;
}

YOKE_SIMD_END
