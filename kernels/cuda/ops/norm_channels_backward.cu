// Gradients of batch_norm (also with residual and relu) and group_norm: the sums of each plane of g and x, then
// numbers by channel or group, then a map over g and x.
#include "kernels/common/norm.h"

#include "kernels/cuda/ops/norm_channels.cuh"

YOKE_CUDA_BEGIN

using kernels::BatchGradientCall;
using kernels::GradientMap;
using kernels::GradientSums;
using kernels::PlaneGradientSums;

// Sums of g, and of g times the normalised x (inputs: x, g).
template <class C>
struct PlaneGradients : kernels::PlaneStatistics<C> {
    using State = PlaneGradientSums;

    __device__ static State init() { return State::init(); }
    __device__ static State combine(const State &a, const State &b) { return State::combine(a, b); }
    template <int V>
    __device__ State push(State state, int64_t plane, const C (&x)[2][V], int count) const
    {
        const kernels::Normal<C> normal = this->normal(plane);
        GradientSums<C> part = GradientSums<C>::init();
        YOKE_UNROLL
        for (int k = 0; k < V; k++) {
            part.g += x[1][k];  // zeros behind the end, of which the normal may be infinite
            part.g_normal += k < count ? x[1][k] * normal(x[0][k]) : (C)0;
        }
        return combine(state, {(double)part.g, (double)part.g_normal});
    }
};

// Map of g through a relu with result x[1].
struct MaskMap {
    template <class C>
    __device__ C operator()(const C (&x)[2], const C *, int64_t) const
    {
        return kernels::ReluBackward()(x[0], x[1]);
    }
};

// ---- batch_norm, batch_norm_add_relu ------------------------------------------------------------------------------

// Masks g, which came through a relu. The masked g goes into the residual's gradient, which equals it, or into memory
// of the call. If the sums and maps masked g themselves, they would save an eighth of the bytes, but need a third
// more code.
template <class T>
static yoke_status mask_gradient(const yoke_launch *launch, const BatchGradientCall &o,
                                 Scratch &scratch, yoke_operand &masked)
{
    masked = o.of_residual ? *o.dresidual : *o.out;
    if (!o.of_residual) {
        if (const yoke_status status = scratch.reserve((uint64_t)masked.numel * sizeof(T)))
            return status;
        masked.data = scratch.data();
    }
    const PerPlane unread(*o.out, false, masked.data, masked.dtype);
    return start_map<T, MaskMap, 4>(launch, {&masked, o.grad, o.out, &unread.operand}, 0, {});
}

template <class T>
static yoke_status batch_norm_gradient(const yoke_launch *launch, const BatchGradientCall &o)
{
    using C = compute_type<T>;
    const yoke_operand &x = *o.x;
    Scratch scratch(launch);
    yoke_operand g = *o.grad;
    if (o.out)
        if (const yoke_status status = mask_gradient<T>(launch, o, scratch, g)) return status;
    const Planes<2> planes = planes_of<2>({&x, &g}, false);
    Room<PlaneGradientSums, C> room(launch);
    if (const yoke_status status = room.reserve(planes.partials(), o.channels(), 6)) return status;
    const PlaneGradients<C> of{o.statistics<C>()};
    if (const yoke_status status =
            sum_planes<PlaneGradients<C>, T>(launch, planes, of, room.partial, room.sums))
        return status;
    const yoke_status status =
        start_each(launch, o.channels(), o.numbers<C>(room.sums, room.numbers));
    if (status || !o.of_x) return status;
    const PerPlane by_plane(x, false, room.numbers, kernels::dtype_of<C>);
    return start_map<T, GradientMap, 4>(launch, {o.dx, &g, &x, &by_plane.operand}, o.channels(),
                                        {});
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
    const PerPlane by_plane(x, true, room.numbers, o[3].dtype);
    return start_map<T, GradientMap, 4>(launch, {&dx, &g, &x, &by_plane.operand}, count, {});
}

YOKE_KERNEL(_group_norm_backward)
{
    return for_float(launch, "x", launch->operands[1].dtype,
                     [&]<class T>() { return group_norm_gradient<T>(launch); });
}

YOKE_CUDA_END
