// Interpolation of planes as kernels see it: for each position of the result, two positions of x and their weights.
//
// Contract
//  * x and the result are dense in one order, as [N, C, H, W] or as [N, H, W, C].
//  * Positions follow PyTorch, in double: a float would lose digits of the share. The near position never decreases
//    along the result, so the positions of the result that read a position of x lie together.
#pragma once

#include "kernels/common/pool.h"

namespace yoke::kernels {

// Height or width: lengths of x and of the result; `step` is the distance in x for a step of the result. If the axis is
// not linear, aligns_corners takes the element nearest to the middle of a step, else the element at its beginning.
struct ResizeAxis {
    int64_t in, out;
    double step;
    bool is_linear, aligns_corners;
};

// A call. `from` is what the kernel reads; in a gradient that is the result's gradient.
struct Resize {
    yoke_dtype dtype;
    bool is_nhwc;
    int64_t n, c;
    ResizeAxis y, x;
    const void *from;
    void *to;

    // Returns planes of one run of lanes a pixel: images in NHWC, else channels.
    int64_t planes() const { return is_nhwc ? n : n * c; }
    int64_t lanes() const { return is_nhwc ? c : 1; }
};

// Two places of x that a position of the result reads: near * (1 - share) + far * share. Lengths are below 2^31.
template <class C>
struct Sample {
    int32_t near, far;
    C share;
};

}  // namespace yoke::kernels

YOKE_KERNELS_BEGIN

template <class C>
YOKE_HD Sample<C> sample_of(const ResizeAxis &a, int64_t o)
{
    const auto last = (int32_t)(a.in - 1);
    if (!a.is_linear) {
        const float middle = a.aligns_corners ? 0.5f : 0.0f;
        const auto place = (int64_t)(((float)o + middle) * (float)a.step);
        const int32_t near = place < last ? (int32_t)place : last;
        return {near, near, (C)0};
    }
    const double exact = a.aligns_corners ? a.step * (double)o : a.step * ((double)o + 0.5) - 0.5;
    const double place = exact > 0 ? exact : 0;
    const int32_t near = place < last ? (int32_t)place : last;
    const double share = place - near;
    return {near, near < last ? near + 1 : last, (C)(share < 1 ? share : 1)};
}

// Returns the weight of position i of x in a sample.
template <class C>
YOKE_HD C weight_of(const Sample<C> &sample, int32_t i)
{
    return (sample.near == i ? (C)1 - sample.share : (C)0) +
           (sample.far == i ? sample.share : (C)0);
}

// ---- host code ------------------------------------------------------------------------------------------------------

// Returns the call of x and the result, of which one is written. The last parameters of the two ops are the same.
inline Resize resize_of(const yoke_launch *launch, const yoke_operand &x, const yoke_operand &out)
{
    const yoke_arg *params = launch->params;
    const auto axis = [&](int i) {
        return ResizeAxis{x.shape[2 + i], out.shape[2 + i], float_param(params[1 + i]),
                          params[3].v.i != 0, params[4].v.i != 0};
    };
    return {x.dtype, lies_nhwc(x), x.shape[0], x.shape[1], axis(0), axis(1), x.data, out.data};
}

YOKE_KERNELS_END
