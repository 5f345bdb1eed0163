// Vector norms over any set of axes.
#include "kernels/common/vector_norm.h"

#include "kernels/cuda/ops/extreme.cuh"
#include "kernels/cuda/ops/reduce.cuh"

YOKE_CUDA_BEGIN

// The functions for unusual orders and unusual values are not inlined, so their code exists once.

template <class C>
__device__ __attribute__((noinline)) inline C raise_apart(C size, C p)
{
    return kernels::raised(size, p);
}

// Finite order, known to a kernel at run time.
struct FiniteOrder {
    static constexpr bool kRaises = true;
    double p;

    __device__ bool leads(double a, double b) const { return kernels::OrderAny{p}.leads(a, b); }
    template <class C>
    __device__ C term(C x) const
    {
        if (p == 2) return kernels::OrderTwo().term(x);
        if (p == 1) return kernels::OrderOne().term(x);
        if (p == 0) return kernels::OrderZero().term(x);
        return raise_apart(kernels::magnitude(x), (C)p);
    }
    __device__ double scaled_term(double x, double scale) const { return scaled(p, x, scale); }
    __device__ double root(double s) const
    {
        if (p == 2) return kernels::OrderTwo().root(s);
        return p == 0 || p == 1 ? s : raise_apart(s, 1 / p);
    }

private:
    __device__ __attribute__((noinline)) static double scaled(double p, double x, double scale)
    {
        return FiniteOrder{p}.term(x / scale);
    }
};

// Joins sums of different scales.
template <class C>
__device__ __attribute__((noinline)) inline kernels::ScaledSum join_apart(double p,
                                                                          kernels::ScaledSum a,
                                                                          kernels::ScaledSum b)
{
    return kernels::SumNorm<C, FiniteOrder>{{p}}.combine(a, b);
}

template <class In, class C = typename In::Value>
struct Norm : OfValues<C, kernels::SumNorm<C, FiniteOrder>> {
    __device__ kernels::ScaledSum combine(const kernels::ScaledSum &a,
                                          const kernels::ScaledSum &b) const
    {
        return a.scale == b.scale ? this->combine_plain(a, b) : join_apart<C>(this->order.p, a, b);
    }
    __device__ void put(char *out, kernels::ScaledSum state) const
    {
        put_one<In>(this->dtype, out, this->project(state, 0));
    }
};

// The largest, or least, magnitude.
template <class In, class C = typename In::Value>
struct ExtremeNorm : OfValues<C, kernels::Amax<C>> {
    using State = C;
    Ordered<C> order;
    __device__ C element(C x) const { return order.turned(kernels::magnitude(x)); }
    __device__ void put(char *out, C state) const
    {
        put_one<In>(this->dtype, out, order.turned(state));
    }
};

// Computes the norm. Parameters: p, axis, keepdim, dtype.
YOKE_KERNEL(norm)
{
    const yoke_dtype from = launch->operands[0].dtype, to = launch->operands[1].dtype;
    const double p = float_param(launch->params[0]);
    if (from != to && to != YOKE_F32) return bad_dtype(launch, "the result", to);
    return for_float_format(launch, "x", from, [&]<class In>() {
        if (p - p == 0) return reduce<In>(launch, Norm<In>{{{{p}}, to}}, 1);
        const Ordered<typename In::Value> order(p < 0);
        return reduce<In>(launch, ExtremeNorm<In>{{{}, to}, order}, 1);
    });
}

YOKE_CUDA_END
