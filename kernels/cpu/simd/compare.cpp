// Comparisons, logic and choice, over any strides.
#include "kernels/cpu/simd/pointwise.h"

YOKE_SIMD_BEGIN

YOKE_COMPARISON_OPS(YOKE_COMPARISON, YOKE_TEST)

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
