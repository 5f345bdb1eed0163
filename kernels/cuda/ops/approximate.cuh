// Functions that the device approximates in an instruction or two, for results of 16 bits. The error is a small part
// of such a result's last place. Values stored with 24 bits or more never use these functions.
//
// Errors by the PTX ISA: ex2.approx 2^-22, rcp.approx 2^-23 of the result. With .ftz, arguments and results below the
// normal numbers count as 0. The emulation has equal errors (tests/emu/approximate.h).
#pragma once

#include "kernels/common/math.h"
#include "kernels/cuda/ops/formats.cuh"

YOKE_CUDA_BEGIN

// Returns 2^x, approximated.
__device__ inline float fast_exp2(float x)
{
#if defined(YOKE_EMULATED)
    return emu::ex2_approx_ftz(x);
#else
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#endif
}

// Returns 1 / x, approximated.
__device__ inline float fast_reciprocal(float x)
{
#if defined(YOKE_EMULATED)
    return emu::rcp_approx_ftz(x);
#else
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#endif
}

// Returns e^x for x <= 0, and NaN for NaN, as precisely as In's values are stored. For halves the error is 2^-22 +
// |x| 2^-23, and results below 2^-126 are 0.
template <class In>
__device__ inline auto exp_as_stored(typename In::Value x)
{
    if constexpr (std::is_same_v<In, Halves>)
        return fast_exp2(x * 0x1.715476p+0f);
    else
        return kernels::exp_not_large(x);
}

YOKE_CUDA_END
