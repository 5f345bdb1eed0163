// Layout of operands beside an index. gather and scatter_add index along one axis. For _index, index_put and
// index_select, index tensors name places along neighbouring axes: [before…, entries…, behind…]. Host code.
#pragma once

#include <cstdio>

#include "kernels/common/loop.h"

YOKE_KERNELS_BEGIN

// Returns the length of an axis. An operand without axes has one position.
inline int64_t axis_length(const yoke_operand &operand, int axis)
{
    return operand.ndim ? operand.shape[axis] : 1;
}

inline int64_t axis_step(const yoke_operand &operand, int axis)
{
    return operand.ndim ? operand.strides[axis] * dtype_size(operand.dtype) : 0;
}

// Adds the axis `axis` of `index`, with each operand's own step along this axis. Operand `still` (if not below 0)
// does not move.
template <int N>
inline void add_axis_beside(Loop<N> &loop, const yoke_operand *const (&operands)[N],
                            const yoke_operand &index, int axis, int still)
{
    int64_t steps[N];
    for (int i = 0; i < N; i++) steps[i] = i == still ? 0 : axis_step(*operands[i], axis);
    add_axis<N>(loop, index.shape[axis], steps);
}

// Plans a loop over the elements of an index along `axis`. All operands take the index's shape. Along `axis`, operand
// `named` stays at the start.
template <int N>
inline void plan_elements(Loop<N> &loop, const yoke_operand *const (&operands)[N],
                          const yoke_operand &index, int axis, int named)
{
    begin_loop<N>(loop, operands);
    for (int i = index.ndim - 1; i >= 0; i--)
        add_axis_beside<N>(loop, operands, index, i, i == axis ? named : -1);
    finish_loop<N>(loop);
}

// Plans a loop over the lines along `axis`: over all other axes of the index.
template <int N>
inline void plan_lines(Loop<N> &loop, const yoke_operand *const (&operands)[N],
                       const yoke_operand &index, int axis)
{
    begin_loop<N>(loop, operands);
    for (int i = index.ndim - 1; i >= 0; i--)
        if (i != axis) add_axis_beside<N>(loop, operands, index, i, -1);
    finish_loop<N>(loop);
}

// Blocks of x beside those of an operand that broadcasts to [before…, entries…, behind…]; the index tensors name places
// along `count` axes of x from `first` on.
struct IndexedBlocks {
    Loop<2> before, behind;  // x, the other; or the other, x
    Loop<1> entries;         // loop over the other operand, in the index's order

    IndexedBlocks(const yoke_operand &x, const yoke_operand &other, int first, int count,
                  const yoke_operand &index, bool x_is_first)
    {
        const int ndim = x.ndim - count + index.ndim;
        const yoke_operand *const pair[2] = {x_is_first ? &x : &other, x_is_first ? &other : &x};
        begin_loop<2>(before, pair);
        begin_loop<2>(behind, pair);
        for (int axis = x.ndim - 1; axis >= 0; axis--) {
            if (axis >= first && axis < first + count) continue;
            const bool is_before = axis < first;
            const int whole = is_before ? axis : axis - count + index.ndim;
            const int64_t of_x = axis_step(x, axis), of_other = step_of(other, whole, ndim);
            add_axis<2>(is_before ? before : behind, x.shape[axis],
                        {x_is_first ? of_x : of_other, x_is_first ? of_other : of_x});
        }
        finish_loop<2>(before);
        finish_loop<2>(behind);
        begin_loop<1>(entries, {&other});
        for (int axis = index.ndim - 1; axis >= 0; axis--)
            add_axis<1>(entries, index.shape[axis], {step_of(other, first + axis, ndim)});
        if (entries.ndim == 0) finish_loop<1>(entries);
        join_axes<1>(entries);
    }
};

// Writes the coordinates of the element at `place` in row-major order, such as "[1, 2]". Writes "" for a shape
// without axes.
inline void write_place(const int64_t *shape, int ndim, int64_t place, char *text, size_t room)
{
    int64_t at[YOKE_MAX_NDIM];
    for (int axis = ndim - 1; axis >= 0; axis--) {
        at[axis] = place % shape[axis];
        place /= shape[axis];
    }
    size_t used = 0;
    text[0] = 0;
    for (int axis = 0; axis < ndim && used + 32 < room; axis++)
        used += (size_t)snprintf(text + used, room - used, "%s%lld", axis ? ", " : "[",
                                 (long long)at[axis]);
    if (ndim) snprintf(text + used, room - used, "]");
}

YOKE_KERNELS_END
