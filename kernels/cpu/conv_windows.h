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

// Returns whether a window is a single pixel, without stride and padding. Windows are then the pixels of x.
inline bool is_plain(const Conv &c)
{
    return taps_of(c) == 1 && c.stride[0] == 1 && c.stride[1] == 1 && c.padding[0] == 0 &&
           c.padding[1] == 0;
}

// Copies the windows of positions [first, first + count) of the result, counted over all images, for a group. The
// team copies. Places in the padding give zeros.
void copy_windows(const Conv &c, int64_t group, int64_t first, int64_t count, char *windows);

// Copies between the weight, [out, channels and taps], and the turned weight, [out, taps and channels]: take_weight
// writes the weight, give_weight the turned weight. The team copies.
void take_weight(const Conv &c, const void *turned);
void give_weight(const Conv &c, void *turned);

}  // namespace yoke::cpu
