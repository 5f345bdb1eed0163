// The one way through strided tensors: N operands walked together in the shape of the first.
//
// Contract
//  * The loop is that of kernels/common/loop.h.
//  * walk calls inner(pointers, strides, n) for runs of the innermost axis; strides are in bytes, may be negative.
//  * Any range of the walk may be run by any thread: element i of it is the same element every time.
#pragma once

#include "kernels/common/loop.h"
#include "kernels/cpu/simd/simd.h"

YOKE_SIMD_BEGIN

using kernels::add_axis;
using kernels::finish_loop;
using kernels::join_axes;
using kernels::Loop;
using kernels::plan_loop;
using kernels::plan_ordered;
using kernels::step_of;

// A place in a loop: how far along each axis, and the pointers there.
template <int N>
struct Cursor {
    int64_t at[YOKE_MAX_NDIM];
    char *data[N];

    Cursor(const Loop<N> &loop, int64_t index, int first_axis = 0)
    {
        for (int i = 0; i < N; i++) data[i] = loop.data[i];
        for (int axis = first_axis; axis < loop.ndim; axis++) {
            at[axis] = index % loop.shape[axis];
            index /= loop.shape[axis];
            for (int i = 0; i < N; i++) data[i] += at[axis] * loop.stride[axis][i];
        }
    }

    void advance(const Loop<N> &loop, int axis, int64_t steps)
    {
        at[axis] += steps;
        for (int i = 0; i < N; i++) data[i] += steps * loop.stride[axis][i];
        while (at[axis] == loop.shape[axis] && axis + 1 < loop.ndim) {
            for (int i = 0; i < N; i++)
                data[i] += loop.stride[axis + 1][i] - at[axis] * loop.stride[axis][i];
            at[axis] = 0;
            at[++axis]++;
        }
    }
};

// Calls inner(pointers, strides, n) for the runs of elements [begin, end) of the loop.
template <int N, class F>
inline void walk(const Loop<N> &loop, int64_t begin, int64_t end, const F &inner)
{
    if (begin >= end) return;
    if (loop.ndim == 1) {
        char *data[N];
        for (int i = 0; i < N; i++) data[i] = loop.data[i] + begin * loop.stride[0][i];
        return inner(data, loop.stride[0], end - begin);
    }
    Cursor<N> cursor(loop, begin);
    while (begin < end) {
        int64_t n = min(loop.shape[0] - cursor.at[0], end - begin);
        inner(cursor.data, loop.stride[0], n);
        cursor.advance(loop, 0, n);
        begin += n;
    }
}

YOKE_SIMD_END
