// Comparisons, logic and choice, over any strides.
#include "kernels/cpu/simd/pointwise.h"

YOKE_SIMD_BEGIN

YOKE_COMPARISON_OPS(YOKE_COMPARISON, YOKE_TEST)

template <class T>
struct Choice {
    YOKE_HD T operator()(uint8_t condition, T yes, T no) const { return condition ? yes : no; }
};

// Chooses elements of two operands by a condition. Only the size of an element matters.
YOKE_KERNEL(where)
{
    const yoke_operand *x = launch->operands;
    return for_size(launch, "x", dtype_size(x[3].dtype), [&]<class T>() {
        return map<T, uint8_t, T, T>(Choice<T>(), kGrain, x[3], x[0], x[1], x[2]);
    });
}

YOKE_SIMD_END
