// Comparisons, logic and choice.
#include "kernels/common/pointwise_ops.h"
#include "kernels/cuda/ops/map.cuh"

YOKE_CUDA_BEGIN

using Comparisons =
    OneOf<kernels::Equal, kernels::NotEqual, kernels::Less, kernels::LessEqual, kernels::Greater,
          kernels::GreaterEqual, kernels::LogicalAnd, kernels::LogicalOr, kernels::LogicalXor>;
using Tests = OneOf<kernels::LogicalNot, kernels::IsNan, kernels::IsFinite, kernels::IsInf>;
#define YOKE_GROUPS Comparisons, Tests

YOKE_COMPARISON_OPS(YOKE_COMPARISON, YOKE_TEST)
#undef YOKE_GROUPS

struct Choice {
    YOKE_HD uint64_t operator()(uint64_t condition, uint64_t yes, uint64_t no) const
    {
        return condition ? yes : no;
    }
};

// Chooses between words of the elements' size, because only the size matters.
YOKE_KERNEL(where)
{
    return ternary<Words>(launch, Choice());
}

YOKE_KERNEL(masked_fill)
{
    const yoke_operand *x = launch->operands;
    if (x[1].dtype != YOKE_BOOL) return bad_dtype(launch, "mask", x[1].dtype);
    return map<Words>(launch, x[3], Choice(), x[1], x[2], x[0]);
}

YOKE_CUDA_END
