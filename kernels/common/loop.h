// Axes of a launch as one loop nest: sorted, joined, with a stride for each operand.
//
// Contract
//  * plan_loop drops axes of length 1, puts the axis with the smallest strides innermost, and joins axes that lie end
//    to end. So a contiguous or merely permuted tensor becomes one run. Broadcast axes have stride 0.
//  * Host code: a device gets the finished Loop.
#pragma once

#include "kernels/common/operand.h"

YOKE_KERNELS_BEGIN

template <int N>
struct Loop {
    int ndim;                          // at least 1
    int64_t shape[YOKE_MAX_NDIM];      // axis 0 is the innermost
    int64_t stride[YOKE_MAX_NDIM][N];  // bytes
    char *data[N];
    int64_t numel;
};

// Returns the distance between two neighbours along an axis: the stride without its sign.
YOKE_HD int64_t stride_size(int64_t stride)
{
    return stride < 0 ? -stride : stride;
}

// Returns whether axis a should be inside axis b, because its stride is smaller. The first operand with two different
// strides other than 0 decides. Without such an operand, returns false.
template <int N>
inline bool is_inner(const int64_t (&a)[N], const int64_t (&b)[N])
{
    for (int i = 0; i < N; i++) {
        int64_t size_a = stride_size(a[i]), size_b = stride_size(b[i]);
        if (size_a && size_b && size_a != size_b) return size_a < size_b;
    }
    return false;
}

// Returns whether axis `outer` continues where axis `inner` ends, for every operand.
template <int N>
inline bool continues(const Loop<N> &loop, int inner, int outer)
{
    for (int i = 0; i < N; i++)
        if (loop.stride[outer][i] != loop.stride[inner][i] * loop.shape[inner]) return false;
    return true;
}

template <int N>
inline void sort_axes(Loop<N> &loop)
{
    for (int i = 1; i < loop.ndim; i++) {
        for (int j = i; j > 0 && is_inner<N>(loop.stride[j], loop.stride[j - 1]); j--) {
            int64_t length = loop.shape[j];
            loop.shape[j] = loop.shape[j - 1];
            loop.shape[j - 1] = length;
            for (int k = 0; k < N; k++) {
                int64_t stride = loop.stride[j][k];
                loop.stride[j][k] = loop.stride[j - 1][k];
                loop.stride[j - 1][k] = stride;
            }
        }
    }
}

template <int N>
inline void join_axes(Loop<N> &loop)
{
    int last = 0;
    for (int axis = 1; axis < loop.ndim; axis++) {
        if (continues<N>(loop, last, axis)) {
            loop.shape[last] *= loop.shape[axis];
            continue;
        }
        last++;
        loop.shape[last] = loop.shape[axis];
        for (int k = 0; k < N; k++) loop.stride[last][k] = loop.stride[axis][k];
    }
    loop.ndim = last + 1;
}

// Begins a loop without axes, at the beginning of each operand.
template <int N>
inline void begin_loop(Loop<N> &loop, const yoke_operand *const (&operands)[N])
{
    loop.ndim = 0;
    loop.numel = 1;
    for (int i = 0; i < N; i++) loop.data[i] = data_of<char>(*operands[i]);
}

// Adds an axis, with the stride (in bytes) of every operand; leaves out an axis of length 1. Axes may come in any
// order: finish_loop() sorts and joins them.
template <int N>
inline void add_axis(Loop<N> &loop, int64_t length, const int64_t (&strides)[N])
{
    if (length == 1) return;
    loop.shape[loop.ndim] = length;
    for (int i = 0; i < N; i++) loop.stride[loop.ndim][i] = strides[i];
    loop.ndim++;
    loop.numel *= length;
}

template <int N>
inline void finish_loop(Loop<N> &loop)
{
    if (loop.ndim == 0) {
        loop.ndim = 1;
        loop.shape[0] = 1;
        for (int i = 0; i < N; i++) loop.stride[0][i] = 0;
    } else if (loop.ndim > 1) {
        sort_axes<N>(loop);
        join_axes<N>(loop);
    }
}

// Returns an operand's step in bytes along `axis` of a shape with `ndim` axes; 0 if the operand is broadcast along
// this axis.
inline int64_t step_of(const yoke_operand &operand, int axis, int ndim)
{
    int own = axis - (ndim - operand.ndim);
    if (own < 0 || operand.shape[own] == 1) return 0;
    return operand.strides[own] * dtype_size(operand.dtype);
}

// Adds the axis `axis` of operands[0] to the loop. The other operands broadcast to the shape of operands[0].
template <int N>
inline void add_axis_of(Loop<N> &loop, const yoke_operand *const (&operands)[N], int axis)
{
    const yoke_operand &first = *operands[0];
    int64_t strides[N];
    for (int i = 0; i < N; i++) strides[i] = step_of(*operands[i], axis, first.ndim);
    add_axis<N>(loop, first.shape[axis], strides);
}

// Plans a loop over the shape of operands[0]. The other operands broadcast to this shape.
template <int N>
inline void plan_loop(Loop<N> &loop, const yoke_operand *const (&operands)[N])
{
    begin_loop<N>(loop, operands);
    for (int axis = operands[0]->ndim - 1; axis >= 0; axis--) add_axis_of<N>(loop, operands, axis);
    finish_loop<N>(loop);
}

// Plans a loop over axes [first, last) of operands[0] in row-major order, without sorting the axes.
template <int N>
inline void plan_ordered(Loop<N> &loop, const yoke_operand *const (&operands)[N], int first,
                         int last)
{
    begin_loop<N>(loop, operands);
    for (int axis = last - 1; axis >= first; axis--) add_axis_of<N>(loop, operands, axis);
    if (loop.ndim == 0) finish_loop<N>(loop);
    join_axes<N>(loop);
}

// Plans a loop over every axis of x, also axes of length 1, with the last axis first. So a place in the loop is x's
// coordinates, reversed.
inline void plan_every_axis(Loop<1> &loop, const yoke_operand &x)
{
    begin_loop<1>(loop, {&x});
    loop.numel = x.numel;
    loop.shape[0] = 1;
    loop.stride[0][0] = 0;
    for (int axis = x.ndim - 1; axis >= 0; axis--) {
        loop.shape[loop.ndim] = x.shape[axis];
        loop.stride[loop.ndim++][0] = step_of(x, axis, x.ndim);
    }
    if (x.ndim == 0) loop.ndim = 1;
}

// Returns the axis along which the source is contiguous, if the destination is contiguous along the innermost axis
// and the source is not. Returns 0 if there is no such axis, if the source is broadcast along the innermost axis, or
// if either axis is short. Operand 0 is the destination, operand 1 the source; `size` is the bytes of an element.
inline int transposed_axis(const Loop<2> &loop, int64_t size)
{
    constexpr int64_t kWorthwhile = 8;
    if (loop.stride[0][0] != size || loop.stride[0][1] == size || loop.stride[0][1] == 0) return 0;
    if (loop.shape[0] < kWorthwhile) return 0;
    for (int axis = 1; axis < loop.ndim; axis++)
        if (loop.stride[axis][1] == size && loop.shape[axis] >= kWorthwhile) return axis;
    return 0;
}

YOKE_KERNELS_END
