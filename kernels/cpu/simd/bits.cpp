// Bitwise functions of integers and bools, over any strides.
#include "kernels/cpu/simd/pointwise.h"

YOKE_SIMD_BEGIN

// Combines bits. Only the size of an integer matters; a bool is 0 or 1, whatever its byte.
template <class F>
static yoke_status combine_bits(const yoke_launch *launch)
{
    switch (launch->operands[0].dtype) {
        case YOKE_I64:
            return binary<int64_t, F>(launch, kGrain);
        case YOKE_I32:
            return binary<int32_t, F>(launch, kGrain);
        case YOKE_I8:
        case YOKE_U8:
            return binary<uint8_t, F>(launch, kGrain);
        case YOKE_BOOL:
            return binary<bool8, F>(launch, kGrain);
        default:
            return bad_dtype(launch, "x", launch->operands[0].dtype);
    }
}

#define YOKE_BITS(name, F)                       \
    YOKE_KERNEL(name)                            \
    {                                            \
        return combine_bits<kernels::F>(launch); \
    }
YOKE_BIT_OPS(YOKE_BITS)

YOKE_KERNEL(bitwise_not)
{
    if (launch->operands[0].dtype == YOKE_BOOL) return test<bool8, kernels::LogicalNot>(launch);
    return for_integer(launch, "x", launch->operands[0].dtype,
                       [&]<class T>() { return unary<T, kernels::BitNot>(launch, kGrain); });
}

#define YOKE_SHIFT(name, F) \
    YOKE_POINTWISE(name, for_integer, kGrain, (binary<T, kernels::F>(launch, kGrain)))
YOKE_SHIFT_OPS(YOKE_SHIFT)

YOKE_SIMD_END
