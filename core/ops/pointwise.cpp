// pointwise.cpp: elementwise arithmetic and functions: shape rules and vjps.
#include "core/ops/pointwise.h"
#include "core/ops/scalar.h"

namespace yoke {

namespace {

constexpr int kFirst = 0, kSecond = 1;  // the operands of every binary op

}  // namespace

yoke_dtype operand_dtype(const yoke_arg &x, const yoke_arg &y, const char *call)
{
    const bool x_is_tensor = x.kind == YOKE_ARG_TENSOR, y_is_tensor = y.kind == YOKE_ARG_TENSOR;
    if (x_is_tensor && y_is_tensor) return promote(x.v.tensor->dtype, y.v.tensor->dtype);
    if (!x_is_tensor && !y_is_tensor)
        fail(YOKE_E_TYPE, "%s: both arguments are numbers; give at least one tensor", call);
    return x_is_tensor ? promote_scalar(x.v.tensor->dtype, y.kind)
                       : promote_scalar(y.v.tensor->dtype, x.kind);
}

void infer_binary(const Args &a, Plan &plan, yoke_dtype dtype, yoke_dtype result)
{
    plan.cast(kFirst, dtype);
    plan.cast(kSecond, dtype);
    plan.scalar_dtype(dtype);
    if (result == YOKE_NONE) result = dtype;
    const yoke_arg &x = a.value(kFirst), &y = a.value(kSecond);
    if (x.kind != YOKE_ARG_TENSOR) {
        check_scalar_fits(x, dtype, plan.name(), "x");
        return plan.result_like(*y.v.tensor, result);
    }
    if (y.kind != YOKE_ARG_TENSOR) check_scalar_fits(y, dtype, plan.name(), "y");
    if (y.kind != YOKE_ARG_TENSOR || same(x.v.tensor->shape(), y.v.tensor->shape()))
        return plan.result_like(*x.v.tensor, result);
    plan.result(broadcast(x.v.tensor->shape(), y.v.tensor->shape(), plan.name()), result);
}

void infer_floating(const yoke_tensor &x, Plan &plan)
{
    const yoke_dtype dtype = cast_to_floating(plan, kFirst, x);
    plan.result_like(x, dtype);
}

void infer_number(const yoke_tensor &x, Plan &plan)
{
    if (x.dtype == YOKE_BOOL)
        fail(YOKE_E_TYPE, "%s: bool tensors have no %s; cast one to an integer dtype", plan.name(),
             plan.name());
    plan.result_like(x, x.dtype);
}

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
    if (dtype == YOKE_BOOL)
        fail(YOKE_E_TYPE,
             "%s: bool tensors have no sub; use logical_xor, or cast one to an integer dtype",
             plan.name());
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
    infer_number(a.x(), plan);
}

void vjp_neg(NegArgs, Backward &b)
{
    b.set(NegArgs::kX, ops::neg(b.grad()));
}

void infer_abs(AbsArgs a, Plan &plan)
{
    infer_number(a.x(), plan);
}

void vjp_abs(AbsArgs a, Backward &b)
{
    b.set(a.kX, ops::abs_backward(b.grad(), a.x()));
}

void infer_sign(SignArgs a, Plan &plan)
{
    infer_number(a.x(), plan);
}

void vjp_sign(SignArgs, Backward &b)
{
    b.set(SignArgs::kX, ops::zeros_like(b.grad()));
}

void infer_floor(FloorArgs a, Plan &plan)
{
    infer_number(a.x(), plan);
}

void vjp_floor(FloorArgs, Backward &b)
{
    b.set(FloorArgs::kX, ops::zeros_like(b.grad()));
}

void infer_ceil(CeilArgs a, Plan &plan)
{
    infer_number(a.x(), plan);
}

void vjp_ceil(CeilArgs, Backward &b)
{
    b.set(CeilArgs::kX, ops::zeros_like(b.grad()));
}

void infer_round(RoundArgs a, Plan &plan)
{
    infer_number(a.x(), plan);
}

void vjp_round(RoundArgs, Backward &b)
{
    b.set(RoundArgs::kX, ops::zeros_like(b.grad()));
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

void infer_sqrt(SqrtArgs a, Plan &plan)
{
    infer_floating(a.x(), plan);
}

void vjp_sqrt(SqrtArgs, Backward &b)
{
    b.set(SqrtArgs::kX, ops::sqrt_backward(b.grad(), b.out()));
}

void infer_rsqrt(RsqrtArgs a, Plan &plan)
{
    infer_floating(a.x(), plan);
}

void vjp_rsqrt(RsqrtArgs, Backward &b)
{
    b.set(RsqrtArgs::kX, ops::rsqrt_backward(b.grad(), b.out()));
}

void infer_reciprocal(ReciprocalArgs a, Plan &plan)
{
    infer_floating(a.x(), plan);
}

void vjp_reciprocal(ReciprocalArgs, Backward &b)
{
    b.set(ReciprocalArgs::kX, ops::reciprocal_backward(b.grad(), b.out()));
}

void infer_sin(SinArgs a, Plan &plan)
{
    infer_floating(a.x(), plan);
}

void vjp_sin(SinArgs a, Backward &b)
{
    b.set(a.kX, ops::sin_backward(b.grad(), a.x()));
}

void infer_cos(CosArgs a, Plan &plan)
{
    infer_floating(a.x(), plan);
}

void vjp_cos(CosArgs a, Backward &b)
{
    b.set(a.kX, ops::cos_backward(b.grad(), a.x()));
}

void infer_erf(ErfArgs a, Plan &plan)
{
    infer_floating(a.x(), plan);
}

void vjp_erf(ErfArgs a, Backward &b)
{
    b.set(a.kX, ops::erf_backward(b.grad(), a.x()));
}

void infer_abs_backward(AbsBackwardArgs a, Plan &plan)
{
    infer_like(a.x(), plan);
}

void infer_sqrt_backward(SqrtBackwardArgs a, Plan &plan)
{
    infer_like(a.out(), plan);
}

void infer_rsqrt_backward(RsqrtBackwardArgs a, Plan &plan)
{
    infer_like(a.out(), plan);
}

void infer_reciprocal_backward(ReciprocalBackwardArgs a, Plan &plan)
{
    infer_like(a.out(), plan);
}

void infer_sin_backward(SinBackwardArgs a, Plan &plan)
{
    infer_like(a.x(), plan);
}

void infer_cos_backward(CosBackwardArgs a, Plan &plan)
{
    infer_like(a.x(), plan);
}

void infer_erf_backward(ErfBackwardArgs a, Plan &plan)
{
    infer_like(a.x(), plan);
}

// ---- Powers ----------------------------------------------------------------------------------------------

void infer_pow(PowArgs a, Plan &plan)
{
    const yoke_dtype dtype = operand_dtype(a.x(), a.y(), plan.name());
    if (dtype == YOKE_BOOL)
        fail(YOKE_E_TYPE, "%s: bool tensors have no pow; cast one to an integer dtype",
             plan.name());
    if (!is_floating(dtype) && is_scalar(a.y()) && a.y().v.i < 0)
        fail(
            YOKE_E_VALUE,
            "%s: the exponent is %lld, and a negative power of an integer is no integer; cast x, which is %s, to a floating dtype",
            plan.name(), static_cast<long long>(a.y().v.i), name(dtype));
    infer_binary(a, plan, dtype);
}

void vjp_pow(PowArgs a, Backward &b)
{
    if (b.needs(a.kX)) set_broadcast(b, a.kX, a.x(), ops::pow_backward(b.grad(), a.x(), a.y()));
    if (b.needs(a.kY))
        set_broadcast(b, a.kY, a.y(), ops::pow_exponent_backward(b.grad(), a.x(), a.y(), b.out()));
}

void infer_pow_backward(PowBackwardArgs a, Plan &plan)
{
    plan.scalar_dtype(a.grad().dtype);
    infer_like(a.grad(), plan);
}

void infer_pow_exponent_backward(PowExponentBackwardArgs a, Plan &plan)
{
    plan.scalar_dtype(a.grad().dtype);
    infer_like(a.grad(), plan);
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
