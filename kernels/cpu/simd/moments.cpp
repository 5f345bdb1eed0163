// var, std and logsumexp over any set of axes: the reductions that look twice.
#include "kernels/common/moments.h"
#include "kernels/cpu/simd/reduce.h"

YOKE_SIMD_BEGIN

// Writes the variance, or its square root. Also writes the mean and the root in double.
template <bool kRoot>
static yoke_status reduce_moments(const yoke_launch *launch)
{
    const double correction = float_param(launch->params[2]);
    const yoke_operand &result = launch->operands[1];
    double *means = data_of<double>(launch->operands[2]);
    double *roots = kRoot ? data_of<double>(launch->operands[3]) : nullptr;
    return for_float(launch, "x", launch->operands[0].dtype, [&]<class T>() {
        using Moments = kernels::Moments<compute_type<T>>;
        const Moments op;
        return reduce<T>(launch, op, [=](char *out, typename Moments::State state) {
            const int64_t i = (T *)out - data_of<T>(result);
            const double value =
                kRoot ? op.deviation(state, correction) : op.variance(state, correction);
            *(T *)out = convert<T>(value);
            means[i] = op.mean(state);
            if constexpr (kRoot) roots[i] = value;
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
