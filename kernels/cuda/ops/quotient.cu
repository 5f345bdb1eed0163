// Whole quotients and remainders, and bitwise functions.
#include "kernels/common/named.h"
#include "kernels/common/pointwise_ops.h"
#include "kernels/cuda/host/fault.h"
#include "kernels/cuda/ops/map.cuh"

YOKE_CUDA_BEGIN

// ---- quotients ------------------------------------------------------------------------------------------------------

using Divisions =
    OneOf<kernels::Fmod, kernels::Remainder, kernels::FloorDivide, kernels::TruncDivide>;

// Division of integers. A division by 0 is reported, and the element is 0.
struct CheckedDivision {
    Reporter reporter;
    Divisions chosen;
    __device__ int64_t operator()(int64_t x, int64_t y) const
    {
        if (y == 0) report(reporter, 0, 0, 0);
        int64_t result = 0;
        chosen.with([&](const auto &f) { result = f(x, y); });
        return result;
    }
};

template <class F>
static yoke_status divide(const yoke_launch *launch, const char *by_zero)
{
    return for_number_format(launch, "x", launch->operands[0].dtype, [&]<class In>() {
        if constexpr (std::is_same_v<In, Integers>)
            return binary<In>(launch, CheckedDivision{reporter(launch, by_zero, YOKE_E_VALUE),
                                                      Divisions::of<F>()});
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

// A bool is 0 or 1, of which all bits but one are no value.
struct NotOf {
    bool of_bools;
    __device__ int64_t operator()(int64_t x) const { return of_bools ? (int64_t)(x == 0) : ~x; }
};

YOKE_KERNEL(bitwise_not)
{
    return unary<Integers>(launch, NotOf{launch->operands[0].dtype == YOKE_BOOL});
}

YOKE_CUDA_END
