// Functions that the device approximates in an instruction or two, for results of 16 bits. The error is a small part
// of such a result's last place. Values stored with 24 bits or more never use these functions.
//
// Errors by the PTX ISA: ex2.approx 2^-22, rcp.approx 2^-23 of the result. With .ftz, arguments and results below the
// normal numbers count as 0. The emulation has equal errors (tests/emu/approximate.h).
#pragma once

#include "kernels/common/math.h"
#include "kernels/cuda/ops/formats.cuh"

YOKE_CUDA_BEGIN

// 2^x.
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

// 1 / x.
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

// e^x for x <= 0, and NaN, as precisely as values of In are stored: of halves to 2^-22 + |x| 2^-23, and 0 below 2^-126.
template <class In>
__device__ inline auto exp_as_stored(typename In::Value x)
{
    if constexpr (std::is_same_v<In, Halves>)
        return fast_exp2(x * 0x1.715476p+0f);
    else
        return kernels::exp_not_large(x);
}

YOKE_CUDA_END
