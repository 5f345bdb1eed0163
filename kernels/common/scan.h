// cumsum: its elements, the type of the sum, and the row's layout in either direction.
//
// Contract: floats are added in double, so the last element of a long sum is as accurate as the first. Integers and
// bools are added in 64 bits.
#pragma once

#include "kernels/common/axis_rows.h"

YOKE_KERNELS_BEGIN

template <class T>
using scan_type = std::conditional_t<is_float<T>, double, uint64_t>;
template <class T>
using scan_result = std::conditional_t<is_float<T>, T, int64_t>;

template <class T>
YOKE_HD scan_type<T> scan_term(T x)
{
    if constexpr (is_float<T>)
        return (double)load<T>(x);
    else
        return (uint64_t)convert<int64_t>(x);
}

template <class T>
YOKE_HD scan_result<T> scan_sum(scan_type<T> sum)
{
    if constexpr (is_float<T>)
        return convert<T>(sum);
    else
        return (int64_t)sum;
}

// Rows of out and x, from the first element of the direction on.
struct ScanRows : AxisRows<2> {
    ScanRows(const yoke_operand &out, const yoke_operand &x, int axis, bool reverse)
        : AxisRows<2>({&out, &x}, axis)
    {
        if (!reverse) return;
        for (int i = 0; i < 2; i++) {
            outer.data[i] += step[i] * (length - 1);
            step[i] = -step[i];
        }
    }
};

YOKE_KERNELS_END
