// pointwise.cpp: ops that work element by element: shape rules and vjps.
#include "core/ops/family.h"

namespace yoke {

namespace {

constexpr int kFirst = 0, kSecond = 1;  // the operands of every binary op

yoke_dtype operand_dtype(const yoke_arg &x, const yoke_arg &y, const char *call)
{
    const bool x_is_tensor = x.kind == YOKE_ARG_TENSOR, y_is_tensor = y.kind == YOKE_ARG_TENSOR;
    if (x_is_tensor && y_is_tensor) return promote(x.v.tensor->dtype, y.v.tensor->dtype);
    if (!x_is_tensor && !y_is_tensor)
        fail(YOKE_E_TYPE, "%s: both arguments are numbers; give at least one tensor", call);
    return x_is_tensor ? promote_scalar(x.v.tensor->dtype, y.kind)
                       : promote_scalar(y.v.tensor->dtype, x.kind);
}

// Broadcasts the two operands to one result of dtype `dtype`, to which both are cast.
void infer_binary(const Args &a, Plan &plan, yoke_dtype dtype)
{
    plan.cast(kFirst, dtype);
    plan.cast(kSecond, dtype);
    plan.scalar_dtype(dtype);
    const yoke_arg &x = a.value(kFirst), &y = a.value(kSecond);
    if (x.kind != YOKE_ARG_TENSOR) return plan.result_like(*y.v.tensor, dtype);
    if (y.kind != YOKE_ARG_TENSOR || same(x.v.tensor->shape(), y.v.tensor->shape()))
        return plan.result_like(*x.v.tensor, dtype);
    plan.result(broadcast(x.v.tensor->shape(), y.v.tensor->shape(), plan.name()), dtype);
}

void set_broadcast(Backward &b, int arg, const yoke_arg &input, const Tensor &gradient)
{
    b.set(arg, sum_to(gradient, input.v.tensor->shape()));
}

void refuse_bool(const char *call, yoke_dtype dtype)
{
    if (dtype == YOKE_BOOL)
        fail(YOKE_E_TYPE, "%s: bool tensors have no %s; cast one to an integer dtype", call, call);
}

void infer_floating(const yoke_tensor &x, Plan &plan)
{
    const yoke_dtype dtype = cast_to_floating(plan, kFirst, x);
    plan.result_like(x, dtype);
}

void check_approximate(std::string_view value, const char *call)
{
    if (value != "none" && value != "tanh")
        fail(YOKE_E_VALUE, "%s: argument 'approximate' is \"%s\"; it is \"none\" or \"tanh\"", call,
             std::string(value).c_str());
}

}  // namespace

// ---- Arithmetic ------------------------------------------------------------------------------------------

void infer_add(AddArgs a, Plan &plan)
{
    infer_binary(a, plan, operand_dtype(a.x(), a.y(), plan.name()));
}

void vjp_add(AddArgs a, Backward &b)
{
    if (b.needs(a.kX)) set_broadcast(b, a.kX, a.x(), b.grad());
    if (b.needs(a.kY)) set_broadcast(b, a.kY, a.y(), b.grad());
}

void infer_sub(SubArgs a, Plan &plan)
{
    const yoke_dtype dtype = operand_dtype(a.x(), a.y(), plan.name());
    refuse_bool(plan.name(), dtype);
    infer_binary(a, plan, dtype);
}

void vjp_sub(SubArgs a, Backward &b)
{
    if (b.needs(a.kX)) set_broadcast(b, a.kX, a.x(), b.grad());
    if (b.needs(a.kY)) set_broadcast(b, a.kY, a.y(), ops::neg(b.grad()));
}

void infer_mul(MulArgs a, Plan &plan)
{
    infer_binary(a, plan, operand_dtype(a.x(), a.y(), plan.name()));
}

void vjp_mul(MulArgs a, Backward &b)
{
    if (b.needs(a.kX)) set_broadcast(b, a.kX, a.x(), ops::mul(b.grad(), a.y()));
    if (b.needs(a.kY)) set_broadcast(b, a.kY, a.y(), ops::mul(b.grad(), a.x()));
}

void infer_div(DivArgs a, Plan &plan)
{
    const yoke_dtype dtype = operand_dtype(a.x(), a.y(), plan.name());
    infer_binary(a, plan, is_floating(dtype) ? dtype : YOKE_F32);
}

void vjp_div(DivArgs a, Backward &b)
{
    if (b.needs(a.kX)) set_broadcast(b, a.kX, a.x(), ops::div(b.grad(), a.y()));
    if (b.needs(a.kY)) {
        // d(x / y)/dy = -(x / y) / y, in this order: y * y could overflow where the quotient does not.
        const Tensor quotient = ops::div(a.x(), a.y());
        set_broadcast(b, a.kY, a.y(), ops::neg(ops::mul(b.grad(), ops::div(quotient, a.y()))));
    }
}

void infer_neg(NegArgs a, Plan &plan)
{
    refuse_bool(plan.name(), a.x().dtype);
    plan.result_like(a.x(), a.x().dtype);
}

void vjp_neg(NegArgs, Backward &b)
{
    b.set(NegArgs::kX, ops::neg(b.grad()));
}

// ---- Functions -------------------------------------------------------------------------------------------

void infer_exp(ExpArgs a, Plan &plan)
{
    infer_floating(a.x(), plan);
}

void vjp_exp(ExpArgs, Backward &b)
{
    b.set(ExpArgs::kX, ops::mul(b.grad(), b.out()));
}

void infer_log(LogArgs a, Plan &plan)
{
    infer_floating(a.x(), plan);
}

void vjp_log(LogArgs a, Backward &b)
{
    b.set(a.kX, ops::div(b.grad(), a.x()));
}

void infer_relu(ReluArgs a, Plan &plan)
{
    refuse_bool(plan.name(), a.x().dtype);
    plan.result_like(a.x(), a.x().dtype);
}

void vjp_relu(ReluArgs, Backward &b)
{
    b.set(ReluArgs::kX, ops::relu_backward(b.grad(), b.out()));
}

void infer_tanh(TanhArgs a, Plan &plan)
{
    infer_floating(a.x(), plan);
}

void vjp_tanh(TanhArgs, Backward &b)
{
    b.set(TanhArgs::kX, ops::tanh_backward(b.grad(), b.out()));
}

void infer_gelu(GeluArgs a, Plan &plan)
{
    check_approximate(a.approximate(), plan.name());
    infer_floating(a.x(), plan);
}

void vjp_gelu(GeluArgs a, Backward &b)
{
    b.set(a.kX, ops::gelu_backward(b.grad(), a.x(), a.approximate().data()));
}

void infer_relu_backward(ReluBackwardArgs a, Plan &plan)
{
    plan.result_like(a.out(), a.out().dtype);
}

void infer_tanh_backward(TanhBackwardArgs a, Plan &plan)
{
    plan.result_like(a.out(), a.out().dtype);
}

void infer_gelu_backward(GeluBackwardArgs a, Plan &plan)
{
    plan.result_like(a.x(), a.x().dtype);
}

// ---- Copies ----------------------------------------------------------------------------------------------

void infer_cast(CastArgs a, Plan &plan)
{
    check_dtype(a.dtype(), plan.name());
    if (a.x().dtype == a.dtype()) return plan.self(a.x());
    plan.result_like(a.x(), a.dtype());
}

void vjp_cast(CastArgs a, Backward &b)
{
    b.set(a.kX, ops::cast(b.grad(), a.x().dtype));
}

void infer_clone(CloneArgs a, Plan &plan)
{
    plan.result(a.x().shape(), a.x().dtype);
}

void vjp_clone(CloneArgs, Backward &b)
{
    b.set(CloneArgs::kX, b.grad());
}

}  // namespace yoke
