// argmax and argmin: where the first of the largest, or smallest, elements is.
#include "kernels/cuda/ops/extreme.cuh"
#include "kernels/cuda/ops/reduce.cuh"

YOKE_CUDA_BEGIN

// Largest value and its place, as in kernels::Argmax. NaN wins; of equal values the first wins.
template <class C>
struct First {
    using Argmax = kernels::Argmax<C>;
    using Element = C;
    using State = typename Argmax::State;
    Ordered<C> order;

    __device__ Element element(C x) const { return order.turned(x); }
    __device__ State init() const { return Argmax().init(); }
    // Takes x if x is larger than the value so far, the first NaN, or the first element. Elements come in rising
    // order of `i`, so the first of equal elements stays.
    __device__ State reduce(State s, Element x, int64_t i) const
    {
        const bool take = (!(x <= s.value) & (s.value == s.value)) | (s.index == INT64_MAX);
        return {kernels::select(take, x, s.value), kernels::select(take, i, s.index)};
    }
    __device__ State combine(State a, State b) const { return Argmax().combine(a, b); }
    __device__ void put(char *out, State s) const { *(int64_t *)out = s.index; }
};

static yoke_status find_first(const yoke_launch *launch, bool smallest)
{
    const yoke_operand &x = launch->operands[0], &out = launch->operands[1];
    const yoke_arg &axis = launch->params[0];
    if (out.numel == 0) return YOKE_OK;
    if (x.numel == 0) return fail(YOKE_E_VALUE, 0, "%s: x has no elements", op_name(launch->op));
    bool is_reduced[YOKE_MAX_NDIM];
    kernels::mark_axes(axis, x.ndim, is_reduced);
    ReduceAxes axes(x, out, is_reduced);
    // Over all axes, elements are numbered row by row, however they lie.
    if (axis.kind == YOKE_ARG_NONE) kernels::plan_ordered<1>(axes.reduced, {&x}, 0, x.ndim);
    return for_any_format(launch, "x", x.dtype, [&]<class In>() {
        using C = typename In::Value;
        return reduce<In>(launch, axes, First<C>{Ordered<C>(smallest)});
    });
}

YOKE_KERNEL(argmax)
{
    return find_first(launch, false);
}

YOKE_KERNEL(argmin)
{
    return find_first(launch, true);
}

YOKE_CUDA_END
