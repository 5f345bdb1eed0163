// functions.cpp: elementwise functions beyond pointwise.cpp: shape rules and vjps.
#include "core/ops/family.h"
#include "core/ops/rules.h"

namespace yoke {

// ---- One argument ----------------------------------------------------------------------------------------

void vjp_log1p(Log1pArgs a, Backward &b)
{
    b.set(a.kX, ops::slope(b.grad(), a.x(), "log1p"));
}

void vjp_expm1(Expm1Args a, Backward &b)
{
    b.set(a.kX, ops::slope(b.grad(), a.x(), "exp"));
}

void vjp_log2(Log2Args a, Backward &b)
{
    b.set(a.kX, ops::slope(b.grad(), a.x(), "log2"));
}

void vjp_log10(Log10Args a, Backward &b)
{
    b.set(a.kX, ops::slope(b.grad(), a.x(), "log10"));
}

void vjp_exp2(Exp2Args, Backward &b)
{
    b.set(Exp2Args::kX, ops::slope(b.grad(), b.out(), "exp2"));
}

void vjp_square(SquareArgs a, Backward &b)
{
    b.set(a.kX, ops::slope(b.grad(), a.x(), "square"));
}

void vjp_tan(TanArgs, Backward &b)
{
    b.set(TanArgs::kX, ops::slope(b.grad(), b.out(), "tan"));
}

void vjp_atan(AtanArgs a, Backward &b)
{
    b.set(a.kX, ops::slope(b.grad(), a.x(), "atan"));
}

void vjp_asin(AsinArgs a, Backward &b)
{
    b.set(a.kX, ops::slope(b.grad(), a.x(), "asin"));
}

void vjp_acos(AcosArgs a, Backward &b)
{
    b.set(a.kX, ops::slope(b.grad(), a.x(), "acos"));
}

void vjp_sinh(SinhArgs a, Backward &b)
{
    b.set(a.kX, ops::slope(b.grad(), a.x(), "sinh"));
}

void vjp_cosh(CoshArgs a, Backward &b)
{
    b.set(a.kX, ops::slope(b.grad(), a.x(), "cosh"));
}

void vjp_trunc(TruncArgs, Backward &b)
{
    b.set(TruncArgs::kX, ops::zeros_like(b.grad()));
}

void vjp_frac(FracArgs, Backward &b)
{
    b.set(FracArgs::kX, b.grad());
}

void vjp_erfinv(ErfinvArgs, Backward &b)
{
    b.set(ErfinvArgs::kX, ops::slope(b.grad(), b.out(), "erfinv"));
}

void infer_nan_to_num(NanToNumArgs a, Plan &plan)
{
    const yoke_tensor &x = a.x();
    plan.result_like(x, x.dtype);
}

void vjp_nan_to_num(NanToNumArgs a, Backward &b)
{
    b.set(a.kX, ops::slope(b.grad(), a.x(), "finite"));
}

// ---- Two arguments ---------------------------------------------------------------------------------------

void vjp_atan2(Atan2Args a, Backward &b)
{
    if (b.needs(a.kX))
        set_broadcast(b, a.kX, a.x(), ops::pair_slope(b.grad(), a.x(), a.y(), "atan2"));
    if (b.needs(a.kY))
        set_broadcast(b, a.kY, a.y(), ops::neg(ops::pair_slope(b.grad(), a.y(), a.x(), "atan2")));
}

void vjp_logaddexp(LogaddexpArgs a, Backward &b)
{
    if (b.needs(a.kX))
        set_broadcast(b, a.kX, a.x(), ops::pair_slope(b.grad(), a.x(), a.y(), "logaddexp"));
    if (b.needs(a.kY))
        set_broadcast(b, a.kY, a.y(), ops::pair_slope(b.grad(), a.y(), a.x(), "logaddexp"));
}

// ---- Quotients and remainders ----------------------------------------------------------------------------

namespace {

// Broadcasts the operands of a division with a whole quotient. Raises YOKE_E_TYPE for bools, and YOKE_E_VALUE if a
// number divides integers by 0.
void plan_division(Args a, int x, int y, Plan &plan, const char *call)
{
    const yoke_dtype dtype = rules::operand_dtype(a.value(x), a.value(y), call);
    if (dtype == YOKE_BOOL)
        fail(YOKE_E_TYPE, "%s: bool tensors do not support %s; cast one to an integer dtype", call,
             call);
    if (!is_floating(dtype) && is_scalar(a.value(y)) && a.value(y).v.i == 0)
        fail(
            YOKE_E_VALUE,
            "%s: a divisor is 0, and integers have no infinity or NaN; cast x, which is %s, to a floating dtype",
            call, name(dtype));
    rules::broadcast_as(a, x, y, plan, dtype);
}

}  // namespace

void infer_fmod(FmodArgs a, Plan &plan)
{
    plan_division(a, a.kX, a.kY, plan, plan.name());
}

void vjp_fmod(FmodArgs a, Backward &b)
{
    if (b.needs(a.kX)) set_broadcast(b, a.kX, a.x(), b.grad());
    if (!b.needs(a.kY)) return;
    const Tensor quotient = ops::div_rounded(a.x(), a.y(), "trunc");
    set_broadcast(b, a.kY, a.y(), ops::neg(ops::mul(b.grad(), quotient)));
}

void infer_remainder(RemainderArgs a, Plan &plan)
{
    plan_division(a, a.kX, a.kY, plan, plan.name());
}

void vjp_remainder(RemainderArgs a, Backward &b)
{
    if (b.needs(a.kX)) set_broadcast(b, a.kX, a.x(), b.grad());
    if (!b.needs(a.kY)) return;
    const Tensor quotient = ops::floor_divide(a.x(), a.y());
    set_broadcast(b, a.kY, a.y(), ops::neg(ops::mul(b.grad(), quotient)));
}

namespace {

template <class DivisionArgs>
void set_no_slope(DivisionArgs a, Backward &b)
{
    for (const int i : {a.kX, a.kY})
        if (b.needs(i)) set_broadcast(b, i, a.value(i), ops::zeros_like(b.grad()));
}

}  // namespace

void infer_floor_divide(FloorDivideArgs a, Plan &plan)
{
    plan_division(a, a.kX, a.kY, plan, plan.name());
}

void vjp_floor_divide(FloorDivideArgs a, Backward &b)
{
    set_no_slope(a, b);
}

void infer_div_rounded(DivRoundedArgs a, Plan &plan)
{
    if (a.rounding_mode() != "trunc" && a.rounding_mode() != "floor")
        fail(YOKE_E_VALUE,
             "div: argument 'rounding_mode' is \"%s\"; it takes \"trunc\" or \"floor\"",
             std::string(a.rounding_mode()).c_str());
    plan_division(a, a.kX, a.kY, plan, "div");
}

void vjp_div_rounded(DivRoundedArgs a, Backward &b)
{
    set_no_slope(a, b);
}

// ---- Bits ------------------------------------------------------------------------------------------------

namespace {

void check_bits(yoke_dtype dtype, bool takes_bool, Plan &plan)
{
    if (is_floating(dtype))
        fail(YOKE_E_TYPE, "%s: the operands are %s together; it takes integers%s", plan.name(),
             name(dtype), takes_bool ? " and bool" : "");
    if (dtype == YOKE_BOOL && !takes_bool)
        fail(YOKE_E_TYPE, "%s: bool tensors do not support %s; cast one to an integer dtype",
             plan.name(), plan.name());
}

void plan_bits(Args a, int x, int y, Plan &plan, bool takes_bool)
{
    const yoke_dtype dtype = rules::operand_dtype(a.value(x), a.value(y), plan.name());
    check_bits(dtype, takes_bool, plan);
    rules::broadcast_as(a, x, y, plan, dtype);
}

}  // namespace

void infer_bitwise_and(BitwiseAndArgs a, Plan &plan)
{
    plan_bits(a, a.kX, a.kY, plan, true);
}

void infer_bitwise_or(BitwiseOrArgs a, Plan &plan)
{
    plan_bits(a, a.kX, a.kY, plan, true);
}

void infer_bitwise_xor(BitwiseXorArgs a, Plan &plan)
{
    plan_bits(a, a.kX, a.kY, plan, true);
}

void infer_bitwise_not(BitwiseNotArgs a, Plan &plan)
{
    if (is_floating(a.x().dtype))
        fail(YOKE_E_TYPE, "%s: argument 'x' is %s; it takes integers and bool", plan.name(),
             name(a.x().dtype));
    plan.result_like(a.x(), a.x().dtype);
}

void infer_bitwise_left_shift(BitwiseLeftShiftArgs a, Plan &plan)
{
    plan_bits(a, a.kX, a.kY, plan, false);
}

void infer_bitwise_right_shift(BitwiseRightShiftArgs a, Plan &plan)
{
    plan_bits(a, a.kX, a.kY, plan, false);
}

}  // namespace yoke
