// batch_norm (also with residual and relu) and group_norm: the sums of each plane, then numbers by channel or group,
// then a map over x. x is read twice.
#include "kernels/common/norm.h"

#include "kernels/cuda/ops/norm_channels.cuh"

YOKE_CUDA_BEGIN

using kernels::AffineMap;
using kernels::AffineReluMap;
using kernels::BatchCall;
using kernels::Moments;
using kernels::PlaneState;

// Mean and squared deviations: sums of deviations from the item's first value, and of their squares. States are joined
// in double, because a mean far from 0 would be rounded each time.
template <class C>
struct PlaneMoments {
    static constexpr int kInputs = 1;
    using State = PlaneState<C>;
    using Local = C;
    using Bits = std::conditional_t<sizeof(C) == 4, uint32_t, uint64_t>;
    struct Sums {
        C deviations, squares;
        Bits any;  // bits of the deviations
    };

    __device__ static State init() { return State::init(); }
    __device__ static State combine(const State &a, const State &b) { return State::combine(a, b); }
    __device__ static Sums join(const Sums &a, const Sums &b)
    {
        return {a.deviations + b.deviations, a.squares + b.squares, a.any | b.any};
    }
    __device__ Local local(int64_t, const C (&first)[1]) const { return first[0]; }
    __device__ C add(Sums &sums, Local centre, const C (&x)[1]) const
    {
        const C deviation = x[0] - centre;
        sums.deviations += deviation;
        sums.squares += deviation * deviation;
        sums.any |= kernels::bit_cast<Bits>(deviation);
        return x[0];
    }
    __device__ State state(Local centre, int64_t n, const Sums &sums) const
    {
        if (!sums.any) return {Moments<C>::of_constant(n, centre)};
        return {Moments<C>::plain_state(n, centre, sums.deviations, sums.squares)};
    }
    // The first value is an outlier where less than a sixteenth of the squares is about the mean. Of numbers drawn
    // from a normal distribution, one in ten thousand is.
    __device__ bool is_doubtful(int64_t n, const Sums &sums) const
    {
        return sums.any && Moments<C>().is_doubtful(n, sums.deviations, sums.squares, 1.0 / 16);
    }
    template <class At>
    __device__ State careful(int64_t n, const At &at) const
    {
        return {Moments<C>().careful(n, at)};
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
    const auto numbers = o.numbers<C>(room.sums, room.numbers);
    const yoke_status status =
        o.is_of_batch()
            ? sum_planes<PlaneMoments<C>, T>(launch, planes, {}, room.partial, room.sums, numbers)
            : start_each(launch, channels, numbers);
    if (status) return status;
    if (!o.residual)
        return start_map<T, AffineMap, 2>(launch, {o.out, &x}, false, room.numbers, {});
    if (!is_present(*o.residual))
        return start_map<T, AffineReluMap<false>, 2>(launch, {o.out, &x}, false, room.numbers, {});
    return start_map<T, AffineReluMap<true>, 3>(launch, {o.out, &x, o.residual}, false,
                                                room.numbers, {});
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
    return start_map<T, AffineMap, 2>(launch, {&out, &x}, true, room.numbers, {});
}

YOKE_KERNEL(group_norm)
{
    return for_float(launch, "x", launch->operands[0].dtype,
                     [&]<class T>() { return normalize_groups<T>(launch); });
}

YOKE_CUDA_END
