// Vector norms over any set of axes.
#include "kernels/common/vector_norm.h"

#include "kernels/cuda/extreme.cuh"
#include "kernels/cuda/reduce.cuh"

YOKE_CUDA_BEGIN

// The orders but 2, in one kernel: the sum of |x|^p is all that they cost.
struct OrderOther {
    double p;
    template <class C>
    YOKE_HD C term(C x) const
    {
        if (p == 0) return kernels::OrderZero().term(x);
        if (p == 1) return kernels::OrderOne().term(x);
        return kernels::OrderAny{p}.term(x);
    }
    template <class C>
    YOKE_HD C root(C s) const
    {
        return p == 0 || p == 1 ? s : kernels::OrderAny{p}.root(s);
    }
};

template <class T, class Order>
struct SumOfPowers : Loaded<T, kernels::SumNorm<T, Order>> {
    bool is_wide;
    __device__ void put(char *out, compute_type<T> state) const
    {
        put_result<T>(out, is_wide, this->project(state, 0));
    }
};

// The largest, or least, magnitude.
template <class T>
struct ExtremeMagnitude : Extreme<T> {
    bool is_wide;
    __device__ compute_type<T> element(T x) const
    {
        return this->order.turned(kernels::magnitude(load<T>(x)));
    }
    __device__ void put(char *out, compute_type<T> state) const
    {
        put_result<T>(out, is_wide, this->order.turned(state));
    }
};

// norm's parameters: p, axis, keepdim, dtype.
YOKE_KERNEL(norm)
{
    const yoke_dtype from = launch->operands[0].dtype, to = launch->operands[1].dtype;
    const double p = float_param(launch->params[0]);
    const bool is_wide = from != to;
    if (is_wide && to != YOKE_F32) return bad_dtype(launch, "the result", to);
    return for_float(launch, "x", from, [&]<class T>() {
        if (p == 2) return reduce<T>(launch, SumOfPowers<T, kernels::OrderTwo>{{}, is_wide}, 1);
        if (p - p != 0)
            return reduce<T>(launch, ExtremeMagnitude<T>{{{}, Ordered<T>(p < 0)}, is_wide}, 1);
        SumOfPowers<T, OrderOther> op{};
        op.order.p = p;
        op.is_wide = is_wide;
        return reduce<T>(launch, op, 1);
    });
}

YOKE_CUDA_END
