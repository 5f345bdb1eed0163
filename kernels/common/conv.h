// Convolution as kernels see it: its sizes, and the sweep over positions. The result and the gradient by data consist
// of sweeps.
//
// Contract
//  * Tensors [N, C, H, W] are dense as [N, H, W, C]. A weight is row-major [out, in / groups, height, width].
//  * For each written pixel, a sweep sums over taps of the window: the pixel read by the tap times a matrix of the
//    weight. In the gradient by data with a stride, only some taps reach a pixel. Pixels a stride apart have the same
//    taps. Each such phase is a sweep.
#pragma once

#include "kernels/common/kernel.h"

namespace yoke::kernels {

enum class ConvKind { kForward, kData, kWeight };

struct Conv {
    ConvKind kind;
    yoke_dtype dtype;
    int64_t n, c, h, w;  // sizes of x, over which the window slides
    int64_t o, oh, ow;   // sizes of out
    int64_t kh, kw, stride[2], padding[2], dilation[2], groups;
    void *x, *weight, *out;  // the kind decides which tensor is written: out, x or weight
    const void *bias;        // added to the written tensor, or null
};

// Height or width of a sweep.
struct SweepAxis {
    int64_t positions, taps;
    int64_t step, offset, tap_step;  // tap m of position q reads q * step + offset + m * tap_step
    int64_t length;                  // length of the tensor read; beyond is padding
    int64_t place_step, place;       // position q is written at q * place_step + place
    int64_t places;                  // the length of what is written
    int64_t first, next;             // tap m is element first + m * next of the window
};

struct Sweep {
    SweepAxis y, x;
    int64_t n, groups;
    int64_t depth, columns;  // channels of a group in the tensor read, and in the written tensor
    int64_t row_length;      // length of a row of the window
    int64_t group_step, depth_step, column_step;  // steps in the weight, in elements
    const void *from, *weight, *bias;
    void *to;

    YOKE_HD int64_t rows() const { return n * y.positions * x.positions; }
    YOKE_HD int64_t taps() const { return y.taps * x.taps; }
    YOKE_HD int64_t terms() const { return taps() * depth; }
};

// A position of a sweep, and a tap of it.
struct Pixel {
    int64_t image, y, x;
};
struct Tap {
    int64_t y, x;
};

}  // namespace yoke::kernels

YOKE_KERNELS_BEGIN

YOKE_HD Pixel sweep_position(const Sweep &s, int64_t row)
{
    return {row / (s.y.positions * s.x.positions), row / s.x.positions % s.y.positions,
            row % s.x.positions};
}

YOKE_HD Tap sweep_tap(const Sweep &s, int64_t number)
{
    return {number / s.x.taps, number % s.x.taps};
}

// Moves to the next pixel in row-major order; after the last pixel of an image, to the next image.
YOKE_HD void go_on(const Sweep &s, Pixel &q)
{
    if (++q.x < s.x.positions) return;
    q.x = 0;
    if (++q.y < s.y.positions) return;
    q.y = 0;
    q.image++;
}

YOKE_HD void go_on(const Sweep &s, Tap &tap)
{
    if (++tap.x < s.x.taps) return;
    tap.x = 0;
    tap.y++;
}

// Returns the index of the first channel of the pixel written at a position.
YOKE_HD int64_t written_at(const Sweep &s, const Pixel &q)
{
    const int64_t y = q.y * s.y.place_step + s.y.place, x = q.x * s.x.place_step + s.x.place;
    return ((q.image * s.y.places + y) * s.x.places + x) * s.groups * s.columns;
}

// Returns the index of the first channel of the pixel read by a tap, or -1 if the tap meets padding.
YOKE_HD int64_t read_at(const Sweep &s, const Pixel &q, const Tap &tap)
{
    const int64_t y = q.y * s.y.step + s.y.offset + tap.y * s.y.tap_step,
                  x = q.x * s.x.step + s.x.offset + tap.x * s.x.tap_step;
    if (y < 0 || y >= s.y.length || x < 0 || x >= s.x.length) return -1;
    return ((q.image * s.y.length + y) * s.x.length + x) * s.groups * s.depth;
}

// Returns the index of a tap's element within a matrix of the weight.
YOKE_HD int64_t window_at(const Sweep &s, const Tap &tap)
{
    return (s.y.first + tap.y * s.y.next) * s.row_length + s.x.first + tap.x * s.x.next;
}

// ---- host code ------------------------------------------------------------------------------------------------------

inline Conv conv_of(const yoke_launch *launch, ConvKind kind)
{
    const bool is_weight = kind == ConvKind::kWeight;
    const yoke_operand *o = launch->operands, *bias = is_weight ? nullptr : o + 2;
    const yoke_operand &x = kind == ConvKind::kForward ? o[0]
                            : is_weight                ? o[1]
                                                       : o[3],
                       &out = kind == ConvKind::kForward ? o[3] : o[0],
                       &weight = is_weight ? o[2] : o[1];
    const yoke_arg *params = launch->params + (kind != ConvKind::kForward);
    const int64_t *window = params[0].v.ints;
    Conv c = {};
    c.kind = kind;
    c.dtype = o[0].dtype;
    c.n = x.shape[0], c.c = x.shape[1], c.h = x.shape[2], c.w = x.shape[3];
    c.o = out.shape[1], c.oh = out.shape[2], c.ow = out.shape[3];
    c.kh = weight.shape[2], c.kw = weight.shape[3];
    for (int axis = 0; axis < 2; axis++) {
        c.stride[axis] = window[axis];
        c.padding[axis] = window[2 + axis];
        c.dilation[axis] = window[4 + axis];
    }
    c.groups = params[1].v.i;
    c.x = x.data, c.weight = weight.data, c.out = out.data;
    c.bias = bias && is_present(*bias) ? bias->data : nullptr;
    return c;
}

// Returns whether each channel has a window of its own: groups of one input channel and one output channel.
inline bool is_depthwise(const Conv &c)
{
    return c.c == c.groups && c.o == c.groups;
}

// Returns the axis of height (0) or width (1) of the sweep that computes the result.
inline SweepAxis forward_axis(const Conv &c, int axis)
{
    const int64_t from = axis ? c.w : c.h, to = axis ? c.ow : c.oh, taps = axis ? c.kw : c.kh;
    return {to, taps, c.stride[axis], -c.padding[axis], c.dilation[axis], from, 1, 0, to, 0, 1};
}

inline Sweep forward_sweep(const Conv &c)
{
    const int64_t window = c.kh * c.kw, depth = c.c / c.groups, columns = c.o / c.groups;
    return {forward_axis(c, 0),
            forward_axis(c, 1),
            c.n,
            c.groups,
            depth,
            columns,
            c.kw,
            columns * depth * window,
            window,
            depth * window,
            c.x,
            c.weight,
            c.bias,
            c.out};
}

inline int64_t greatest_divisor(int64_t a, int64_t b)
{
    while (b) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

// Returns the distance between taps that reach the same positions of x. This is also the number of phases that taps
// reach, if the axis has that many taps.
inline int64_t phase_step(const Conv &c, int axis)
{
    return c.stride[axis] / greatest_divisor(c.stride[axis], c.dilation[axis]);
}

inline int64_t phases(const Conv &c, int axis)
{
    return min(axis ? c.kw : c.kh, phase_step(c, axis));
}

// Returns the axis of the phase reached by tap `first`. If x ends before the phase's first position, the axis has no
// positions. If `first` is below 0, the axis has all positions and no taps.
inline SweepAxis data_axis(const Conv &c, int axis, int64_t first)
{
    const int64_t length = axis ? c.w : c.h, from = axis ? c.ow : c.oh, taps = axis ? c.kw : c.kh,
                  stride = c.stride[axis], step = phase_step(c, axis);
    if (first < 0) return {length, 0, 1, 0, 0, from, 1, 0, length, 0, 1};
    const int64_t reach = first * c.dilation[axis] - c.padding[axis], rest = reach % stride,
                  place = rest < 0 ? rest + stride : rest;
    if (place >= length) return {};
    return {(length - place - 1) / stride + 1,
            (taps - first - 1) / step + 1,
            1,
            (place - reach) / stride,
            -(c.dilation[axis] / (stride / step)),
            from,
            stride,
            place,
            length,
            first,
            step};
}

inline Sweep data_sweep(const Conv &c, int64_t first_y, int64_t first_x)
{
    const int64_t window = c.kh * c.kw, depth = c.o / c.groups, columns = c.c / c.groups;
    return {data_axis(c, 0, first_y),
            data_axis(c, 1, first_x),
            c.n,
            c.groups,
            depth,
            columns,
            c.kw,
            columns * depth * window,
            columns * window,
            window,
            c.out,
            c.weight,
            c.bias,
            c.x};
}

// Calls run(sweep), in order, for the sweeps of the result or of the gradient by data. If taps miss pixels, the first
// sweep writes all pixels without taps, and later sweeps overwrite their own pixels. Returns the status of the first
// failure.
template <class F>
inline yoke_status each_sweep(const Conv &c, const F &run)
{
    if (c.kind == ConvKind::kForward) return run(forward_sweep(c));
    const int64_t down = phases(c, 0), across = phases(c, 1);
    if (down < c.stride[0] || across < c.stride[1])  // pixels that no tap reaches
        if (const yoke_status status = run(data_sweep(c, -1, -1))) return status;
    for (int64_t i = 0; i < down * across; i++) {
        const Sweep sweep = data_sweep(c, i / across, i % across);
        if (sweep.rows() == 0) continue;
        if (const yoke_status status = run(sweep)) return status;
    }
    return YOKE_OK;
}

YOKE_KERNELS_END
