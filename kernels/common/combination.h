// Arithmetic of collectives: combines the elements of several ranks, in the order of ranks. combine.h implements the
// arithmetic.
//
// Contract
//  * Sums and products of 16-bit floats are formed in f32. A call with `partial_out` off rounds once; between nodes,
//    partial results travel as f32. All other dtypes are combined in their own type. Integers wrap. As in amax and
//    amin, the larger and the smaller of two values are NaN if either value is NaN.
//  * Each element is combined alone, so the bits do not depend on how a tensor is cut. `out` may be one of the
//    inputs.
#pragma once

#include "core/backend/backend.h"

namespace yoke::kernels {

struct Combination {
    yoke_dtype dtype;
    int32_t reduction;
    bool partial_in;   // the inputs are partial results
    bool partial_out;  // so is the output
    int32_t input_count;
    const void *const *inputs;
    void *out;
    int64_t count;
    int64_t divisor;  // divisor of a final mean; else 1
};

// Function that computes a combination whose dtype and reduction can_reduce allows. Each instruction set has a build
// of this function.
using CombineFn = void (*)(const Combination &);

inline int64_t dtype_bytes(yoke_dtype dtype)
{
    switch (dtype) {
        case YOKE_F64:
        case YOKE_I64:
            return 8;
        case YOKE_F32:
        case YOKE_I32:
            return 4;
        case YOKE_F16:
        case YOKE_BF16:
            return 2;
        default:
            return 1;
    }
}

// Returns whether an engine supports a reduction of this dtype. Min and max work for every dtype. Sums and products
// need f64, f32, f16, bf16, i64, i32, i8 or u8; means need a float of these. The core and the engines refuse all
// other pairs.
inline bool can_reduce(yoke_dtype dtype, int32_t reduction)
{
    if (reduction == YOKE_REDUCE_MIN || reduction == YOKE_REDUCE_MAX) return true;
    if (reduction < YOKE_REDUCE_SUM || reduction > YOKE_REDUCE_AVG) return false;
    switch (dtype) {
        case YOKE_F64:
        case YOKE_F32:
        case YOKE_F16:
        case YOKE_BF16:
            return true;
        case YOKE_I64:
        case YOKE_I32:
        case YOKE_I8:
        case YOKE_U8:
            return reduction != YOKE_REDUCE_AVG;
        default:
            return false;
    }
}

}  // namespace yoke::kernels
