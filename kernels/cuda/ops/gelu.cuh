// gelu, for its op and for the activation after a product.
#pragma once

#include "kernels/common/activation.h"
#include "kernels/cuda/ops/approximate.cuh"

YOKE_CUDA_BEGIN

// gelu for results of 16 bits, as relu(x) - t tail(t) too (activation.h). The normal distribution's tail is exp(-t^2 /
// 2) u P(u) with u = 1 / (1 + 0.38 t), P of degree 4 being minimax to 2^-14.8 for 0 <= t <= 15, where exp(-t^2 / 2) is
// 0. t * u is not made from infinity, so t is held there.
struct FastGelu {
    __device__ float operator()(float x) const
    {
        const float t = kernels::at_most(kernels::absolute(x), 15.0f);
        const float u = fast_reciprocal(1.0f + 0.38f * t);
        float p = -0x1.7054ccp-4f;
        p = p * u + 0x1.82cd74p-3f;
        p = p * u + 0x1.78c608p-4f;
        p = p * u + 0x1.433b28p-3f;
        p = p * u + 0x1.35b59ep-3f;
        return kernels::select(x > 0, x, 0.0f) -
               (t * u) * (p * fast_exp2(t * (t * -0x1.715476p-1f)));
    }
};

struct FastGeluTanh {
    __device__ float operator()(float x) const
    {
        constexpr float kSlope = 1.5957691216057308 * 1.4426950408889634;  // 2 sqrt(2 / pi) log2(e)
        const float t = kernels::at_most(kernels::absolute(x), 12.0f);
        const float e = fast_exp2(t * (t * t * (-kSlope * 0.044715f) - kSlope));
        return kernels::select(x > 0, x, 0.0f) - (t * e) * fast_reciprocal(1.0f + e);
    }
};

template <class In>
using GeluOf = std::conditional_t<std::is_same_v<In, Halves>, FastGelu, kernels::Gelu>;
template <class In>
using GeluTanhOf = std::conditional_t<std::is_same_v<In, Halves>, FastGeluTanh, kernels::GeluTanh>;

YOKE_CUDA_END
