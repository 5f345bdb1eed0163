// rules.h: the shape rules that the lines of ops.def name: what a line calls "floating like x" is rules::floating_like.
// Each settles the arguments and states the one result of its op; arguments are given by their numbers.
#pragma once

#include "core/ops/plan.h"

namespace yoke::rules {

// x's shape and dtype, and its order in memory where x is dense. Numbers among the operands reach the kernel in that
// dtype.
void like(Args a, int x, Plan &plan);
// The same of a floating x; integers and bool are cast to f32.
void floating_like(Args a, int x, Plan &plan);
// The same; an x of bool is refused.
void number_like(Args a, int x, Plan &plan);
// The same in bool, whatever x is.
void bool_like(Args a, int x, Plan &plan);
// x's shape and dtype, row-major however x lies in memory.
void row_major_like(Args a, int x, Plan &plan);

// Two operands are broadcast to one shape and cast to their promoted dtype, which is the result's. A number that does
// not fit into that dtype is refused.
void broadcast(Args a, int x, int y, Plan &plan);
// The same; integers and bool are cast to f32.
void floating_broadcast(Args a, int x, int y, Plan &plan);
// The same with a result in bool; a number that the dtype cannot hold is compared as what it is: 300 is above every
// uint8.
void compare(Args a, int x, int y, Plan &plan);
// The same; a number is no more than true or false: whether an element is 0 is the same in any dtype.
void logic(Args a, int x, int y, Plan &plan);

// Over a list of axes (absent: all), which stay with length 1 if `keepdim` says so. In `dtype` if that is given, else
// in x's, integers and bool in i64.
void reduce(Args a, int x, int axis, int keepdim, int dtype, Plan &plan);
// The same in x's dtype; integers and bool are cast to f32.
void floating_reduce(Args a, int x, int axis, int keepdim, Plan &plan);
// The same with a result in bool.
void bool_reduce(Args a, int x, int axis, int keepdim, Plan &plan);

// ---- For infer_<op>, which does more than one of these ------------------------------------------------------

// The promoted dtype of two operands, numbers being weak; one of them has to be a tensor.
yoke_dtype operand_dtype(const yoke_arg &x, const yoke_arg &y, const char *call);

// broadcast, with operands cast to `dtype` and a result in that or in `result`.
void broadcast_as(Args a, int x, int y, Plan &plan, yoke_dtype dtype,
                  yoke_dtype result = YOKE_NONE);

// reduce, with a result in `dtype`.
void reduce_to(Args a, int x, int axis, int keepdim, Plan &plan, yoke_dtype dtype);

// Casts x for a `dtype` argument: in that dtype from the start. Wider accumulation of halves and integers the kernels
// do themselves. Returns the result's dtype.
yoke_dtype cast_to_wanted(Plan &plan, int arg, const yoke_tensor &x, yoke_dtype wanted);

}  // namespace yoke::rules
