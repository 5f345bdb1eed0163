// family.h: what the shape rules and vjps of several families share.
#pragma once

#include "core/ops/op_node.h"
#include "core/ops/ops.h"
#include "core/ops/plan.h"

namespace yoke {

// Returns the gradient of a broadcast tensor of shape `shape`: `gradient`, summed over the stretched axes.
Tensor sum_to(const Tensor &gradient, IntList shape);

// Sets the gradient of an operand that was broadcast, summed to the operand's shape.
inline void set_broadcast(Backward &b, int arg, const yoke_arg &input, const Tensor &gradient)
{
    b.set(arg, sum_to(gradient, input.v.tensor->shape()));
}

// Stretches `reduced`, a result over `axes` of a tensor of shape `shape`, back to this shape as a view.
Tensor expand_reduced(const yoke_tensor &reduced, const Dims &axes, IntList shape);

// Casts argument `arg` to f32 unless it is floating; returns the resulting dtype.
yoke_dtype cast_to_floating(Plan &plan, int arg, const yoke_tensor &x);

// Makes a tensor without values, for an op composed of ops that set the values.
Tensor make_empty(Device &device, yoke_dtype dtype, IntList shape, const char *call);

// Raises YOKE_E_TYPE unless x is floating. check_computable() also refuses float8; check_index() takes only int64 and
// int32.
void check_floating(const yoke_tensor &x, const char *call, const char *arg);
void check_computable(const yoke_tensor &x, const char *call, const char *arg);
void check_index(const yoke_tensor &x, const char *call, const char *arg);

}  // namespace yoke
