// The axes that a parameter names.
#pragma once

#include "kernels/common/operand.h"

YOKE_KERNELS_BEGIN

// Of kind none (all of them), int or ints.
inline void mark_axes(const yoke_arg &axis, int ndim, bool *is_marked)
{
    for (int i = 0; i < ndim; i++) is_marked[i] = axis.kind == YOKE_ARG_NONE;
    if (axis.kind == YOKE_ARG_INT) is_marked[axis.v.i] = true;
    if (axis.kind == YOKE_ARG_INTS)
        for (int32_t i = 0; i < axis.count; i++) is_marked[axis.v.ints[i]] = true;
}

YOKE_KERNELS_END
