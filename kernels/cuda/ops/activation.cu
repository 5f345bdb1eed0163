// Activations, forward and backward.
#include "kernels/common/named.h"
#include "kernels/common/pointwise_ops.h"
#include "kernels/cuda/ops/gelu.cuh"
#include "kernels/cuda/ops/map.cuh"

YOKE_CUDA_BEGIN

using Relus = OneOf<kernels::Relu>;
using RelusBackward = OneOf<kernels::ReluBackward>;
using GelusBackward = OneOf<kernels::GeluBackward, kernels::GeluTanhBackward>;
using Sigmoids = OneOf<kernels::Tanh, kernels::Sigmoid, kernels::Silu, kernels::LeakyRelu,
                       kernels::Elu, kernels::Softplus>;
using SigmoidsBackward =
    OneOf<kernels::TanhBackward, kernels::SigmoidBackward, kernels::SiluBackward,
          kernels::LeakyReluBackward, kernels::EluBackward, kernels::SoftplusBackward>;
#define YOKE_GROUPS Relus, RelusBackward, Sigmoids, SigmoidsBackward

YOKE_ACTIVATION_OPS(YOKE_UNARY, YOKE_BINARY, YOKE_WITH_PARAMS, YOKE_WITH_PARAMS_BACKWARD)
#undef YOKE_GROUPS

template <class In>
using Gelus = OneOf<GeluOf<In>, GeluTanhOf<In>>;

template <class In>
static yoke_status gelu(const yoke_launch *launch)
{
    constexpr int kTanh = 1;
    return unary<In>(launch, Gelus<In>{kernels::is_tanh_gelu(launch) ? kTanh : 0, {}});
}

YOKE_POINTWISE(gelu, for_row, gelu<In>(launch))
YOKE_POINTWISE(_gelu_backward, for_float,
               (binary<In>(launch, kernels::is_tanh_gelu(launch)
                                       ? GelusBackward::of<kernels::GeluTanhBackward>()
                                       : GelusBackward::of<kernels::GeluBackward>())))

YOKE_CUDA_END
