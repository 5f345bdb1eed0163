// pointwise.h: what the shape rules of elementwise ops share.
#pragma once

#include "core/ops/family.h"

namespace yoke {

// The promoted dtype of two operands, scalars being weak; one of them has to be a tensor.
yoke_dtype operand_dtype(const yoke_arg &x, const yoke_arg &y, const char *call);

// Arguments `first` and the one behind it are broadcast to one result and cast to `dtype`; the result has that dtype,
// or `result`. A number that does not fit into `dtype` is refused.
void infer_binary(const Args &a, Plan &plan, yoke_dtype dtype, yoke_dtype result = YOKE_NONE);

// One floating result like x; integers and bool are cast to f32.
void infer_floating(const yoke_tensor &x, Plan &plan);

// One result like x, which may be any number but no bool.
void infer_number(const yoke_tensor &x, Plan &plan);

// One result like x, what an op gives that works on gradients.
inline void infer_like(const yoke_tensor &x, Plan &plan)
{
    plan.result_like(x, x.dtype);
}

// The gradient of an operand that was broadcast.
inline void set_broadcast(Backward &b, int arg, const yoke_arg &input, const Tensor &gradient)
{
    b.set(arg, sum_to(gradient, input.v.tensor->shape()));
}

}  // namespace yoke
