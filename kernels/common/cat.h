// cat: where each tensor's part of the result is. Host code.
#pragma once

#include "kernels/common/operand.h"

YOKE_KERNELS_BEGIN

// Calls copy(part, x) for each tensor x with elements; `part` is a view of x's part of the result. Returns the status
// of the first failure.
template <class Copy>
inline yoke_status copy_into_parts(const yoke_launch *launch, const Copy &copy)
{
    const int count = launch->operand_count - 1, axis = (int)launch->params[0].v.i;
    const yoke_operand &out = launch->operands[count];
    char *place = data_of<char>(out);
    for (int i = 0; i < count; i++) {
        const yoke_operand &x = launch->operands[i];
        if (x.numel == 0) continue;
        yoke_operand part = out;
        part.data = place;
        part.shape = x.shape;
        part.numel = x.numel;
        if (x.shape[axis] != out.shape[axis]) part.flags &= ~YOKE_OPERAND_CONTIGUOUS;
        if (const yoke_status status = copy(part, x)) return status;
        place += x.shape[axis] * out.strides[axis] * dtype_size(out.dtype);
    }
    return YOKE_OK;
}

YOKE_KERNELS_END
