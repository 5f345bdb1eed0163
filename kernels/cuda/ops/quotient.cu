// Whole quotients and remainders, and bitwise functions.
#include "kernels/common/named.h"
#include "kernels/common/pointwise_ops.h"
#include "kernels/cuda/host/fault.h"
#include "kernels/cuda/ops/map.cuh"

YOKE_CUDA_BEGIN

// ---- quotients ------------------------------------------------------------------------------------------------------

using Divisions =
    Seldom<kernels::Fmod, kernels::Remainder, kernels::FloorDivide, kernels::TruncDivide>;

// Division of integers. A division by 0 is reported, and the element is 0.
struct CheckedDivision {
    static constexpr bool kIsSeldom = true;
    Reporter reporter;
    int which;  // of Divisions
    __device__ int64_t operator()(int64_t x, int64_t y) const
    {
        if (y == 0) report(reporter, 0, 0, 0);
        return call_apart<int64_t>(Divisions{{which, {}}}, x, y);
    }
};

template <class F>
static yoke_status divide(const yoke_launch *launch, const char *by_zero)
{
    return for_number_format(launch, "x", launch->operands[0].dtype, [&]<class In>() {
        if constexpr (std::is_same_v<In, Integers>)
            return binary<In>(launch, CheckedDivision{reporter(launch, by_zero, YOKE_E_VALUE),
                                                      Divisions::of<F>().which});
        else
            return binary<In>(launch, Divisions::of<F>());
    });
}

constexpr const char *kByZero =
    "%s: a divisor is 0, and integers have no infinity or NaN; cast x to a floating dtype";

YOKE_KERNEL(fmod)
{
    return divide<kernels::Fmod>(launch, kByZero);
}

YOKE_KERNEL(remainder)
{
    return divide<kernels::Remainder>(launch, kByZero);
}

YOKE_KERNEL(floor_divide)
{
    return divide<kernels::FloorDivide>(launch, kByZero);
}

YOKE_KERNEL(_div_rounded)
{
    constexpr const char *by_zero =
        "div: a divisor is 0, and integers have no infinity or NaN; cast x to a floating dtype";
    return kernels::is_text(launch->params[0], "floor")
               ? divide<kernels::FloorDivide>(launch, by_zero)
               : divide<kernels::TruncDivide>(launch, by_zero);
}

// ---- bits -----------------------------------------------------------------------------------------------------------

using BitPairs =
    OneOf<kernels::BitAnd, kernels::BitOr, kernels::BitXor, kernels::ShiftUp, kernels::ShiftDown>;

#define YOKE_BITS(name, F)                                           \
    YOKE_KERNEL(name)                                                \
    {                                                                \
        return binary<Integers>(launch, BitPairs::of<kernels::F>()); \
    }
YOKE_BIT_OPS(YOKE_BITS)
YOKE_SHIFT_OPS(YOKE_BITS)

// Exchanges all bits: of a bool, which is 0 or 1, a single one.
YOKE_KERNEL(bitwise_not)
{
    const yoke_operand *x = launch->operands;
    yoke_operand bits = {};
    bits.numel = 1;
    bits.dtype = x[0].dtype;
    bits.flags = YOKE_OPERAND_READ | YOKE_OPERAND_SCALAR | YOKE_OPERAND_CONTIGUOUS;
    bits.immediate = x[0].dtype == YOKE_BOOL ? 1 : ~(uint64_t)0;
    return map<Integers>(launch, x[1], BitPairs::of<kernels::BitXor>(), x[0], bits);
}

YOKE_CUDA_END
