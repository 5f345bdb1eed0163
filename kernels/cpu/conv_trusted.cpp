#include "kernels/cpu/conv_trusted.h"

#include <algorithm>

#include "kernels/cpu/conv_cut.h"
#include "kernels/cpu/gemm.h"

namespace yoke::cpu {

bool is_small_enough(const Conv &c)
{
    constexpr int64_t kMost = INT32_MAX, kMostFloats = kMost / 4, kMorePadding = 64;
    return c.n * c.c * c.h * c.w <= kMost && c.n * c.o * c.oh * c.ow <= kMost &&
           c.c * c.h * c.w <= kMostFloats && c.o * c.oh * c.ow <= kMostFloats &&
           weight_numel(c) <= kMostFloats && c.padding[0] <= kMorePadding + c.h &&
           c.padding[1] <= kMorePadding + c.w && std::max(c.dilation[0], c.dilation[1]) <= kMost &&
           std::max(c.stride[0], c.stride[1]) <= kMost;
}

bool is_proven(const Conv &c)
{
    const bool is_strided_point = c.kh * c.kw == 1 && std::max(c.stride[0], c.stride[1]) > 1;
    constexpr int64_t kBlock = 16;  // channels that a kernel takes at once, at most
    const bool has_ragged_block = c.c / c.groups % kBlock != 0;
    if (c.kind == ConvKind::kWeight && is_strided_point && has_ragged_block) return false;
    if (c.dtype != YOKE_BF16) return true;
    if (is_strided_point && (has_ragged_block || c.o / c.groups % kBlock != 0)) return false;
    if (c.kh * c.kw == 1) return !is_strided_point || (c.padding[0] == 0 && c.padding[1] == 0);
    if (c.kind == ConvKind::kForward && c.stride[1] > 1 && c.kw > c.stride[1] &&
        c.c / c.groups > kAmxTile)
        return false;
    const int64_t size[] = {c.h, c.w}, out[] = {c.oh, c.ow}, kernel[] = {c.kh, c.kw};
    for (int axis = 0; axis < 2; axis++) {
        const int64_t before = c.padding[axis], behind = (out[axis] - 1) * c.stride[axis] +
                                                         kernel[axis] - before - size[axis];
        if (kernel[axis] < c.stride[axis] || c.dilation[axis] > 1) return false;
        if (std::max(before, behind) >= kernel[axis]) return false;
    }
    return true;
}

}  // namespace yoke::cpu
