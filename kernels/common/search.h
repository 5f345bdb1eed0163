// Search in sorted values by halving.
#pragma once

#include "kernels/common/numeric.h"

YOKE_KERNELS_BEGIN

// Returns how many elements of a sorted row are below x, or with `right` not above x. Beside NaN, every comparison is
// false: NaN in the row is passed, and x that is NaN stands at the end.
template <class T>
YOKE_HD int64_t sorted_place(const T *row, int64_t length, T x, bool right)
{
    const compute_type<T> wanted = load<T>(x);
    int64_t low = 0, high = length;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        const compute_type<T> here = load<T>(row[middle]);
        if (right ? here > wanted : here >= wanted)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

YOKE_KERNELS_END
