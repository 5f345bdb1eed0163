// Gradients of batch_norm (also with residual and relu) and group_norm: the sums of each plane of g and x, then
// numbers by channel or group, then a map over g and x. Both are read twice. A relu's mask is applied as g is read.
#include "kernels/common/norm.h"

#include "kernels/cuda/ops/norm_channels.cuh"

YOKE_CUDA_BEGIN

using kernels::BatchGradientCall;
using kernels::GradientMap;
using kernels::PlaneGradientSums;
using kernels::ReluGradientMap;

// Sums of g, and of g times the normalised x (inputs: x, g).
template <class C>
struct PlaneGradients : kernels::PlaneStatistics<C> {
    static constexpr int kInputs = 2;
    using State = PlaneGradientSums;
    using Sums = kernels::GradientSums<C>;
    struct Local {
        C scale, mean, rstd;
    };

    __device__ static State init() { return State::init(); }
    __device__ static State combine(const State &a, const State &b) { return State::combine(a, b); }
    __device__ static Sums join(const Sums &a, const Sums &b) { return Sums::combine(a, b); }
    template <int K>
    __device__ Local local(int64_t plane, const C (&)[K]) const
    {
        const kernels::Normal<C> normal = this->normal(plane);
        return {normal.scale, normal.mean, normal.rstd};
    }
    __device__ C add(Sums &sums, const Local &of, const C (&x)[2]) const
    {
        sums.g += x[1];
        sums.g_normal += x[1] * ((x[0] * of.scale - of.mean) * of.rstd);
        return x[1];
    }
    __device__ State state(const Local &, int64_t, const Sums &sums) const
    {
        return {(double)sums.g, (double)sums.g_normal};
    }
};

// Sums of a gradient that came through a relu (inputs: x, g, the relu's result). The masked g is the residual's
// gradient, and is written if the caller wants the residual's gradient.
template <class C>
struct MaskedGradients : PlaneGradients<C> {
    static constexpr int kInputs = 3;
    bool of_residual;

    __device__ bool writes() const { return of_residual; }
    __device__ C add(typename PlaneGradients<C>::Sums &sums,
                     const typename PlaneGradients<C>::Local &of, const C (&x)[3]) const
    {
        return PlaneGradients<C>::add(sums, of, {x[0], kernels::ReluBackward()(x[1], x[2])});
    }
};

// ---- batch_norm, batch_norm_add_relu ------------------------------------------------------------------------------

// Sums over planes of the operands, then the numbers of the channels.
template <class T, class Op, int N, class C = compute_type<T>>
static yoke_status sum_gradients(const yoke_launch *launch, const BatchGradientCall &o,
                                 const yoke_operand *const (&operands)[N], const Op &op,
                                 Room<PlaneGradientSums, C> &room)
{
    const Planes<N> planes = planes_of<N>(operands, false);
    if (const yoke_status status = room.reserve(planes.partials(), o.channels(), 6)) return status;
    return sum_planes<Op, T>(launch, planes, op, room.partial, room.sums,
                             o.numbers<C>(room.sums, room.numbers));
}

template <class T>
static yoke_status batch_norm_gradient(const yoke_launch *launch, const BatchGradientCall &o)
{
    using C = compute_type<T>;
    Room<PlaneGradientSums, C> room(launch);
    const PlaneGradients<C> of{o.statistics<C>()};
    const yoke_operand *masked = o.of_residual ? o.dresidual : o.grad;
    const yoke_status status = o.out ? sum_gradients<T>(launch, o, {o.x, o.grad, o.out, masked},
                                                        MaskedGradients<C>{of, o.of_residual}, room)
                                     : sum_gradients<T>(launch, o, {o.x, o.grad}, of, room);
    if (status || !o.of_x) return status;
    if (o.out && !o.of_residual)
        return start_map<T, ReluGradientMap, 4>(launch, {o.dx, o.grad, o.x, o.out}, false,
                                                room.numbers, {});
    return start_map<T, GradientMap, 3>(launch, {o.dx, masked, o.x}, false, room.numbers, {});
}

static yoke_status batch_norm_gradient(const yoke_launch *launch, bool is_fused)
{
    const BatchGradientCall call(launch, is_fused);
    return for_float(launch, "x", call.x->dtype,
                     [&]<class T>() { return batch_norm_gradient<T>(launch, call); });
}

YOKE_KERNEL(_batch_norm_backward)
{
    return batch_norm_gradient(launch, false);
}

YOKE_KERNEL(_batch_norm_add_relu_backward)
{
    return batch_norm_gradient(launch, true);
}

// ---- group_norm ---------------------------------------------------------------------------------------------------

template <class T>
static yoke_status group_norm_gradient(const yoke_launch *launch)
{
    using C = compute_type<T>;
    const yoke_operand *o = launch->operands;
    const yoke_operand &g = o[0], &x = o[1], &dx = o[5];
    const int64_t groups = launch->params[0].v.i, channels = x.shape[1],
                  count = x.shape[0] * channels;
    const Planes<2> planes = planes_of<2>({&x, &g}, true);
    Room<PlaneGradientSums, C> room(launch);
    if (const yoke_status status = room.reserve(planes.partials(), count, 6)) return status;
    const PlaneGradients<C> of{kernels::group_statistics<C>(launch)};
    if (const yoke_status status =
            sum_planes<PlaneGradients<C>, T>(launch, planes, of, room.partial, room.sums))
        return status;
    const auto sums = kernels::channel_gradients<T>(launch, room.sums);
    const yoke_status status = start_each(launch, channels, sums);
    if (status || launch->params[1].v.i == 0) return status;
    const auto numbers =
        kernels::group_gradient_numbers<C>(launch, room.sums, room.numbers, planes.length);
    if (const yoke_status failed = start_each(launch, x.shape[0] * groups, numbers)) return failed;
    return start_map<T, GradientMap, 3>(launch, {&dx, &g, &x}, true, room.numbers, {});
}

YOKE_KERNEL(_group_norm_backward)
{
    return for_float(launch, "x", launch->operands[1].dtype,
                     [&]<class T>() { return group_norm_gradient<T>(launch); });
}

YOKE_CUDA_END
