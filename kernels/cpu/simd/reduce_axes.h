// The axes of a reduction, and partial results that are joined in order.
#pragma once

#include "kernels/common/axes.h"
#include "kernels/common/reduce.h"
#include "kernels/cpu/simd/copy.h"
#include "kernels/cpu/simd/run.h"

YOKE_SIMD_BEGIN

constexpr int64_t kItem =
    65536;  // elements of a result reduced by a single thread; a power of two of chunks

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

using kernels::kResult;
using kernels::kX;

struct Axes : kernels::ReducedAxes<2> {
    using ReducedAxes<2>::ReducedAxes;

    // Returns whether neighbours in memory belong to different results.
    bool by_columns() const
    {
        int64_t along_kept = kernels::stride_size(kept.stride[0][kX]);
        if (kept.shape[0] < 4 || reduced.numel == 0) return false;
        if (reduced.numel == 1) return true;
        return along_kept != 0 && along_kept < kernels::stride_size(reduced.stride[0][0]);
    }
};

YOKE_SIMD_END
