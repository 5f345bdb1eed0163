// The arithmetic of collectives: several ranks' elements into one, in their order.
//
// Contract
//  * Sums and products of 16-bit floats are formed in f32 and rounded once, when a call has `partial_out` off; what
//    travels between nodes meanwhile is f32. Everything else is combined in its own type: integers wrap, the larger and
//    the smaller of two are NaN if one is, as in amax and amin.
//  * Element by element: the bits do not depend on how a tensor is cut. `out` may be one of the inputs.
#pragma once

#include "core/backend/backend.h"

namespace yoke::cpu {

struct Combination {
    yoke_dtype dtype;
    int32_t reduction;
    bool partial_in;   // the inputs are partial results
    bool partial_out;  // so is the output
    int32_t input_count;
    const void *const *inputs;
    void *out;
    int64_t count;
    int64_t divisor;  // of a mean, where it is final; else 1
};

// For what comm::can_reduce allows. Built for each instruction set: part of its table.
using CombineFn = void (*)(const Combination &);

}  // namespace yoke::cpu
