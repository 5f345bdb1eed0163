// Vector norms over any set of axes.
#include "kernels/common/vector_norm.h"

#include "kernels/cuda/ops/extreme.cuh"
#include "kernels/cuda/ops/reduce.cuh"

YOKE_CUDA_BEGIN

// A norm of any order; which one, a kernel is told. Of infinite order it is the largest, or least, magnitude.
template <class In, class C = typename In::Value>
struct Norm {
    using Element = C;
    using State = C;
    double p;
    int dtype;  // of the result
    bool is_extreme;
    Ordered<C> order;

    __device__ Element element(C x) const
    {
        if (is_extreme) return order.turned(kernels::magnitude(x));
        if (p == 2) return kernels::OrderTwo().term(x);
        if (p == 1) return kernels::OrderOne().term(x);
        if (p == 0) return kernels::OrderZero().term(x);
        return kernels::OrderAny{p}.term(x);
    }
    __device__ State init() const { return is_extreme ? kernels::Amax<C>().init() : (C)0; }
    __device__ State reduce(State s, Element x, int64_t) const { return combine(s, x); }
    __device__ State combine(State a, State b) const
    {
        return is_extreme ? kernels::Amax<C>().combine(a, b) : a + b;
    }
    __device__ void put(char *out, State s) const
    {
        if (is_extreme)
            s = order.turned(s);
        else if (p == 2)
            s = kernels::OrderTwo().root(s);
        else if (p != 0 && p != 1)
            s = kernels::OrderAny{p}.root(s);
        put_one<In>(dtype, out, s);
    }
};

// norm's parameters: p, axis, keepdim, dtype.
YOKE_KERNEL(norm)
{
    const yoke_dtype from = launch->operands[0].dtype, to = launch->operands[1].dtype;
    const double p = float_param(launch->params[0]);
    if (from != to && to != YOKE_F32) return bad_dtype(launch, "the result", to);
    return for_float_format(launch, "x", from, [&]<class In>() {
        const bool is_extreme = p - p != 0;
        const Ordered<typename In::Value> order(is_extreme && p < 0);
        return reduce<In>(launch, Norm<In>{p, to, is_extreme, order}, 1);
    });
}

YOKE_CUDA_END
