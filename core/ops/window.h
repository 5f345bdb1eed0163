// window.h: common parts of ops that slide a window over height and width: their arguments, and NHWC tensors.
#pragma once

#include "core/ops/family.h"

#include <array>

namespace yoke {

// Numbers for height and width.
using Pair = std::array<int64_t, 2>;

// Reads an argument for height and width: absent, a number for both, or two numbers. Raises YOKE_E_VALUE for other
// lists, and for a number below `least`.
Pair pair_of(const char *call, const char *arg, const std::optional<IntList> &given, int64_t absent,
             int64_t least);

// Computes out = x * y + z. Returns false if the result does not fit into an int64.
inline bool multiply_add(int64_t x, int64_t y, int64_t z, int64_t &out)
{
    int64_t product;
    return !__builtin_mul_overflow(x, y, &product) && !__builtin_add_overflow(product, z, &out);
}

// Computes how many elements a window of `kernel` with gaps of `dilation` covers. Returns false if the number
// overflows.
inline bool window_span(int64_t kernel, int64_t dilation, int64_t &span)
{
    return multiply_add(kernel - 1, dilation, 1, span);
}

// Returns stride, padding and dilation for kernels, for a window sliding over a size. A kernel of a single element
// gets dilation 1, since engines would choose other kernels for gaps. A stride beyond the end is cut, since it has no
// effect, but may overflow.
Dims settled_window(const Pair &kernel, const Pair &size, const Pair &stride, const Pair &padding,
                    const Pair &dilation);

// Returns the strides of [N, C, H, W] that lies in memory as [N, H, W, C].
Dims nhwc_strides(IntList shape);
// Returns whether x lies in memory as [N, H, W, C]; axes of length 1 may have any stride.
bool lies_nhwc(const yoke_tensor &x);
// Returns x itself if it lies NHWC, else an NHWC copy; the tape records the copy.
Tensor channels_last(const yoke_tensor &x);
// Returns whether ops of this kind give a result in NHWC for x: where x lies so, and not row-major too.
bool goes_nhwc(const yoke_tensor &x);
// Returns x [N, C, H, W], or [C, H, W] as a batch of one, dense in NHWC or row-major.
Tensor dense_batch(const yoke_tensor &x);
// Returns a gradient in the memory order of its tensor: NHWC if `is_nhwc`, else row-major.
Tensor in_order(const yoke_tensor &grad, bool is_nhwc);
// Returns the shape of a result of height and width `size` for [N, C, H, W].
Dims shape_of(const yoke_tensor &like, const IntList &size);
// Adds a result in NHWC if `is_nhwc`, else row-major.
void plan_in_order(Plan &plan, const Dims &shape, yoke_dtype dtype, bool is_nhwc);

}  // namespace yoke
