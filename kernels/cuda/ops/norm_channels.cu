// batch_norm (also with residual and relu) and group_norm: the sums of each plane, then numbers by channel or group,
// then a map over x.
#include "kernels/common/norm.h"

#include "kernels/cuda/ops/norm_channels.cuh"

YOKE_CUDA_BEGIN

using kernels::AffineMap;
using kernels::AffineReluMap;
using kernels::BatchCall;
using kernels::Moments;
using kernels::PlaneState;

// Mean and squared deviations. The few values at hand take two passes. Results are combined in double, because a mean
// far from 0 would be rounded each time.
template <class C>
struct PlaneMoments {
    using State = PlaneState<C>;

    __device__ static State init() { return State::init(); }
    __device__ static State combine(const State &a, const State &b) { return State::combine(a, b); }
    template <int V>
    __device__ State push(const State &state, int64_t, const C (&x)[1][V], int count) const
    {
        constexpr C kPart = (C)1 / V;  // with it, the sum of V values does not overflow
        C sum = (C)0, rest = (C)0, squares = (C)0;
        YOKE_UNROLL
        for (int k = 0; k < V; k++) sum += x[0][k] * kPart;  // zeros behind the end
        const C mean = sum / ((C)count * kPart);
        YOKE_UNROLL
        for (int k = 0; k < V; k++) {
            const C deviation = k < count ? x[0][k] - mean : (C)0;
            rest += deviation;
            squares += deviation * deviation;
        }
        const Moments<C> op;
        if (op.is_doubtful(count, rest, squares))
            return State::combine(state, {op.careful(
                                             V, [&](int64_t k) { return x[0][k]; }, count)});
        return State::combine(state, {op.plain_state(count, mean, rest, squares)});
    }
};

// ---- batch_norm, batch_norm_add_relu ------------------------------------------------------------------------------

template <class T>
static yoke_status normalize_batch(const yoke_launch *launch, const BatchCall &o)
{
    using C = compute_type<T>;
    const yoke_operand &x = *o.x;
    const int64_t channels = o.channels();
    const Planes<1> planes = planes_of<1>({&x}, false);
    Room<PlaneState<C>, C> room(launch);
    if (const yoke_status status =
            room.reserve(o.is_of_batch() ? planes.partials() : 0, channels, 4))
        return status;
    if (o.is_of_batch())
        if (const yoke_status status =
                sum_planes<PlaneMoments<C>, T>(launch, planes, {}, room.partial, room.sums))
            return status;
    const auto numbers = o.numbers<C>(room.sums, room.numbers);
    if (const yoke_status status = start_each(launch, channels, numbers)) return status;
    const PerPlane by_plane(x, false, room.numbers, kernels::dtype_of<C>);
    if (!o.residual)
        return start_map<T, AffineMap, 3>(launch, {o.out, &x, &by_plane.operand}, channels, {});
    if (!is_present(*o.residual))
        return start_map<T, AffineReluMap<false>, 3>(launch, {o.out, &x, &by_plane.operand},
                                                     channels, {});
    return start_map<T, AffineReluMap<true>, 4>(launch, {o.out, &x, o.residual, &by_plane.operand},
                                                channels, {});
}

static yoke_status normalize_batch(const yoke_launch *launch, bool is_fused)
{
    const BatchCall call(launch, is_fused);
    return for_float(launch, "x", call.x->dtype,
                     [&]<class T>() { return normalize_batch<T>(launch, call); });
}

YOKE_KERNEL(_batch_norm)
{
    return normalize_batch(launch, false);
}

YOKE_KERNEL(_batch_norm_add_relu)
{
    return normalize_batch(launch, true);
}

// ---- group_norm ---------------------------------------------------------------------------------------------------

template <class T>
static yoke_status normalize_groups(const yoke_launch *launch)
{
    using C = compute_type<T>;
    const yoke_operand *o = launch->operands;
    const yoke_operand &x = o[0], &out = o[3];
    const int64_t groups = launch->params[0].v.i, channels = x.shape[1],
                  count = x.shape[0] * channels;
    const Planes<1> planes = planes_of<1>({&x}, true);
    Room<PlaneState<C>, C> room(launch);
    if (const yoke_status status = room.reserve(planes.partials(), count, 4)) return status;
    if (const yoke_status status =
            sum_planes<PlaneMoments<C>, T>(launch, planes, {}, room.partial, room.sums))
        return status;
    const auto numbers = kernels::group_numbers<C>(launch, room.sums, room.numbers);
    if (const yoke_status status = start_each(launch, x.shape[0] * groups, numbers)) return status;
    const PerPlane by_plane(x, true, room.numbers, o[4].dtype);
    return start_map<T, AffineMap, 3>(launch, {&out, &x, &by_plane.operand}, count, {});
}

YOKE_KERNEL(group_norm)
{
    return for_float(launch, "x", launch->operands[0].dtype,
                     [&]<class T>() { return normalize_groups<T>(launch); });
}

YOKE_CUDA_END
