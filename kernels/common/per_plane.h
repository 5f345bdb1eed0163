// Planes of a tensor [N, C, ...], with one number for each plane, as norms over channels use them. Host code.
#pragma once

#include "kernels/common/loop.h"

YOKE_KERNELS_BEGIN

// Plans the loops over planes. All values of a plane share one result: the values of a channel, or of a channel in
// one sample. `kept` numbers planes row-major by [C] or [N, C]; `reduced` has the axes within a plane.
template <int N>
inline void plan_planes(Loop<N> &kept, Loop<N> &reduced, const yoke_operand *const (&operands)[N],
                        bool per_sample)
{
    begin_loop<N>(kept, operands);
    begin_loop<N>(reduced, operands);
    for (int axis = operands[0]->ndim - 1; axis >= 0; axis--) {
        const bool is_kept = axis == 1 || (axis == 0 && per_sample);
        add_axis_of<N>(is_kept ? kept : reduced, operands, axis);
    }
    if (kept.ndim == 0) finish_loop<N>(kept);
    join_axes<N>(kept);
    finish_loop<N>(reduced);
}

// Operand that broadcasts one number a plane over x: [N or 1, C, 1, ...].
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
