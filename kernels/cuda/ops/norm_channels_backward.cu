// The gradients of batch_norm and group_norm: the sums of each plane of g and x, numbers made of them by channel or
// group, then one map over g and x.
#include "kernels/common/norm.h"

#include "kernels/cuda/ops/norm_channels.cuh"

YOKE_CUDA_BEGIN

using kernels::GradientSums;

// Of g, and of g times the normalised x (inputs: x, g).
template <class C>
struct PlaneGradients : kernels::PlaneStatistics<C> {
    using State = GradientSums<C>;

    __device__ static State init() { return State::init(); }
    __device__ static State combine(const State &a, const State &b) { return State::combine(a, b); }
    template <int V>
    __device__ State push(State state, int64_t plane, const C (&x)[2][V], int count) const
    {
        const C m = this->mean(plane), r = this->rstd(plane);
        State part = init();
        YOKE_UNROLL
        for (int k = 0; k < V; k++) {
            part.g += x[1][k];  // zeros behind the end, where (0 - m) r may be infinite
            part.g_normal += k < count ? x[1][k] * ((x[0][k] - m) * r) : (C)0;
        }
        return combine(state, part);
    }
};

// g scale + (x - mean) rstd slope + shift. The product of rstd and slope may be less than C has.
struct GradientMap {
    template <class C>
    __device__ C operator()(const C (&x)[2], const C *mean, int64_t planes) const
    {
        return x[0] * mean[planes] + (x[1] - mean[0]) * mean[4 * planes] * mean[2 * planes] +
               mean[3 * planes];
    }
};

// ---- batch_norm ---------------------------------------------------------------------------------------------------

template <class T>
static yoke_status batch_norm_gradient(const yoke_launch *launch)
{
    using C = compute_type<T>;
    const yoke_operand *o = launch->operands;
    const yoke_operand &g = o[0], &x = o[1], &dx = o[5];
    const int64_t channels = x.shape[1];
    const Planes<2> planes = planes_of<2>({&x, &g}, false);
    Room<GradientSums<C>, C> room(launch);
    if (const yoke_status status = room.reserve(planes.partials(), channels, 5)) return status;
    const PlaneGradients<C> of{kernels::batch_statistics<C>(launch)};
    if (const yoke_status status =
            sum_planes<PlaneGradients<C>, T>(launch, planes, of, room.partial, room.sums))
        return status;
    const auto numbers = kernels::batch_gradient_numbers<C>(launch, room.sums, room.numbers);
    const yoke_status status = start_each(launch, channels, numbers);
    if (status || launch->params[2].v.i == 0) return status;
    const PerPlane by_plane(x, false, room.numbers, o[3].dtype);
    return start_map<T, GradientMap, 4>(launch, {&dx, &g, &x, &by_plane.operand}, channels, {});
}

YOKE_KERNEL(_batch_norm_backward)
{
    return for_float(launch, "x", launch->operands[1].dtype,
                     [&]<class T>() { return batch_norm_gradient<T>(launch); });
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
    Room<GradientSums<C>, C> room(launch);
    if (const yoke_status status = room.reserve(planes.partials(), count, 5)) return status;
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
