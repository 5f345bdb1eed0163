// var, std and logsumexp over any set of axes: reductions with two passes over the elements in registers.
#include "kernels/common/moments.h"
#include "kernels/cuda/ops/reduce.cuh"

YOKE_CUDA_BEGIN

// Joins states. Not inlined, so the code exists once: a thread joins states of many elements.
template <class F>
__device__ __attribute__((noinline)) inline typename F::State join_apart(typename F::State a,
                                                                         typename F::State b)
{
    return F().combine(a, b);
}

// Variance, or its square root. Also the mean and the root in double.
template <class In, class C = typename In::Value>
struct Variance : OfValues<C, kernels::Moments<C>> {
    using State = typename kernels::Moments<C>::State;
    __device__ State combine(const State &a, const State &b) const
    {
        return join_apart<kernels::Moments<C>>(a, b);
    }
    double correction;
    const char *results;
    int size;  // size of a result
    double *means;
    double *roots;  // null: the variance is wanted
    __device__ void put(char *out, State state) const
    {
        const double value =
            roots ? this->deviation(state, correction) : this->variance(state, correction);
        const int64_t i = (out - results) / size;
        put_one<In>(this->dtype, out, value);
        means[i] = this->mean(state);
        if (roots) roots[i] = value;
    }
};

static yoke_status reduce_to_variance(const yoke_launch *launch, bool is_root)
{
    const yoke_operand &x = launch->operands[0], &out = launch->operands[1];
    return for_float_format(launch, "x", x.dtype, [&]<class In>() {
        return reduce<In>(launch,
                          Variance<In>{{{}, x.dtype},
                                       float_param(launch->params[2]),
                                       data_of<char>(out),
                                       (int)dtype_size(x.dtype),
                                       data_of<double>(launch->operands[2]),
                                       is_root ? data_of<double>(launch->operands[3]) : nullptr});
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
    __device__ State combine(const State &a, const State &b) const
    {
        return join_apart<kernels::LogSumExp<C>>(a, b);
    }
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
