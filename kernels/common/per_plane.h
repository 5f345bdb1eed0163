// One number for each plane of a tensor [N, C, ...], as norms over channels take and give them. Host code.
#pragma once

#include "kernels/common/operand.h"

YOKE_KERNELS_BEGIN

// An operand that broadcasts one number a plane over x: [N or 1, C, 1, ...].
struct PerPlane {
    yoke_operand operand{};
    int64_t shape[YOKE_MAX_NDIM], strides[YOKE_MAX_NDIM];

    PerPlane(const yoke_operand &x, bool per_sample, void *data, yoke_dtype dtype)
    {
        for (int axis = 0; axis < x.ndim; axis++) shape[axis] = 1, strides[axis] = 0;
        shape[1] = x.shape[1];
        strides[1] = 1;
        shape[0] = per_sample ? x.shape[0] : 1;
        strides[0] = x.shape[1];
        operand.data = data;
        operand.shape = shape;
        operand.strides = strides;
        operand.ndim = x.ndim;
        operand.dtype = dtype;
        operand.numel = shape[0] * shape[1];
    }
    PerPlane(const PerPlane &) = delete;
    PerPlane &operator=(const PerPlane &) = delete;
};

YOKE_KERNELS_END
