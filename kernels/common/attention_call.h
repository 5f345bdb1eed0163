// Arguments of attention and of its gradient: sizes and parameters. Host code, except the structs passed to kernels.
#pragma once

#include "kernels/common/draw.h"

YOKE_KERNELS_BEGIN

// Sizes of an attention. `heads` is the product of the leading axes, in row-major order. Each head has the last two
// axes of its operands; of vectors such as log-sum-exp, each head has the last axis.
struct AttentionSizes {
    int64_t heads, queries, keys, width, value_width;

    AttentionSizes(const yoke_operand &query, const yoke_operand &key, const yoke_operand &value)
        : heads(1),
          queries(query.shape[query.ndim - 2]),
          keys(key.shape[key.ndim - 2]),
          width(query.shape[query.ndim - 1]),
          value_width(value.shape[value.ndim - 1])
    {
        for (int axis = 0; axis < query.ndim - 2; axis++) heads *= query.shape[axis];
    }

    double products() const
    {
        return (double)heads * (double)queries * (double)keys * (double)(width + value_width);
    }
};

// Parameters of attention and of its gradient: the last parameters of both ops.
struct AttentionParams {
    bool causal;
    double scale, dropout;
    DrawPlace draw;

    explicit AttentionParams(const yoke_arg *p)
        : causal(p[0].v.i != 0), scale(float_param(p[1])), dropout(float_param(p[2])), draw(p + 3)
    {
    }
};

YOKE_KERNELS_END
