// Distance from 1 to the next larger number of a dtype: rms_norm's default epsilon. Host code.
#pragma once

#include "kernels/common/operand.h"

YOKE_KERNELS_BEGIN

inline double epsilon_of(yoke_dtype dtype)
{
    switch (dtype) {
        case YOKE_F64:
            return 0x1p-52;
        case YOKE_F16:
            return 0x1p-10;
        case YOKE_BF16:
            return 0x1p-7;
        default:
            return 0x1p-23;
    }
}

YOKE_KERNELS_END
