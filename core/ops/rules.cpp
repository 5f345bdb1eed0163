#include "core/ops/rules.h"

#include "core/base/default_dtype.h"
#include "core/ops/family.h"
#include "core/ops/promotion.h"
#include "core/ops/scalar.h"

namespace yoke::rules {

// ---- A single tensor -------------------------------------------------------------------------------------

void like(Args a, int x, Plan &plan)
{
    const yoke_tensor &tensor = a.tensor(x);
    plan.scalar_dtype(tensor.dtype);
    plan.result_like(tensor, tensor.dtype);
}

void floating_like(Args a, int x, Plan &plan)
{
    const yoke_tensor &given = a.tensor(x);
    const yoke_dtype dtype = cast_to_floating(plan, x, given);
    plan.result_like(given, dtype);
}

void number_like(Args a, int x, Plan &plan)
{
    const yoke_tensor &tensor = a.tensor(x);
    if (tensor.dtype == YOKE_BOOL)
        fail(YOKE_E_TYPE, "%s: bool tensors do not support %s; cast the tensor to an integer dtype",
             plan.name(), plan.name());
    plan.result_like(tensor, tensor.dtype);
}

void bool_like(Args a, int x, Plan &plan)
{
    plan.result_like(a.tensor(x), YOKE_BOOL);
}

void row_major_like(Args a, int x, Plan &plan)
{
    plan.result(a.tensor(x).shape(), a.tensor(x).dtype);
}

// ---- Two operands ----------------------------------------------------------------------------------------

yoke_dtype operand_dtype(const yoke_arg &x, const yoke_arg &y, const char *call)
{
    const bool x_is_tensor = x.kind == YOKE_ARG_TENSOR, y_is_tensor = y.kind == YOKE_ARG_TENSOR;
    if (x_is_tensor && y_is_tensor) return promote_tensors(*x.v.tensor, *y.v.tensor);
    if (!x_is_tensor && !y_is_tensor)
        fail(YOKE_E_TYPE, "%s: both arguments are numbers; give at least one tensor", call);
    return x_is_tensor ? promote_scalar(x.v.tensor->dtype, y.kind)
                       : promote_scalar(y.v.tensor->dtype, x.kind);
}

void broadcast_as(Args a, int first, int second, Plan &plan, yoke_dtype dtype, yoke_dtype result)
{
    plan.cast(first, dtype);
    plan.cast(second, dtype);
    plan.scalar_dtype(dtype);
    if (result == YOKE_NONE) result = dtype;
    const yoke_arg &x = a.value(first), &y = a.value(second);
    if (x.kind != YOKE_ARG_TENSOR) {
        check_scalar_fits(x, dtype, plan.name(), plan.argument(first));
        return plan.result_like(*y.v.tensor, result);
    }
    if (y.kind != YOKE_ARG_TENSOR) check_scalar_fits(y, dtype, plan.name(), plan.argument(second));
    if (y.kind != YOKE_ARG_TENSOR || same(x.v.tensor->shape(), y.v.tensor->shape()))
        return plan.result_like(*x.v.tensor, result);
    plan.result(yoke::broadcast(x.v.tensor->shape(), y.v.tensor->shape(), plan.name()), result);
}

void broadcast(Args a, int x, int y, Plan &plan)
{
    broadcast_as(a, x, y, plan, operand_dtype(a.value(x), a.value(y), plan.name()));
}

void floating_broadcast(Args a, int x, int y, Plan &plan)
{
    const yoke_dtype dtype = operand_dtype(a.value(x), a.value(y), plan.name());
    broadcast_as(a, x, y, plan, is_floating(dtype) ? dtype : default_dtype());
}

void compare(Args a, int x, int y, Plan &plan)
{
    const yoke_dtype common = operand_dtype(a.value(x), a.value(y), plan.name());
    yoke_dtype dtype = common;
    for (const int i : {x, y}) {
        const yoke_arg &value = a.value(i), &other = a.value(i == x ? y : x);
        if (!is_scalar(value)) continue;
        const bool crosses = value.kind == YOKE_ARG_FLOAT && !is_floating(other.v.tensor->dtype);
        if (crosses || !scalar_fits(value, common))
            dtype = crosses || is_floating(common) ? YOKE_F64 : YOKE_I64;
    }
    broadcast_as(a, x, y, plan, dtype, YOKE_BOOL);
}

void logic(Args a, int x, int y, Plan &plan)
{
    const yoke_dtype dtype = operand_dtype(a.value(x), a.value(y), plan.name());
    for (const int i : {x, y}) {
        if (!is_scalar(a.value(i))) continue;
        a.set_integer(i, scalar_f64(a.value(i)) != 0);
        const yoke_tensor &other = a.tensor(i == x ? y : x);
        return broadcast_as(a, x, y, plan, other.dtype, YOKE_BOOL);
    }
    broadcast_as(a, x, y, plan, dtype, YOKE_BOOL);
}

// ---- Over axes -------------------------------------------------------------------------------------------

void reduce_to(Args a, int x, int axis, int keepdim, Plan &plan, yoke_dtype dtype)
{
    const yoke_tensor &tensor = a.tensor(x);
    const std::optional<IntList> given = a.optional_ints(axis);
    const Dims axes = normalize_axes(given ? &*given : nullptr, tensor.ndim, plan.name());
    bool gone[YOKE_MAX_NDIM] = {};
    for (const int64_t i : axes) gone[i] = tensor.ndim > 0;
    Dims shape;
    for (int i = 0; i < tensor.ndim; ++i)
        if (!gone[i] || a.boolean(keepdim)) shape.push_back(gone[i] ? 1 : tensor.shape_[i]);
    a.set_ints(axis, plan.keep(axes));
    plan.result(shape, dtype);
}

yoke_dtype cast_to_wanted(Plan &plan, int arg, const yoke_tensor &x, yoke_dtype wanted)
{
    const yoke_dtype natural = is_floating(x.dtype) ? x.dtype : YOKE_I64;
    if (wanted == YOKE_NONE) return natural;
    if (!is_floating(wanted) && wanted != YOKE_I64)
        fail(YOKE_E_TYPE, "%s: argument 'dtype' is %s; it takes floating dtypes and int64",
             plan.name(), name(wanted));
    const bool widens_half = is_half(natural) && wanted == YOKE_F32;
    if (wanted != natural && !widens_half) plan.cast(arg, wanted);
    return wanted;
}

void reduce(Args a, int x, int axis, int keepdim, int dtype, Plan &plan)
{
    const yoke_dtype result = cast_to_wanted(plan, x, a.tensor(x), a.dtype_of(dtype));
    reduce_to(a, x, axis, keepdim, plan, result);
}

void floating_reduce(Args a, int x, int axis, int keepdim, Plan &plan)
{
    const yoke_dtype result = cast_to_floating(plan, x, a.tensor(x));
    reduce_to(a, x, axis, keepdim, plan, result);
}

void bool_reduce(Args a, int x, int axis, int keepdim, Plan &plan)
{
    reduce_to(a, x, axis, keepdim, plan, YOKE_BOOL);
}

}  // namespace yoke::rules
