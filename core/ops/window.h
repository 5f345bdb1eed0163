// window.h: what ops that slide a window over height and width share: their arguments, and tensors that lie NHWC.
#pragma once

#include "core/ops/family.h"

#include <array>

namespace yoke {

// A number for height and one for width.
using Pair = std::array<int64_t, 2>;

// An argument that may be absent, one number for both, or two; none may be below `least`.
Pair pair_of(const char *call, const char *arg, const std::optional<IntList> &given, int64_t absent,
             int64_t least);

// Whether a sum or product of sizes fits into an int64; `out` is that.
inline bool multiply_add(int64_t x, int64_t y, int64_t z, int64_t &out)
{
    int64_t product;
    return !__builtin_mul_overflow(x, y, &product) && !__builtin_add_overflow(product, z, &out);
}

// How many elements a window of `kernel` with gaps of `dilation` covers; false where that overflows.
inline bool window_span(int64_t kernel, int64_t dilation, int64_t &span)
{
    return multiply_add(kernel - 1, dilation, 1, span);
}

// Stride, padding and dilation as kernels take them, for a window that slides over a size. One element has no gaps, for
// which engines would take other kernels, and a stride beyond the end leads nowhere, but may overflow.
Dims settled_window(const Pair &kernel, const Pair &size, const Pair &stride, const Pair &padding,
                    const Pair &dilation);

// The strides of [N, C, H, W] that lies in memory as [N, H, W, C].
Dims nhwc_strides(IntList shape);
// Whether x lies so; axes of length 1 may have any stride.
bool lies_nhwc(const yoke_tensor &x);
// x itself if it lies so, else a copy that does; recorded.
Tensor channels_last(const yoke_tensor &x);

}  // namespace yoke
