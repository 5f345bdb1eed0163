// The gradients of a product of rows with a weight: the weight's gradient is a product, the bias's a sum over rows.
// Host code.
#pragma once

#include "core/backend/ops.inc"
#include "kernels/common/product.h"

YOKE_KERNELS_BEGIN

// Operands of the op: the gradients to write, the gradient of the product [rows, out], and x [rows, in].
struct ProductGradients {
    const yoke_operand &weight;  // [out, in], row-major
    const yoke_operand *bias;    // [out], row-major; null if not wanted
    const yoke_operand &grad, &x;
    const bool adds;  // the weight's gradient is added to the values there

    explicit ProductGradients(const yoke_launch *launch)
        : weight(launch->operands[0]),
          bias(launch->operand_count > 3 ? launch->operands + 1 : nullptr),
          grad(launch->operands[launch->operand_count - 2]),
          x(launch->operands[launch->operand_count - 1]),
          adds(launch->params[0].v.i != 0)
    {
    }

    // Returns the transpose of grad times x. The product has x's dtype.
    Product product() const
    {
        Product p = {};
        p.dtype = x.dtype;
        p.batch = 1;
        p.m = weight.shape[0];
        p.n = weight.shape[1];
        p.k = x.shape[0];
        p.a = {grad.data, 0, grad.strides[1], grad.strides[0]};
        p.b = {x.data, 0, x.strides[0], x.strides[1]};
        p.c = {weight.data, 0, p.n, 1};
        return p;
    }
};

// Launch of `sum` over the rows of grad, into the bias's gradient.
struct SumOfRows {
    const int64_t axis = 0;
    const yoke_operand operands[2];
    yoke_arg params[3] = {};
    yoke_launch launch;

    SumOfRows(const yoke_launch *of, const ProductGradients &g)
        : operands{g.grad, *g.bias}, launch(*of)
    {
        params[0].kind = YOKE_ARG_INTS;
        params[0].count = 1;
        params[0].v.ints = &axis;
        params[1].kind = YOKE_ARG_BOOL;
        launch.op = YOKE_OP_SUM;
        launch.operands = operands;
        launch.params = params;
        launch.operand_count = 2;
        launch.param_count = 3;
    }
    SumOfRows(const SumOfRows &) = delete;
    SumOfRows &operator=(const SumOfRows &) = delete;
};

YOKE_KERNELS_END
