// Convolutions in bf16 as products of matrices, one for each group: the windows, each a row, [positions, taps and
// channels of the group], and the weight in that order.
#pragma once

#include "kernels/cpu/conv.h"

namespace yoke::cpu {

constexpr int64_t kHalfBytes = 2;  // size of an element

inline int64_t taps_of(const Conv &c)
{
    return c.kh * c.kw;
}

// Returns the terms of a sum: the elements of a window in one group.
inline int64_t terms_of(const Conv &c)
{
    return taps_of(c) * (c.c / c.groups);
}

// Windows are then the pixels of x as they lie.
inline bool is_plain(const Conv &c)
{
    return taps_of(c) == 1 && c.stride[0] == 1 && c.stride[1] == 1 && c.padding[0] == 0 &&
           c.padding[1] == 0;
}

// By the team: the windows of some positions of the result, of all images in turn; zeros where they meet padding.
void copy_windows(const Conv &c, int64_t group, int64_t first, int64_t count, char *windows);

// By the team: the weight, [out, channels and taps], from the other order, [out, taps and channels], and into it.
void take_weight(const Conv &c, const void *turned);
void give_weight(const Conv &c, void *turned);

}  // namespace yoke::cpu
