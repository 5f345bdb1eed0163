// pointwise.cpp: elementwise arithmetic and functions: shape rules and vjps.
#include "core/ops/family.h"
#include "core/ops/rules.h"

namespace yoke {

// ---- Arithmetic ------------------------------------------------------------------------------------------

void vjp_add(AddArgs a, Backward &b)
{
    if (b.needs(a.kX)) set_broadcast(b, a.kX, a.x(), b.grad());
    if (b.needs(a.kY)) set_broadcast(b, a.kY, a.y(), b.grad());
}

void infer_sub(SubArgs a, Plan &plan)
{
    const yoke_dtype dtype = rules::operand_dtype(a.x(), a.y(), plan.name());
    if (dtype == YOKE_BOOL)
        fail(
            YOKE_E_TYPE,
            "%s: bool tensors cannot be subtracted; use logical_xor, or cast one of them to an integer dtype",
            plan.name());
    rules::broadcast_as(a, a.kX, a.kY, plan, dtype);
}

void vjp_sub(SubArgs a, Backward &b)
{
    if (b.needs(a.kX)) set_broadcast(b, a.kX, a.x(), b.grad());
    if (b.needs(a.kY)) set_broadcast(b, a.kY, a.y(), ops::neg(b.grad()));
}

void vjp_mul(MulArgs a, Backward &b)
{
    if (b.needs(a.kX)) set_broadcast(b, a.kX, a.x(), ops::mul(b.grad(), a.y()));
    if (b.needs(a.kY)) set_broadcast(b, a.kY, a.y(), ops::mul(b.grad(), a.x()));
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

void vjp_neg(NegArgs, Backward &b)
{
    b.set(NegArgs::kX, ops::neg(b.grad()));
}

void vjp_abs(AbsArgs a, Backward &b)
{
    b.set(a.kX, ops::abs_backward(b.grad(), a.x()));
}

void vjp_sign(SignArgs, Backward &b)
{
    b.set(SignArgs::kX, ops::zeros_like(b.grad()));
}

void vjp_floor(FloorArgs, Backward &b)
{
    b.set(FloorArgs::kX, ops::zeros_like(b.grad()));
}

void vjp_ceil(CeilArgs, Backward &b)
{
    b.set(CeilArgs::kX, ops::zeros_like(b.grad()));
}

void vjp_round(RoundArgs, Backward &b)
{
    b.set(RoundArgs::kX, ops::zeros_like(b.grad()));
}

// ---- Functions -------------------------------------------------------------------------------------------

void vjp_exp(ExpArgs, Backward &b)
{
    b.set(ExpArgs::kX, ops::mul(b.grad(), b.out()));
}

void vjp_log(LogArgs a, Backward &b)
{
    b.set(a.kX, ops::div(b.grad(), a.x()));
}

void vjp_sqrt(SqrtArgs, Backward &b)
{
    b.set(SqrtArgs::kX, ops::sqrt_backward(b.grad(), b.out()));
}

void vjp_rsqrt(RsqrtArgs, Backward &b)
{
    b.set(RsqrtArgs::kX, ops::rsqrt_backward(b.grad(), b.out()));
}

void vjp_reciprocal(ReciprocalArgs, Backward &b)
{
    b.set(ReciprocalArgs::kX, ops::reciprocal_backward(b.grad(), b.out()));
}

void vjp_sin(SinArgs a, Backward &b)
{
    b.set(a.kX, ops::sin_backward(b.grad(), a.x()));
}

void vjp_cos(CosArgs a, Backward &b)
{
    b.set(a.kX, ops::cos_backward(b.grad(), a.x()));
}

void vjp_erf(ErfArgs a, Backward &b)
{
    b.set(a.kX, ops::erf_backward(b.grad(), a.x()));
}

// ---- Powers ----------------------------------------------------------------------------------------------

void infer_pow(PowArgs a, Plan &plan)
{
    const yoke_dtype dtype = rules::operand_dtype(a.x(), a.y(), plan.name());
    if (dtype == YOKE_BOOL)
        fail(YOKE_E_TYPE,
             "%s: a power of bool tensors is not supported; cast one of them to an integer dtype",
             plan.name());
    if (!is_floating(dtype) && is_scalar(a.y()) && a.y().v.i < 0)
        fail(
            YOKE_E_VALUE,
            "%s: the exponent is %lld, and a negative power of an integer is not an integer; cast x, which is %s, to a floating dtype",
            plan.name(), static_cast<long long>(a.y().v.i), name(dtype));
    rules::broadcast_as(a, a.kX, a.kY, plan, dtype);
}

void vjp_pow(PowArgs a, Backward &b)
{
    if (b.needs(a.kX)) set_broadcast(b, a.kX, a.x(), ops::pow_backward(b.grad(), a.x(), a.y()));
    if (b.needs(a.kY))
        set_broadcast(b, a.kY, a.y(), ops::pow_exponent_backward(b.grad(), a.x(), a.y(), b.out()));
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

void vjp_clone(CloneArgs, Backward &b)
{
    b.set(CloneArgs::kX, b.grad());
}

}  // namespace yoke
