// Comparisons, logic and choice, over any strides.
#include "kernels/cpu/simd/pointwise.h"

YOKE_SIMD_BEGIN

YOKE_COMPARISON(eq, Equal)
YOKE_COMPARISON(ne, NotEqual)
YOKE_COMPARISON(lt, Less)
YOKE_COMPARISON(le, LessEqual)
YOKE_COMPARISON(gt, Greater)
YOKE_COMPARISON(ge, GreaterEqual)
YOKE_COMPARISON(logical_and, LogicalAnd)
YOKE_COMPARISON(logical_or, LogicalOr)
YOKE_COMPARISON(logical_xor, LogicalXor)
YOKE_TEST(logical_not, LogicalNot)
YOKE_TEST(isnan, IsNan)
YOKE_TEST(isfinite, IsFinite)

// Only the size of an element matters.
YOKE_KERNEL(where)
{
    const yoke_operand *x = launch->operands;
    return for_size(launch, "x", dtype_size(x[3].dtype), [&]<class T>() {
        return map_many<T, uint8_t, T, T>(
            x[3], x[0], x[1], x[2],
            [](uint8_t c, T yes, T no) __attribute__((always_inline)) { return c ? yes : no; });
    });
}

YOKE_SIMD_END
