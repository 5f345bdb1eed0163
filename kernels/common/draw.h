// Arguments of random ops: the place of a draw, and dropout's scale.
#pragma once

#include "kernels/common/operand.h"
#include "kernels/common/philox.h"

YOKE_KERNELS_BEGIN

struct DrawPlace {
    uint64_t seed, offset;

    explicit DrawPlace(const yoke_arg *seed_and_offset)
        : seed((uint64_t)seed_and_offset[0].v.i), offset((uint64_t)seed_and_offset[1].v.i)
    {
    }
};

// Returns the factor for kept elements under dropout with probability p. The factor preserves the mean. If p is 1,
// dropout keeps no element, and the factor is 0.
template <class C>
inline C dropout_scale(double p)
{
    return p < 1 ? (C)(1 / (1 - p)) : (C)0;
}

YOKE_KERNELS_END
