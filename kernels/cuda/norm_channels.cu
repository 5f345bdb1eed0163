// batch_norm and group_norm, and their gradients: the sums of each plane, numbers made of them by channel or group, then
// one map over x.
#include "kernels/common/norm.h"

#include "kernels/cuda/planes.cuh"

YOKE_CUDA_BEGIN

using kernels::GradientSums;
using kernels::inverse_root;
using kernels::Moments;
using kernels::normalized;

// ---- sums of planes -----------------------------------------------------------------------------------------------

// Mean and squared deviations: of the few values at hand in two passes, then combined in double, since a mean far from 0
// would be rounded each time.
template <class C>
struct PlaneMoments {
    using State = Moments<double>;

    __device__ static State init() { return State::init(); }
    __device__ static State combine(const State &a, const State &b) { return State::combine(a, b); }
    template <int V>
    __device__ State push(const State &state, int64_t, const C (&x)[1][V], int count) const
    {
        C sum = (C)0, rest = (C)0, squares = (C)0;
        YOKE_UNROLL
        for (int k = 0; k < V; k++) sum += x[0][k];  // zeros behind the end
        const C mean = sum / (C)count;
        YOKE_UNROLL
        for (int k = 0; k < V; k++) {
            const C deviation = k < count ? x[0][k] - mean : (C)0;
            rest += deviation;
            squares += deviation * deviation;
        }
        const double shift = (double)rest / count;
        return State::combine(
            state, {(double)count, (double)mean + shift, (double)squares - (double)rest * shift});
    }
};

// Of g, and of g times the normalised x (inputs: x, g). `size` planes share a mean and a statistic, from which `rstd`
// follows: itself, or a variance with eps.
template <class C>
struct PlaneGradients {
    using State = GradientSums<C>;
    const C *means, *statistics;
    int64_t size;
    C eps;
    bool is_variance;

    __device__ static State init() { return State::init(); }
    __device__ static State combine(const State &a, const State &b) { return State::combine(a, b); }
    __device__ C mean(int64_t plane) const { return means[plane / size]; }
    __device__ C rstd(int64_t plane) const
    {
        const C statistic = statistics[plane / size];
        return is_variance ? inverse_root(statistic, eps) : statistic;
    }
    template <int V>
    __device__ State push(State state, int64_t plane, const C (&x)[2][V], int) const
    {
        const C m = mean(plane), r = rstd(plane);
        State part = init();
        YOKE_UNROLL
        for (int k = 0; k < V; k++) {
            part.g += x[1][k];  // zeros behind the end
            part.g_normal += x[1][k] * normalized(x[0][k], m, r);
        }
        return combine(state, part);
    }
};

// ---- maps ---------------------------------------------------------------------------------------------------------

// (x - mean) scale + shift.
struct AffineMap {
    template <class C>
    __device__ C operator()(const C (&x)[1], const C *mean, int64_t planes) const
    {
        return (x[0] - mean[0]) * mean[planes] + mean[2 * planes];
    }
};

// g scale + (x - mean) slope + shift.
struct GradientMap {
    template <class C>
    __device__ C operator()(const C (&x)[2], const C *mean, int64_t planes) const
    {
        return x[0] * mean[planes] + (x[1] - mean[0]) * mean[2 * planes] + mean[3 * planes];
    }
};

// ---- parameters ---------------------------------------------------------------------------------------------------

// A parameter by channel, of x's dtype or float32; absent, it has one value throughout.
template <class C>
struct ByChannel {
    const void *data;
    int64_t step;  // elements
    yoke_dtype dtype;
    C otherwise;

    ByChannel(const yoke_operand &p, C value)
        : data(is_present(p) ? p.data : nullptr),
          step(is_present(p) && p.numel > 1 ? p.strides[0] : 0),
          dtype(p.dtype),
          otherwise(value)
    {
    }
    __device__ C operator[](int64_t channel) const
    {
        if (!data) return otherwise;
        const int64_t at = channel * step;
        switch (dtype) {
            case YOKE_F64:
                return (C) static_cast<const double *>(data)[at];
            case YOKE_F16:
                return (C)load<f16>(static_cast<const f16 *>(data)[at]);
            case YOKE_BF16:
                return (C)load<bf16>(static_cast<const bf16 *>(data)[at]);
            default:
                return (C) static_cast<const float *>(data)[at];
        }
    }
};

// The memory of one call: partial sums, then the planes' sums, then numbers.
template <class State, class C>
struct Room {
    Scratch scratch;
    State *partial = nullptr, *sums = nullptr;
    C *numbers = nullptr;

    explicit Room(const yoke_launch *launch) : scratch(launch) {}
    yoke_status reserve(int64_t partials, int64_t planes, int64_t numbers_a_plane)
    {
        const uint64_t states = (uint64_t)(partials + planes) * sizeof(State);
        const uint64_t bytes = states + (uint64_t)(planes * numbers_a_plane) * sizeof(C);
        if (const yoke_status status = scratch.reserve(bytes)) return status;
        partial = scratch.as<State>();
        sums = partial + partials;
        numbers = reinterpret_cast<C *>(sums + planes);
        return YOKE_OK;
    }
};

// f(i) for i below n, a thread each.
template <class F>
__global__ void for_each(int64_t n, F f)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
         i += (int64_t)gridDim.x * blockDim.x)
        f(i);
}

template <class F>
static yoke_status start_each(const yoke_launch *launch, int64_t n, const F &f)
{
    const int threads = block_size(kThreads);
    if (n == 0) return YOKE_OK;
    return start(launch, for_each<F>, {blocks_for(launch, n, threads), threads}, n, f);
}

// ---- batch_norm ---------------------------------------------------------------------------------------------------

template <class C>
struct BatchNumbers {
    const Moments<double> *sums;  // null where the statistics are given
    ByChannel<C> given_mean, given_variance, weight, bias;
    C *means, *variances, *numbers;
    int64_t channels;
    C eps;

    __device__ void operator()(int64_t c) const
    {
        const C mean = sums ? (C)sums[c].mean : given_mean[c];
        const C variance = sums ? (C)sums[c].variance() : given_variance[c];
        means[c] = numbers[c] = mean;
        variances[c] = variance;
        numbers[channels + c] = weight[c] * inverse_root(variance, eps);
        numbers[2 * channels + c] = bias[c];
    }
};

template <class T>
static yoke_status normalize_batch(const yoke_launch *launch)
{
    using C = compute_type<T>;
    const yoke_operand *o = launch->operands;
    const yoke_operand &x = o[0], &out = o[5];
    const int64_t channels = x.shape[1];
    const Planes<1> planes = planes_of<1>({&x}, false);
    Room<Moments<double>, C> room(launch);
    const bool of_batch = !is_present(o[1]);
    if (const yoke_status status = room.reserve(of_batch ? planes.partials() : 0, channels, 3))
        return status;
    if (of_batch)
        if (const yoke_status status =
                sum_planes<PlaneMoments<C>, T>(launch, planes, {}, room.partial, room.sums))
            return status;
    const BatchNumbers<C> numbers{of_batch ? room.sums : nullptr,
                                  {o[1], (C)0},
                                  {o[2], (C)0},
                                  {o[3], (C)1},
                                  {o[4], (C)0},
                                  data_of<C>(o[6]),
                                  data_of<C>(o[7]),
                                  room.numbers,
                                  channels,
                                  (C)float_param(launch->params[0])};
    if (const yoke_status status = start_each(launch, channels, numbers)) return status;
    const PerPlane by_plane(x, false, room.numbers, o[6].dtype);
    return start_map<T, AffineMap, 3>(launch, {&out, &x, &by_plane.operand}, channels, {});
}

YOKE_KERNEL(_batch_norm)
{
    return for_float(launch, "x", launch->operands[0].dtype,
                     [&]<class T>() { return normalize_batch<T>(launch); });
}

template <class C>
struct BatchGradientNumbers {
    const GradientSums<C> *sums;
    PlaneGradients<C> of;
    ByChannel<C> weight;
    C *dweight, *dbias, *numbers;
    int64_t channels;
    C count;  // values of a channel
    bool of_batch;

    __device__ void operator()(int64_t c) const
    {
        const GradientSums<C> s = sums[c];
        const C rstd = of.rstd(c), scale = weight[c] * rstd;
        dweight[c] = s.g_normal;
        dbias[c] = s.g;
        numbers[c] = of.mean(c);
        numbers[channels + c] = scale;
        numbers[2 * channels + c] = of_batch ? -scale * rstd * (s.g_normal / count) : (C)0;
        numbers[3 * channels + c] = of_batch ? -scale * (s.g / count) : (C)0;
    }
};

template <class T>
static yoke_status batch_norm_gradient(const yoke_launch *launch)
{
    using C = compute_type<T>;
    const yoke_operand *o = launch->operands;
    const yoke_operand &g = o[0], &x = o[1], &dx = o[5];
    const int64_t channels = x.shape[1];
    const Planes<2> planes = planes_of<2>({&x, &g}, false);
    Room<GradientSums<C>, C> room(launch);
    if (const yoke_status status = room.reserve(planes.partials(), channels, 4)) return status;
    const PlaneGradients<C> of{data_of<const C>(o[3]), data_of<const C>(o[4]), 1,
                               (C)float_param(launch->params[0]), true};
    if (const yoke_status status =
            sum_planes<PlaneGradients<C>, T>(launch, planes, of, room.partial, room.sums))
        return status;
    const BatchGradientNumbers<C> numbers{room.sums,
                                          of,
                                          {o[2], (C)1},
                                          data_of<C>(o[6]),
                                          data_of<C>(o[7]),
                                          room.numbers,
                                          channels,
                                          (C)(channels ? x.numel / channels : 0),
                                          launch->params[1].v.i != 0};
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

template <class C>
struct GroupNumbers {
    const Moments<double> *sums;
    ByChannel<C> weight, bias;
    C *means, *rstds, *numbers;
    int64_t size, channels, planes;
    C eps;

    __device__ void operator()(int64_t group) const
    {
        Moments<double> total = Moments<double>::init();
        for (int64_t i = 0; i < size; i++)
            total = Moments<double>::combine(total, sums[group * size + i]);
        const C rstd = inverse_root((C)total.variance(), eps);
        means[group] = (C)total.mean;
        rstds[group] = rstd;
        for (int64_t plane = group * size; plane < (group + 1) * size; plane++) {
            numbers[plane] = (C)total.mean;
            numbers[planes + plane] = weight[plane % channels] * rstd;
            numbers[2 * planes + plane] = bias[plane % channels];
        }
    }
};

template <class T>
static yoke_status normalize_groups(const yoke_launch *launch)
{
    using C = compute_type<T>;
    const yoke_operand *o = launch->operands;
    const yoke_operand &x = o[0], &out = o[3];
    const int64_t groups = launch->params[0].v.i, channels = x.shape[1],
                  count = x.shape[0] * channels;
    const Planes<1> planes = planes_of<1>({&x}, true);
    Room<Moments<double>, C> room(launch);
    if (const yoke_status status = room.reserve(planes.partials(), count, 3)) return status;
    if (const yoke_status status =
            sum_planes<PlaneMoments<C>, T>(launch, planes, {}, room.partial, room.sums))
        return status;
    const GroupNumbers<C> numbers{room.sums,
                                  {o[1], (C)1},
                                  {o[2], (C)0},
                                  data_of<C>(o[4]),
                                  data_of<C>(o[5]),
                                  room.numbers,
                                  channels / groups,
                                  channels,
                                  count,
                                  (C)float_param(launch->params[1])};
    if (const yoke_status status = start_each(launch, x.shape[0] * groups, numbers)) return status;
    const PerPlane by_plane(x, true, room.numbers, o[4].dtype);
    return start_map<T, AffineMap, 3>(launch, {&out, &x, &by_plane.operand}, count, {});
}

YOKE_KERNEL(group_norm)
{
    return for_float(launch, "x", launch->operands[0].dtype,
                     [&]<class T>() { return normalize_groups<T>(launch); });
}

template <class C>
struct GroupGradientNumbers {
    const GradientSums<C> *sums;
    PlaneGradients<C> of;
    ByChannel<C> weight;
    C *numbers;
    int64_t channels, planes;
    C values;  // of a group

    __device__ void operator()(int64_t group) const
    {
        const int64_t first = group * of.size, last = first + of.size;
        GradientSums<C> total = GradientSums<C>::init();
        for (int64_t plane = first; plane < last; plane++) {
            const C w = weight[plane % channels];
            total = GradientSums<C>::combine(total, {w * sums[plane].g, w * sums[plane].g_normal});
        }
        const C rstd = of.rstd(first);
        for (int64_t plane = first; plane < last; plane++) {
            numbers[plane] = of.mean(plane);
            numbers[planes + plane] = weight[plane % channels] * rstd;
            numbers[2 * planes + plane] = -rstd * rstd * (total.g_normal / values);
            numbers[3 * planes + plane] = -rstd * (total.g / values);
        }
    }
};

// The gradients of weight and bias: each channel's planes, sample after sample.
template <class T>
struct ChannelGradients {
    const GradientSums<compute_type<T>> *sums;
    int64_t samples, channels;
    T *dweight, *dbias;

    __device__ void operator()(int64_t c) const
    {
        GradientSums<compute_type<T>> total{0, 0};
        for (int64_t n = 0; n < samples; n++)
            total = GradientSums<compute_type<T>>::combine(total, sums[n * channels + c]);
        dweight[c] = store<T>(total.g_normal);
        dbias[c] = store<T>(total.g);
    }
};

template <class T>
static yoke_status group_norm_gradient(const yoke_launch *launch)
{
    using C = compute_type<T>;
    const yoke_operand *o = launch->operands;
    const yoke_operand &g = o[0], &x = o[1], &dx = o[5];
    const int64_t groups = launch->params[0].v.i, channels = x.shape[1], size = channels / groups,
                  count = x.shape[0] * channels;
    const Planes<2> planes = planes_of<2>({&x, &g}, true);
    Room<GradientSums<C>, C> room(launch);
    if (const yoke_status status = room.reserve(planes.partials(), count, 4)) return status;
    const PlaneGradients<C> of{data_of<const C>(o[3]), data_of<const C>(o[4]), size, (C)0, false};
    if (const yoke_status status =
            sum_planes<PlaneGradients<C>, T>(launch, planes, of, room.partial, room.sums))
        return status;
    const ChannelGradients<T> sums{room.sums, x.shape[0], channels, data_of<T>(o[6]),
                                   data_of<T>(o[7])};
    const yoke_status status = start_each(launch, channels, sums);
    if (status || launch->params[1].v.i == 0) return status;
    const GroupGradientNumbers<C> numbers{
        room.sums, of, {o[2], (C)1}, room.numbers, channels, count, (C)(size * planes.length)};
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
