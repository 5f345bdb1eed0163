// Functors of the elementwise ops and their arguments: one line an op, for every backend.
//
// A backend gives the macros: UNARY and BINARY(op, dtypes, Functor, grain), for ops with the result's dtype of
// operand 0; COMPARISON and TEST(op, Functor), for bool results; WITH_PARAMS and WITH_PARAMS_BACKWARD(op, Functor,
// grain, values…), for functors that hold parameters of the launch. `grain` is the number of elements worth sharing
// among threads on a CPU.
#pragma once

#include "kernels/common/elementwise.h"

#define YOKE_ARITHMETIC_OPS(UNARY, BINARY)                              \
    BINARY(add, for_any, Add, kGrain)                                   \
    BINARY(sub, for_any, Sub, kGrain)                                   \
    BINARY(mul, for_any, Mul, kGrain)                                   \
    BINARY(div, for_float, Div, kGrain)                                 \
    BINARY(maximum, for_any, Maximum, kGrain)                           \
    BINARY(minimum, for_any, Minimum, kGrain)                           \
    UNARY(neg, for_number, Neg, kGrain)                                 \
    UNARY(abs, for_number, Abs, kGrain)                                 \
    UNARY(sign, for_number, Sign, kGrain)                               \
    UNARY(floor, for_number, Floor, kGrain)                             \
    UNARY(ceil, for_number, Ceil, kGrain)                               \
    UNARY(round, for_number, Round, kGrain)                             \
    UNARY(exp, for_float, Exp, kCostlyGrain)                            \
    UNARY(log, for_float, Log, kCostlyGrain)                            \
    UNARY(sqrt, for_float, Sqrt, kCostlyGrain)                          \
    UNARY(rsqrt, for_float, Rsqrt, kCostlyGrain)                        \
    UNARY(reciprocal, for_float, Reciprocal, kGrain)                    \
    UNARY(sin, for_float, Sin, kCostlyGrain)                            \
    UNARY(cos, for_float, Cos, kCostlyGrain)                            \
    UNARY(erf, for_float, Erf, kCostlyGrain)                            \
    BINARY(_abs_backward, for_float, AbsBackward, kGrain)               \
    BINARY(_sqrt_backward, for_float, SqrtBackward, kGrain)             \
    BINARY(_rsqrt_backward, for_float, RsqrtBackward, kGrain)           \
    BINARY(_reciprocal_backward, for_float, ReciprocalBackward, kGrain) \
    BINARY(_sin_backward, for_float, SinBackward, kCostlyGrain)         \
    BINARY(_cos_backward, for_float, CosBackward, kCostlyGrain)         \
    BINARY(_erf_backward, for_float, ErfBackward, kCostlyGrain)

#define YOKE_PARAM(i) float_param(launch->params[i])
#define YOKE_ACTIVATION_OPS(UNARY, BINARY, WITH_PARAMS, WITH_PARAMS_BACKWARD)               \
    UNARY(relu, for_number, Relu, kGrain)                                                   \
    UNARY(tanh, for_float, Tanh, kCostlyGrain)                                              \
    UNARY(sigmoid, for_float, Sigmoid, kCostlyGrain)                                        \
    UNARY(silu, for_float, Silu, kCostlyGrain)                                              \
    BINARY(_relu_backward, for_number, ReluBackward, kGrain)                                \
    BINARY(_tanh_backward, for_float, TanhBackward, kGrain)                                 \
    BINARY(_sigmoid_backward, for_float, SigmoidBackward, kGrain)                           \
    BINARY(_silu_backward, for_float, SiluBackward, kCostlyGrain)                           \
    WITH_PARAMS(leaky_relu, LeakyRelu, kGrain, YOKE_PARAM(0))                               \
    WITH_PARAMS(elu, Elu, kCostlyGrain, YOKE_PARAM(0))                                      \
    WITH_PARAMS(softplus, Softplus, kCostlyGrain, YOKE_PARAM(0), YOKE_PARAM(1))             \
    WITH_PARAMS_BACKWARD(_leaky_relu_backward, LeakyReluBackward, kGrain, YOKE_PARAM(0))    \
    WITH_PARAMS_BACKWARD(_elu_backward, EluBackward, kCostlyGrain, YOKE_PARAM(0))           \
    WITH_PARAMS_BACKWARD(_softplus_backward, SoftplusBackward, kCostlyGrain, YOKE_PARAM(0), \
                         YOKE_PARAM(1))

#define YOKE_COMPARISON_OPS(COMPARISON, TEST) \
    COMPARISON(eq, Equal)                     \
    COMPARISON(ne, NotEqual)                  \
    COMPARISON(lt, Less)                      \
    COMPARISON(le, LessEqual)                 \
    COMPARISON(gt, Greater)                   \
    COMPARISON(ge, GreaterEqual)              \
    COMPARISON(logical_and, LogicalAnd)       \
    COMPARISON(logical_or, LogicalOr)         \
    COMPARISON(logical_xor, LogicalXor)       \
    TEST(logical_not, LogicalNot)             \
    TEST(isnan, IsNan)                        \
    TEST(isfinite, IsFinite)                  \
    TEST(isinf, IsInf)

// Functions beyond arithmetic, and the names of their slopes: _slope and _pair_slope choose a functor by name.
#define YOKE_FUNCTION_OPS(UNARY, BINARY)           \
    UNARY(log1p, for_float, Log1p, kCostlyGrain)   \
    UNARY(expm1, for_float, Expm1, kCostlyGrain)   \
    UNARY(log2, for_float, Log2, kCostlyGrain)     \
    UNARY(log10, for_float, Log10, kCostlyGrain)   \
    UNARY(exp2, for_float, Exp2, kCostlyGrain)     \
    UNARY(square, for_number, Square, kGrain)      \
    UNARY(tan, for_float, Tan, kCostlyGrain)       \
    UNARY(atan, for_float, Atan, kCostlyGrain)     \
    UNARY(asin, for_float, Asin, kCostlyGrain)     \
    UNARY(acos, for_float, Acos, kCostlyGrain)     \
    UNARY(sinh, for_float, Sinh, kCostlyGrain)     \
    UNARY(cosh, for_float, Cosh, kCostlyGrain)     \
    UNARY(trunc, for_number, Trunc, kGrain)        \
    UNARY(frac, for_float, Frac, kGrain)           \
    UNARY(erfinv, for_float, Erfinv, kCostlyGrain) \
    BINARY(atan2, for_float, Atan2, kCostlyGrain)  \
    BINARY(logaddexp, for_float, LogAddExp, kCostlyGrain)

#define YOKE_SLOPES(SLOPE)         \
    SLOPE("exp", SlopeOfExp)       \
    SLOPE("exp2", SlopeOfExp2)     \
    SLOPE("log1p", SlopeOfLog1p)   \
    SLOPE("log2", SlopeOfLog2)     \
    SLOPE("log10", SlopeOfLog10)   \
    SLOPE("square", SlopeOfSquare) \
    SLOPE("tan", SlopeOfTan)       \
    SLOPE("atan", SlopeOfAtan)     \
    SLOPE("asin", SlopeOfAsin)     \
    SLOPE("acos", SlopeOfAcos)     \
    SLOPE("sinh", SlopeOfSinh)     \
    SLOPE("cosh", SlopeOfCosh)     \
    SLOPE("erfinv", SlopeOfErfinv) \
    SLOPE("finite", SlopeOfFinite)

#define YOKE_PAIR_SLOPES(SLOPE)  \
    SLOPE("atan2", SlopeOfAtan2) \
    SLOPE("logaddexp", SlopeOfLogAddExp)

#define YOKE_BIT_OPS(OP)    \
    OP(bitwise_and, BitAnd) \
    OP(bitwise_or, BitOr)   \
    OP(bitwise_xor, BitXor)

#define YOKE_SHIFT_OPS(OP)          \
    OP(bitwise_left_shift, ShiftUp) \
    OP(bitwise_right_shift, ShiftDown)
