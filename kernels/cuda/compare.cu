// Comparisons, logic and choice.
#include "kernels/common/pointwise_ops.h"
#include "kernels/cuda/map.cuh"

YOKE_CUDA_BEGIN

YOKE_COMPARISON_OPS(YOKE_COMPARISON, YOKE_TEST)

template <class T>
struct Choice {
    YOKE_HD T operator()(uint8_t condition, T yes, T no) const { return condition ? yes : no; }
};

// Only the size of an element matters.
YOKE_KERNEL(where)
{
    const yoke_operand *x = launch->operands;
    return for_size(launch, "x", dtype_size(x[3].dtype), [&]<class T>() {
        return map<T>(launch, x[3], Choice<T>(), Input<uint8_t>(x[0]), Input<T>(x[1]),
                      Input<T>(x[2]));
    });
}

YOKE_CUDA_END
