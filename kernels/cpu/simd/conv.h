// Convolution by Yoke's own loops: products of matrices whose rows are gathered from pixels as needed.
//
// Contract
//  * All arithmetic is in C, float or double. Halves are widened in runs when read, and narrowed when written.
//  * No bit depends on threads: the cut of sums depends on sizes only.
#pragma once

#include "kernels/common/conv.h"
#include "kernels/cpu/simd/halves.h"
#include "kernels/cpu/simd/share.h"

YOKE_SIMD_BEGIN

using kernels::Conv;
using kernels::ConvKind;
using kernels::Pixel;
using kernels::Sweep;
using kernels::Tap;

// Computes a sweep, or the gradient by weight, in C. The depthwise functions are for channels with a separate window
// each.
template <class C>
yoke_status sweep_tiles(const yoke_launch *launch, yoke_dtype dtype, const Sweep &sweep);
template <class C>
yoke_status sweep_depthwise(const yoke_launch *launch, yoke_dtype dtype, const Sweep &sweep);
template <class C>
yoke_status weight_tiles(const yoke_launch *launch, const Conv &conv);
template <class C>
yoke_status weight_depthwise(const yoke_launch *launch, const Conv &conv);

// Returns whether neighbouring taps read neighbouring pixels, so a row of taps is a single run. Also returns false
// for sizes whose products would overflow.
inline bool reads_rows(const Sweep &s)
{
    constexpr int64_t kFar = (int64_t)1 << 30;
    return s.groups == 1 && s.x.tap_step == 1 && s.x.offset > -kFar && s.depth < kFar;
}

// Gathers terms as gather_terms does, a row of taps at a time, for a sweep with reads_rows().
template <class C>
inline void gather_rows_of_taps(const Sweep &s, yoke_dtype dtype, const Pixel &pixel, int64_t begin,
                                int64_t end, C *to)
{
    const int64_t row = s.x.taps * s.depth, line = s.x.length * s.depth;
    while (begin < end) {
        const int64_t place = begin % row, n = min(row - place, end - begin),
                      start = (pixel.x * s.x.step + s.x.offset) * s.depth + place,
                      y = pixel.y * s.y.step + s.y.offset + begin / row * s.y.tap_step;
        const bool is_inside = y >= 0 && y < s.y.length;
        const int64_t left = is_inside ? max(0, min(n, -start)) : n,
                      right = is_inside ? max(left, min(n, line - start)) : n;
        for (int64_t i = 0; i < left; i++) to[i] = (C)0;
        if (left < right)
            take_run(dtype, s.from, (pixel.image * s.y.length + y) * line + start + left,
                     right - left, to + left);
        for (int64_t i = right; i < n; i++) to[i] = (C)0;
        begin += n, to += n;
    }
}

// Gathers terms [begin, end) of the sum for a pixel of a group: the channels read by taps, 0 for padding.
template <class C>
inline void gather_terms(const Sweep &s, yoke_dtype dtype, const Pixel &pixel, int64_t group,
                         int64_t begin, int64_t end, C *to)
{
    if (reads_rows(s)) return gather_rows_of_taps(s, dtype, pixel, begin, end, to);
    Tap tap = sweep_tap(s, begin / s.depth);
    int64_t channel = begin % s.depth;
    while (begin < end) {
        const int64_t n = min(s.depth - channel, end - begin), at = read_at(s, pixel, tap);
        if (at < 0)
            __builtin_memset(to, 0, (size_t)n * sizeof(C));
        else
            take_run(dtype, s.from, at + group * s.depth + channel, n, to);
        begin += n, to += n, channel = 0;
        go_on(s, tap);
    }
}

// Adds x[i] * y[i] to to[i], for i below n.
template <class C>
YOKE_HD void add_products(const C *x, const C *y, int64_t n, C *to)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) to[i] += x[i] * y[i];
}

// Returns into how many parts the positions of a gradient by weight are cut. Besides the parts, `tiles` tiles can be
// computed at once. So the number is enough for a team, but each part has at least `least` positions.
inline int64_t position_parts(int64_t positions, int64_t tiles, int64_t least)
{
    constexpr int64_t kEnough = 16;
    return max(1, min(divide_up(kEnough, max(1, tiles)), positions / least));
}

// Adds `parts` arrays of n elements into the first, in order.
template <class C>
inline void add_parts(C *first, int64_t parts, int64_t n)
{
    parallel_range(n, max(1, kGrain / parts), [&](int64_t begin, int64_t end) {
        for (int64_t part = 1; part < parts; part++) {
            const C *from = first + part * n;
            for (int64_t i = begin; i < end; i++) first[i] += from[i];
        }
    });
}

YOKE_SIMD_END
