// Where a draw of random numbers stands, and what dropout keeps of it, as the parameters of an op say.
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

// What dropout with probability p multiplies an element by that it keeps: the mean stays. With p = 1 it keeps none.
template <class C>
inline C dropout_scale(double p)
{
    return p < 1 ? (C)(1 / (1 - p)) : (C)0;
}

YOKE_KERNELS_END
