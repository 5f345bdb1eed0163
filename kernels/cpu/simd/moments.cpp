// var, std and logsumexp over any set of axes: the reductions that look twice.
#include "kernels/common/moments.h"
#include "kernels/common/vector_norm.h"
#include "kernels/cpu/simd/reduce.h"

YOKE_SIMD_BEGIN

// The variance, or its square root.
template <bool kRoot>
static yoke_status reduce_moments(const yoke_launch *launch)
{
    double correction = float_param(launch->params[2]);
    return for_float(launch, "x", launch->operands[0].dtype, [&]<class T>() {
        kernels::Moments<compute_type<T>> op;
        return reduce<T>(
            launch, op, [=](char *out, typename kernels::Moments<compute_type<T>>::State state) {
                double variance = op.variance(state, correction);
                *(T *)out = convert<T>(kRoot ? kernels::square_root(variance) : variance);
            });
    });
}

YOKE_KERNEL(var)
{
    return reduce_moments<false>(launch);
}

YOKE_KERNEL(std)
{
    return reduce_moments<true>(launch);
}

YOKE_KERNEL(logsumexp)
{
    return for_float(launch, "x", launch->operands[0].dtype, [&]<class T>() {
        kernels::LogSumExp<compute_type<T>> op;
        return reduce<T>(launch, op,
                         [=](char *out, typename kernels::LogSumExp<compute_type<T>>::State state) {
                             *(T *)out = store<T>(op.project(state, 0));
                         });
    });
}

YOKE_SIMD_END
