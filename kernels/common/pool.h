// Pooling as kernels see it: windows along height and width, and the windows that hold a pixel.
//
// Contract
//  * x and out, and the tensors beside them, are dense in one order: as [N, C, H, W] or as [N, H, W, C].
//  * Taps of a window are numbered row by row. The place of a maximum is the number of its tap.
#pragma once

#include "kernels/common/kernel.h"

namespace yoke::kernels {

// Height or width. A kernel of 0 is adaptive: the windows divide the axis, and their sizes differ by 1 at most.
struct PoolAxis {
    int64_t in, out, kernel, stride, padding, dilation;
};

// A pooling with axes that may know more about their divisions than PoolAxis.
template <class Axis>
struct PoolOf {
    yoke_dtype dtype;
    bool is_nhwc, has_wide_places, counts_padding;  // places of four bytes, else of one byte
    int64_t n, c, divisor;                          // 0: what a window has
    Axis y, x;
    void *in, *out, *places;  // sizes of x, out and out; places may be null

    YOKE_HD int64_t pixels_in() const { return n * y.in * x.in; }
    YOKE_HD int64_t pixels_out() const { return n * y.out * x.out; }
};
using Pool = PoolOf<PoolAxis>;

// The taps of a window that meet no padding, [begin, end); tap t stands at `first` + t * dilation.
struct Taps {
    int64_t first, begin, end;
};
// The windows that may hold a position, [begin, end).
struct Windows {
    int64_t begin, end;
};
}  // namespace yoke::kernels

YOKE_KERNELS_BEGIN

// Returns in * o / out, rounded down, without the product in * o.
YOKE_HD int64_t share_of(int64_t in, int64_t o, int64_t out)
{
    return in / out * o + in % out * o / out;
}

// Divisions of an axis. A backend may have overloads for an axis of its own.
YOKE_HD int64_t over_stride(const PoolAxis &a, int64_t n)
{
    return n / a.stride;
}
YOKE_HD int64_t over_dilation(const PoolAxis &a, int64_t n)
{
    return n / a.dilation;
}
// Returns the first position of adaptive window o.
YOKE_HD int64_t first_position(const PoolAxis &a, int64_t o)
{
    return share_of(a.in, o, a.out);
}
// Returns the first adaptive window that holds position i.
YOKE_HD int64_t first_window(const PoolAxis &a, int64_t i)
{
    return share_of(a.out, i, a.in);
}

// Returns the taps of sliding window o that meet no padding. Divisions are slow; most windows lie within x whole and
// need no division.
template <class Axis>
YOKE_HD Taps sliding_taps(const Axis &a, int64_t o)
{
    const int64_t first = o * a.stride - a.padding, last = first + (a.kernel - 1) * a.dilation;
    if (first >= 0 && last < a.in) return {first, 0, a.kernel};
    const int64_t begin = first < 0 ? over_dilation(a, a.dilation - 1 - first) : 0,
                  end = first < a.in
                            ? min(a.kernel, over_dilation(a, a.in - first + a.dilation - 1))
                            : 0;
    return {first, begin, max(begin, end)};
}

template <class Axis>
YOKE_HD Windows sliding_windows(const Axis &a, int64_t i)
{
    const int64_t last = i + a.padding, first = last - (a.kernel - 1) * a.dilation;
    return {first > 0 ? over_stride(a, first + a.stride - 1) : 0,
            min(a.out, over_stride(a, last) + 1)};
}

// Returns the taps of window o, sliding or adaptive, that meet no padding.
template <class Axis>
YOKE_HD Taps taps_of(const Axis &a, int64_t o)
{
    if (a.kernel) return sliding_taps(a, o);
    const int64_t first = first_position(a, o);
    return {first, 0, a.in - first_position(a, a.out - o - 1) - first};
}

template <class Axis>
YOKE_HD Windows windows_of(const Axis &a, int64_t i)
{
    if (a.kernel) return sliding_windows(a, i);
    return {first_window(a, i), a.out - first_window(a, a.in - i - 1)};
}

// Returns the tap of window o that stands at position i, or -1 if the position lies between taps.
template <class Axis>
YOKE_HD int64_t tap_at(const Axis &a, int64_t o, int64_t i)
{
    const int64_t from = i - (o * a.stride - a.padding);
    if (a.dilation == 1) return from;
    const int64_t tap = over_dilation(a, from);
    return tap * a.dilation == from ? tap : -1;
}

// Returns the number of positions of a window along an axis, by which the sum is divided. Positions in the padding
// count if p.counts_padding is set and the window slides.
template <class Axis>
YOKE_HD int64_t counted(const PoolOf<Axis> &p, const Axis &a, const Taps &taps)
{
    if (a.kernel == 0 || !p.counts_padding) return taps.end - taps.begin;
    return min(taps.first + a.kernel, a.in + a.padding) - taps.first;
}

template <class C, class Axis>
YOKE_HD C divisor_of(const PoolOf<Axis> &p, int64_t y, int64_t x)
{
    return p.divisor ? (C)p.divisor
                     : (C)counted(p, p.y, taps_of(p.y, y)) * (C)counted(p, p.x, taps_of(p.x, x));
}

// The ways to add up the values of a window: in the computing type; in double, if there are many values; or in double
// and made smaller, if a sum of finite values has overflowed.
enum class Adding { kPlain, kWide, kShrunk };

template <class C, Adding kHow>
using PoolSum = std::conditional_t<kHow == Adding::kPlain, C, double>;

// The way for a window whose sum is lost: a double holds every sum of smaller floats.
template <class C>
inline constexpr Adding kAddingAgain = sizeof(C) == 8 ? Adding::kShrunk : Adding::kWide;

template <Adding kHow>
inline constexpr double kPoolScale = kHow == Adding::kShrunk ? 0x1p-64 : 1;

// More terms than these are many: each is rounded to the digits of the sum before it.
inline constexpr int64_t kManyTerms = 256;

// Returns the number of terms of the longest sum along an axis: of a window, or in a gradient, of the windows'
// shares. Windows may be far larger than x, so the count stops above kManyTerms; then the product of two axes' counts
// fits.
YOKE_HD int64_t longest_sum(const PoolAxis &a)
{
    const int64_t terms =
        a.kernel ? a.kernel : max(divide_up(a.in, a.out), divide_up(a.out, a.in)) + 1;
    return min(terms, kManyTerms + 1);
}

YOKE_HD bool adds_many(const Pool &p)
{
    return longest_sum(p.y) * longest_sum(p.x) > kManyTerms;
}

// Returns whether v replaces the best value so far. The first maximum stays, and so does the first NaN.
template <class C>
YOKE_HD bool is_better(C v, C best)
{
    return !(v <= best) && best == best;
}

// ---- host code ------------------------------------------------------------------------------------------------------

inline bool lies_nhwc(const yoke_operand &x)
{
    return x.shape[1] > 1 && x.shape[2] * x.shape[3] > 1 && x.strides[1] == 1;
}

// Returns the pool of x and out from the parameters common to all poolings: kernel, and stride, padding, dilation.
inline Pool pool_of(const yoke_launch *launch, const yoke_operand &x, const yoke_operand &out)
{
    const int64_t *kernel = launch->params[0].v.ints, *window = launch->params[1].v.ints;
    const auto axis = [&](int i) {
        return PoolAxis{x.shape[2 + i], out.shape[2 + i], kernel[i],
                        window[i],      window[2 + i],    window[4 + i]};
    };
    Pool p = {};
    p.dtype = x.dtype;
    p.is_nhwc = lies_nhwc(x);
    p.n = x.shape[0], p.c = x.shape[1];
    p.y = axis(0), p.x = axis(1);
    p.in = x.data, p.out = out.data;
    return p;
}

// Returns the pool of maxima. If the op keeps no places, `places` has no elements, and the pool's places are null.
inline Pool max_pool_of(const yoke_launch *launch, const yoke_operand &x, const yoke_operand &out,
                        const yoke_operand &places)
{
    Pool p = pool_of(launch, x, out);
    p.places = places.numel ? places.data : nullptr;
    p.has_wide_places = places.dtype == YOKE_I32;
    return p;
}

// Returns the pool of means. Two more parameters tell whether padding counts, and the divisor.
inline Pool mean_pool_of(const yoke_launch *launch, const yoke_operand &x, const yoke_operand &out)
{
    Pool p = pool_of(launch, x, out);
    p.counts_padding = launch->params[3].v.i != 0;
    p.divisor = launch->params[4].v.i;
    return p;
}

YOKE_KERNELS_END
