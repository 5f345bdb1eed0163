// Axes of a reduction: the reduced axes, and the loops over the operands. Host code.
#pragma once

#include "kernels/common/loop.h"

YOKE_KERNELS_BEGIN

// Sets is_marked for each of the ndim axes: true if the parameter names the axis. The parameter has kind none (all
// axes), int or ints.
inline void mark_axes(const yoke_arg &axis, int ndim, bool *is_marked)
{
    for (int i = 0; i < ndim; i++) is_marked[i] = axis.kind == YOKE_ARG_NONE;
    if (axis.kind == YOKE_ARG_INT) is_marked[axis.v.i] = true;
    if (axis.kind == YOKE_ARG_INTS)
        for (int32_t i = 0; i < axis.count; i++) is_marked[axis.v.ints[i]] = true;
}

// Marks the axes of x that `kept` is missing or has with another length. `kept` broadcasts to x.
inline void mark_missing_axes(const yoke_operand &kept, const yoke_operand &x, bool *is_marked)
{
    for (int axis = 0; axis < x.ndim; axis++) {
        const int own = axis - (x.ndim - kept.ndim);
        is_marked[axis] = own < 0 || kept.shape[own] != x.shape[axis];
    }
}

// Returns how many elements of x are reduced to each element of the result; 0 if the result has no elements.
inline int64_t elements_a_result(const yoke_operand &x, const yoke_operand &result)
{
    return result.numel ? x.numel / result.numel : 0;
}

// Operands of a kept element: x, the result, and as many more as an op reads.
inline constexpr int kX = 0, kResult = 1, kMore = 2;

template <int N>
struct ReducedAxes {
    Loop<N> kept;     // by x's strides, where the operands' disagree
    Loop<1> reduced;  // axes of x

    // Plans both loops. The result may omit the reduced axes. Each further operand has these axes with length 1; a
    // null pointer stands for no operand.
    template <class... More>
    ReducedAxes(const yoke_operand &x, const yoke_operand &result, const bool *is_reduced,
                const More *...others)
    {
        static_assert(sizeof...(others) == N - kMore, "each further side has an operand");
        const yoke_operand *const more[N - kMore + 1] = {others..., nullptr};
        begin_loop<1>(reduced, {&x});
        kept.ndim = 0;
        kept.numel = 1;
        kept.data[kX] = data_of<char>(x);
        kept.data[kResult] = data_of<char>(result);
        for (int i = kMore; i < N; i++)
            kept.data[i] = more[i - kMore] ? data_of<char>(*more[i - kMore]) : nullptr;
        const bool keepdim = result.ndim == x.ndim;
        int result_axis = result.ndim - 1;
        for (int axis = x.ndim - 1; axis >= 0; axis--) {
            const int64_t step = x.strides[axis] * dtype_size(x.dtype);
            if (is_reduced[axis]) {
                add_axis<1>(reduced, x.shape[axis], {step});
            } else {
                int64_t steps[N] = {step, result.strides[result_axis] * dtype_size(result.dtype)};
                for (int i = kMore; i < N; i++)
                    steps[i] = more[i - kMore] ? step_of(*more[i - kMore], axis, x.ndim) : 0;
                add_axis<N>(kept, x.shape[axis], steps);
            }
            if (keepdim || !is_reduced[axis]) result_axis--;
        }
        finish_loop<N>(kept);
        finish_loop<1>(reduced);
    }
};

YOKE_KERNELS_END
