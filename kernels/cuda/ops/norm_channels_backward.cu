// The gradients of batch_norm, with or without what follows it, and group_norm: the sums of each plane of g and x,
// numbers made of them by channel or group, then one map over g and x.
#include "kernels/common/norm.h"

#include "kernels/cuda/ops/norm_channels.cuh"

YOKE_CUDA_BEGIN

using kernels::BatchGradientCall;
using kernels::GradientMap;
using kernels::GradientSums;
using kernels::ReluGradientMap;

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

// The same of a g that came through a relu (inputs: x, g, its result; written: that g).
template <class C>
struct MaskedPlaneGradients : PlaneGradients<C> {
    static constexpr int kWritten = 1;
    bool keeps;

    template <int V>
    __device__ GradientSums<C> push(const GradientSums<C> &state, int64_t plane, C (&x)[4][V],
                                    int count) const
    {
        C in[2][V];
        YOKE_UNROLL
        for (int k = 0; k < V; k++) {
            in[0][k] = x[0][k];
            in[1][k] = x[3][k] = kernels::ReluBackward()(x[1][k], x[2][k]);
        }
        return PlaneGradients<C>::push(state, plane, in, count);
    }
};

// ---- batch_norm, batch_norm_add_relu ------------------------------------------------------------------------------

// The sums of planes, and what the map of the gradient takes of them.
template <class Op, class T, int N, class C = compute_type<T>>
static yoke_status find_gradient_numbers(const yoke_launch *launch, const BatchGradientCall &o,
                                         const Planes<N> &planes, const Op &of,
                                         Room<GradientSums<C>, C> &room)
{
    if (const yoke_status status = room.reserve(planes.partials(), o.channels(), 5)) return status;
    if (const yoke_status status = sum_planes<Op, T>(launch, planes, of, room.partial, room.sums))
        return status;
    return start_each(launch, o.channels(), o.numbers<C>(room.sums, room.numbers));
}

template <class T>
static yoke_status batch_norm_gradient(const yoke_launch *launch, const BatchGradientCall &o)
{
    using C = compute_type<T>;
    Room<GradientSums<C>, C> room(launch);
    const yoke_operand &x = *o.x, *g = o.grad;
    const PlaneGradients<C> plain{o.statistics<C>()};
    const yoke_status status =
        o.out ? find_gradient_numbers<MaskedPlaneGradients<C>, T>(
                    launch, o, planes_of<4>({&x, g, o.out, o.of_residual ? o.dresidual : g}, false),
                    {plain, o.of_residual}, room)
              : find_gradient_numbers<PlaneGradients<C>, T>(launch, o, planes_of<2>({&x, g}, false),
                                                            plain, room);
    if (status || !o.of_x) return status;
    const PerPlane by_plane(x, false, room.numbers, kernels::dtype_of<C>);
    // A residual's gradient is the g that has come through.
    if (o.out && !o.of_residual)
        return start_map<T, ReluGradientMap, 5>(launch, {o.dx, g, &x, o.out, &by_plane.operand},
                                                o.channels(), {});
    return start_map<T, GradientMap, 4>(
        launch, {o.dx, o.out ? o.dresidual : g, &x, &by_plane.operand}, o.channels(), {});
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
