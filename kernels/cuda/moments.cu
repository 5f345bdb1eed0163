// var, std and logsumexp over any set of axes: the reductions that look twice, at what is in registers.
#include "kernels/common/moments.h"
#include "kernels/common/vector_norm.h"
#include "kernels/cuda/reduce.cuh"

YOKE_CUDA_BEGIN

// The variance, or its square root.
template <class T>
struct Variance : Loaded<T, kernels::Moments<T>> {
    using State = typename kernels::Moments<T>::State;
    double correction;
    bool is_root;
    __device__ void put(char *out, State state) const
    {
        const double variance = this->variance(state, correction);
        *(T *)out = convert<T>(is_root ? kernels::square_root(variance) : variance);
    }
};

static yoke_status reduce_to_variance(const yoke_launch *launch, bool is_root)
{
    return for_float(launch, "x", launch->operands[0].dtype, [&]<class T>() {
        return reduce<T>(launch, Variance<T>{{}, float_param(launch->params[2]), is_root});
    });
}

YOKE_KERNEL(var)
{
    return reduce_to_variance(launch, false);
}

YOKE_KERNEL(std)
{
    return reduce_to_variance(launch, true);
}

template <class T>
struct LogSum : Loaded<T, kernels::LogSumExp<T>> {
    using State = typename kernels::LogSumExp<T>::State;
    __device__ void put(char *out, State state) const
    {
        *(T *)out = store<T>(this->project(state, 0));
    }
};

YOKE_KERNEL(logsumexp)
{
    return for_float(launch, "x", launch->operands[0].dtype,
                     [&]<class T>() { return reduce<T>(launch, LogSum<T>{}); });
}

YOKE_CUDA_END
