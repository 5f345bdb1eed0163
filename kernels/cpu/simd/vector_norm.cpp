// Vector norms over any set of axes.
#include "kernels/common/vector_norm.h"
#include "kernels/cpu/simd/reduce.h"

YOKE_SIMD_BEGIN

// Reduces x by the op of a norm, and stores the norm in the result's dtype. norm's parameters are p, axis, keepdim,
// dtype.
template <class T, class Op>
static yoke_status reduce_to_norm(const yoke_launch *launch, const Op &op)
{
    yoke_dtype dtype = launch->operands[1].dtype;
    return reduce<T>(
        launch, op,
        [=](char *out, typename Op::State state) { put_as(dtype, out, op.project(state, 0)); }, 1);
}

YOKE_KERNEL(norm)
{
    using namespace kernels;
    yoke_dtype dtype = launch->operands[1].dtype;
    if (dtype_size(dtype) == 0) return bad_dtype(launch, "the result", dtype);
    double p = float_param(launch->params[0]);
    return for_float(launch, "x", launch->operands[0].dtype, [&]<class T>() {
        using C = compute_type<T>;
        if (p == 0) return reduce_to_norm<T>(launch, SumNorm<C, OrderZero>{});
        if (p == 1) return reduce_to_norm<T>(launch, SumNorm<C, OrderOne>{});
        if (p == 2) return reduce_to_norm<T>(launch, SumNorm<C, OrderTwo>{});
        if (p == (double)kInfinity) return reduce_to_norm<T>(launch, ExtremeNorm<C, Amax>{});
        if (p == -(double)kInfinity) return reduce_to_norm<T>(launch, ExtremeNorm<C, Amin>{});
        return reduce_to_norm<T>(launch, SumNorm<C, OrderAny>{{p}});
    });
}

YOKE_SIMD_END
