// The arguments of layer_norm, rms_norm, add_layer_norm and their gradients. Host code.
#pragma once

#include "kernels/common/epsilon.h"

YOKE_KERNELS_BEGIN

// Returns the first axis of the normalised rows.
inline int norm_axis(const yoke_launch *launch)
{
    return launch->operands[0].ndim - launch->params[0].count;
}

inline double norm_epsilon(const yoke_launch *launch)
{
    const yoke_arg &given = launch->params[1];
    return given.kind == YOKE_ARG_NONE ? epsilon_of(launch->operands[0].dtype) : float_param(given);
}

// Op whose gradient is computed.
enum class NormKind { kRms, kLayer, kAddLayer };

// Operands of a gradient. rms_norm has neither mean nor bias. For add_layer_norm, x is the sum, and grad_sum is the
// sum's own gradient, which may be absent.
struct NormGradientCall {
    const yoke_operand *grad, *grad_sum, *x, *weight, *mean, *rstd, *dx, *dweight, *dbias;
    int axis;
    bool of_x, of_weight;

    NormGradientCall(const yoke_launch *launch, NormKind kind)
    {
        const bool is_centred = kind != NormKind::kRms;
        const yoke_operand *o = launch->operands;
        const yoke_arg *p = launch->params;
        grad = o++;
        grad_sum = kind == NormKind::kAddLayer ? o++ : nullptr;
        if (grad_sum && !is_present(*grad_sum)) grad_sum = nullptr;
        x = o++, weight = o++;
        mean = is_centred ? o++ : nullptr;
        rstd = o++, dx = o++, dweight = o++;
        dbias = is_centred ? o : nullptr;
        axis = (int)p[0].v.i, of_x = p[1].v.i != 0, of_weight = p[2].v.i != 0;
    }
};

YOKE_KERNELS_END
