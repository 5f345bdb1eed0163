// var, std and logsumexp over any set of axes: the reductions that look twice, at what is in registers.
#include "kernels/common/moments.h"
#include "kernels/common/vector_norm.h"
#include "kernels/cuda/ops/reduce.cuh"

YOKE_CUDA_BEGIN

// The variance, or its square root.
template <class In, class C = typename In::Value>
struct Variance : OfValues<C, kernels::Moments<C>> {
    using State = typename kernels::Moments<C>::State;
    double correction;
    bool is_root;
    __device__ void put(char *out, State state) const
    {
        const double variance = this->variance(state, correction);
        put_one<In>(this->dtype, out, is_root ? kernels::square_root(variance) : variance);
    }
};

static yoke_status reduce_to_variance(const yoke_launch *launch, bool is_root)
{
    const yoke_dtype dtype = launch->operands[0].dtype;
    return for_float_format(launch, "x", dtype, [&]<class In>() {
        return reduce<In>(launch,
                          Variance<In>{{{}, dtype}, float_param(launch->params[2]), is_root});
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

template <class In, class C = typename In::Value>
struct LogSum : OfValues<C, kernels::LogSumExp<C>> {
    using State = typename kernels::LogSumExp<C>::State;
    __device__ void put(char *out, State state) const
    {
        put_one<In>(this->dtype, out, this->project(state, 0));
    }
};

YOKE_KERNEL(logsumexp)
{
    const yoke_dtype dtype = launch->operands[0].dtype;
    return for_float_format(launch, "x", dtype, [&]<class In>() {
        return reduce<In>(launch, LogSum<In>{{{}, dtype}});
    });
}

YOKE_CUDA_END
