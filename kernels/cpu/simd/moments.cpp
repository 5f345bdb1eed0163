// var, std and logsumexp over any set of axes: the reductions that look twice.
#include "kernels/common/moments.h"
#include "kernels/cpu/simd/reduce.h"

YOKE_SIMD_BEGIN

// The variance, or its square root; and beside it the mean, in double.
template <bool kRoot>
static yoke_status reduce_moments(const yoke_launch *launch)
{
    const double correction = float_param(launch->params[2]);
    const yoke_operand &result = launch->operands[1];
    double *means = data_of<double>(launch->operands[2]);
    return for_float(launch, "x", launch->operands[0].dtype, [&]<class T>() {
        using Moments = kernels::Moments<compute_type<T>>;
        const Moments op;
        return reduce<T>(launch, op, [=](char *out, typename Moments::State state) {
            *(T *)out = convert<T>(kRoot ? op.deviation(state, correction)
                                         : op.variance(state, correction));
            means[(T *)out - data_of<T>(result)] = op.mean(state);
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
