// Rows along one axis, at every place of the other axes. Scans, sorts and softmax take such rows in turn. Host code.
#pragma once

#include "kernels/common/loop.h"

YOKE_KERNELS_BEGIN

// Rows of operands. operands[0] gives the shape; the other operands broadcast to this shape.
template <int N>
struct AxisRows {
    Loop<N> outer;         // the other axes
    int64_t length = 1;    // length of a row
    int64_t step[N] = {};  // bytes along it

    AxisRows(const yoke_operand *const (&operands)[N], int axis)
    {
        const yoke_operand &first = *operands[0];
        begin_loop<N>(outer, operands);
        for (int a = first.ndim - 1; a >= 0; a--)
            if (a != axis) add_axis_of<N>(outer, operands, a);
        finish_loop<N>(outer);
        if (axis < 0 || axis >= first.ndim) return;  // a number: a row with a single element
        length = first.shape[axis];
        for (int i = 0; i < N; i++) step[i] = step_of(*operands[i], axis, first.ndim);
    }
};

YOKE_KERNELS_END
