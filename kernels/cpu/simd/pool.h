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

// Returns those of n lanes, from lane `first` of a row of the result on, whose tap at `offset` lies within x.
inline Windows lanes_of(const PoolAxis &a, int64_t offset, int64_t first, int64_t n)
{
    const int64_t at = offset - a.padding,  // position of lane 0 of the whole row
        begin = at < 0 ? divide_up(-at, a.stride) : 0,
                  end = at < a.in ? (a.in - 1 - at) / a.stride + 1 : 0;
    const int64_t from = min(max(begin - first, 0), n);
    return {from, max(from, min(end - first, n))};
}

// Returns the taps that lie within x for some of n lanes from lane `first` on.
inline Windows taps_of_lanes(const PoolAxis &a, int64_t first, int64_t n)
{
    const int64_t of_first = first * a.stride - a.padding, of_last = of_first + (n - 1) * a.stride,
                  begin = of_last < 0 ? divide_up(-of_last, a.dilation) : 0,
                  end = of_first < a.in ? min(a.kernel, divide_up(a.in - of_first, a.dilation)) : 0;
    return {begin, end};
}

// Calls run(first lane, lanes) for pieces of at most kLanes lanes.
template <class F>
inline void each_piece(int64_t width, const F &run)
{
    for (int64_t first = 0; first < width; first += kLanes) run(first, min(kLanes, width - first));
}

// Returns a row of a plane, of x or of the result, as values of C: in place or in the buffer.
template <class C>
inline const C *see_row(yoke_dtype dtype, const void *array, int64_t row, int64_t width, C *buffer)
{
    return see_run(dtype, array, row * width, width, buffer);
}

// Calls run(first lane, lanes, place in the array) for channels [c, c + n) of a row of `width` pixels, NHWC. If these
// are all channels, a call gets the whole row, else the channels of a pixel. Pixel x has lanes [x * n, x * n + n).
template <class F>
inline void each_run(const Pool &p, int64_t row, int64_t width, int64_t c, int64_t n, const F &run)
{
    if (n == p.c) return run(0, width * n, row * width * n);
    for (int64_t x = 0; x < width; x++) run(x * n, n, (row * width + x) * p.c + c);
}

// Returns channels [c, c + n) of a row of x, or of the result, as values of C, in the lanes of each_run.
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

// Returns how many elements of x or of the result are read for a written element. The written tensor is `height` by
// `width`.
inline int64_t work_of(const Pool &p, int64_t height, int64_t width)
{
    return divide_up(p.y.in * p.x.in, height * width) + p.y.out * p.x.out / (height * width);
}

// Calls row(number, room) for each row of the written tensor, by the team. If x is NHWC, this is a row of an image,
// else a row of a plane. The room has space for two rows of x and two rows of the result, with the channels computed
// at a time.
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

// Calls pixel(number, channel, channels) if x is NHWC, else row(number, room), for the whole written tensor, `height`
// by `width`. The team shares the calls.
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
