// rules.h: the shape rules named in the lines of ops.def: "floating like x" in a line is rules::floating_like. Each
// rule settles the arguments and states the op's only result; arguments are given by number.
#pragma once

#include "core/ops/plan.h"

namespace yoke::rules {

// Gives the result x's shape and dtype, and x's memory order if x is dense. Numbers among the operands reach the
// kernel in this dtype.
void like(Args a, int x, Plan &plan);
// Gives the result x's shape and memory order, in x's dtype; integers and bool are cast to f32.
void floating_like(Args a, int x, Plan &plan);
// Gives the result x's shape, dtype and memory order as like() does; refuses an x of bool.
void number_like(Args a, int x, Plan &plan);
// Gives the result x's shape and memory order, in bool whatever x is.
void bool_like(Args a, int x, Plan &plan);
// Gives the result x's shape and dtype, row-major however x lies in memory.
void row_major_like(Args a, int x, Plan &plan);

// Broadcasts two operands to a common shape and casts both to their promoted dtype, the result's dtype. A number that
// does not fit this dtype is refused.
void broadcast(Args a, int x, int y, Plan &plan);
// Broadcasts two operands as broadcast() does. If the promoted dtype is an integer or bool, both operands are cast to
// f32, the result's dtype.
void floating_broadcast(Args a, int x, int y, Plan &plan);
// Broadcasts two operands with a result in bool. A number too large for the dtype is compared by its true value: 300
// is above every uint8.
void compare(Args a, int x, int y, Plan &plan);
// Broadcasts two operands with a result in bool. A number counts only as true or false: whether an element is 0 is
// the same in any dtype.
void logic(Args a, int x, int y, Plan &plan);

// Reduces over a list of axes (absent: all); with `keepdim`, they stay with length 1. The result has `dtype` if
// given, else x's dtype; integers and bool give i64.
void reduce(Args a, int x, int axis, int keepdim, int dtype, Plan &plan);
// Reduces as reduce() does, in x's dtype; integers and bool are cast to f32.
void floating_reduce(Args a, int x, int axis, int keepdim, Plan &plan);
// Reduces as reduce() does, with a result in bool.
void bool_reduce(Args a, int x, int axis, int keepdim, Plan &plan);

// ---- For infer_<op> functions beyond a single rule -----------------------------------------------------------

// Returns the promoted dtype of two operands; numbers are weak, and at least an operand must be a tensor.
yoke_dtype operand_dtype(const yoke_arg &x, const yoke_arg &y, const char *call);

// Broadcasts as broadcast() does, with operands cast to `dtype` and a result in `result`, or in `dtype` if absent.
void broadcast_as(Args a, int x, int y, Plan &plan, yoke_dtype dtype,
                  yoke_dtype result = YOKE_NONE);

// Reduces as reduce() does, with a result in `dtype`.
void reduce_to(Args a, int x, int axis, int keepdim, Plan &plan, yoke_dtype dtype);

// Returns the result's dtype for the `dtype` argument `wanted`, and casts x to this dtype if needed. Kernels
// themselves accumulate halves and integers in wider dtypes. Raises YOKE_E_TYPE unless `wanted` is floating, int64 or
// absent.
yoke_dtype cast_to_wanted(Plan &plan, int arg, const yoke_tensor &x, yoke_dtype wanted);

}  // namespace yoke::rules
