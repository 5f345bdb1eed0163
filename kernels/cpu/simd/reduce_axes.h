// The axes of a reduction, and partial results that are joined in order.
#pragma once

#include "kernels/common/reduce.h"
#include "kernels/cpu/simd/copy.h"
#include "kernels/cpu/simd/run.h"

YOKE_SIMD_BEGIN

constexpr int64_t kItem =
    65536;  // elements of one result that one thread reduces; a power of two of chunks

// States combined in order by pairs, like the digits of a binary counter.
template <class Op>
struct Pairwise {
    using State = typename Op::State;
    const Op &op;
    State partial[64];
    int depth = 0;
    int64_t count = 0;

    explicit Pairwise(const Op &reduction) : op(reduction) {}

    void push(State state)
    {
        for (int64_t digit = count++; digit & 1; digit >>= 1)
            state = op.combine(partial[--depth], state);
        partial[depth++] = state;
    }

    State finish()
    {
        if (depth == 0) return op.init();
        State state = partial[--depth];
        while (depth > 0) state = op.combine(partial[--depth], state);
        return state;
    }
};

// The axes of a reduction: what is kept, with its place in the result, and what is reduced.
struct Axes {
    Loop<2> kept;     // result, x
    Loop<1> reduced;  // x

    Axes(const yoke_operand &x, const yoke_operand &out, const bool *is_reduced)
    {
        kept.ndim = reduced.ndim = 0;
        kept.numel = reduced.numel = 1;
        kept.data[0] = data_of<char>(out);
        kept.data[1] = reduced.data[0] = data_of<char>(x);
        int64_t size = dtype_size(x.dtype), out_size = dtype_size(out.dtype);
        bool keepdim = out.ndim == x.ndim;
        int out_axis = out.ndim - 1;
        for (int axis = x.ndim - 1; axis >= 0; axis--) {
            int64_t step = x.strides[axis] * size;
            if (is_reduced[axis])
                add_axis<1>(reduced, x.shape[axis], {step});
            else
                add_axis<2>(kept, x.shape[axis], {out.strides[out_axis] * out_size, step});
            if (keepdim || !is_reduced[axis]) out_axis--;
        }
        // The result's order matters less than x's, by which the walk goes.
        for (int axis = 0; axis < kept.ndim; axis++) swap_sides(kept.stride[axis]);
        finish_loop<2>(kept);
        for (int axis = 0; axis < kept.ndim; axis++) swap_sides(kept.stride[axis]);
        finish_loop<1>(reduced);
    }

    // Whether neighbours in memory belong to different results.
    bool by_columns() const
    {
        int64_t along_kept = kept.stride[0][1], along_reduced = reduced.stride[0][0];
        if (kept.shape[0] < 4 || reduced.numel == 0) return false;
        if (reduced.numel == 1) return true;
        return along_kept != 0 && magnitude(along_kept) < magnitude(along_reduced);
    }

    static int64_t magnitude(int64_t stride) { return stride < 0 ? -stride : stride; }

    static void swap_sides(int64_t (&pair)[2])
    {
        int64_t first = pair[0];
        pair[0] = pair[1];
        pair[1] = first;
    }
};

YOKE_SIMD_END
