// Numbers of a channel or group for batch_norm, group_norm and their gradients: computed from the sums of planes,
// used by the map over x.
//
// Contract
//  * `numbers` holds the arrays that the map reads, each with one number a plane: mean, factor, shift, scale. For a
//    gradient: mean, factor, slope, shift, rstd, scale. Mean, scale and rstd belong to a Normal (norm.h).
//  * A functor computes channel c, or group `group`. The order of calls does not change a result, and calls may run
//    in parallel.
//  * A map takes kInputs values of one element, and the plane's kNumbers numbers, `planes` apart.
#pragma once

#include "kernels/common/activation.h"
#include "kernels/common/operand.h"
#include "kernels/common/plane_state.h"

YOKE_KERNELS_BEGIN

// Parameter by channel, in x's dtype or float32. If the parameter is absent, every channel has the value `otherwise`.
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
    YOKE_HD C operator[](int64_t channel) const
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
template <class Scratch, class State, class C>
struct PlaneRoom {
    Scratch scratch;
    State *partial = nullptr, *sums = nullptr;
    C *numbers = nullptr;

    explicit PlaneRoom(const yoke_launch *launch) : scratch(launch) {}
    yoke_status reserve(int64_t partials, int64_t planes, int64_t numbers_a_plane)
    {
        const uint64_t states = (uint64_t)(partials + planes) * sizeof(State);
        const uint64_t bytes = states + (uint64_t)(planes * numbers_a_plane) * sizeof(C);
        if (const yoke_status status = scratch.reserve(bytes)) return status;
        partial = static_cast<State *>(scratch.data());
        sums = partial + partials;
        numbers = reinterpret_cast<C *>(sums + planes);
        return YOKE_OK;
    }
};

// ---- forward ----------------------------------------------------------------------------------------------------

template <class C>
struct BatchNumbers {
    const PlaneState<C> *sums;  // null where the statistics are given
    ByChannel<C> given_mean, given_variance, weight, bias;
    C *means, *variances, *rstds, *numbers;
    int64_t channels;
    C eps;

    YOKE_HD void operator()(int64_t c) const
    {
        means[c] = sums ? sums[c].mean() : given_mean[c];
        variances[c] = sums ? sums[c].variance() : given_variance[c];
        rstds[c] = sums ? sums[c].rstd(eps) : inverse_root(variances[c], eps);
        const Normal<C> normal(means[c], rstds[c]);
        numbers[c] = normal.mean;
        numbers[channels + c] = weight[c] * normal.rstd;
        numbers[2 * channels + c] = bias[c];
        numbers[3 * channels + c] = normal.scale;
    }
};

// Functor of group_norm. For a group of `size` planes, computes the statistics from the planes' sums, and each
// plane's numbers.
template <class C>
struct GroupNumbers {
    const PlaneState<C> *sums;
    ByChannel<C> weight, bias;
    C *means, *rstds, *numbers;
    int64_t size, channels, planes;
    C eps;

    YOKE_HD void operator()(int64_t group) const
    {
        PlaneState<C> total = PlaneState<C>::init();
        for (int64_t i = 0; i < size; i++)
            total = PlaneState<C>::combine(total, sums[group * size + i]);
        means[group] = total.mean();
        rstds[group] = total.rstd(eps);
        const Normal<C> normal(means[group], rstds[group]);
        for (int64_t plane = group * size; plane < (group + 1) * size; plane++) {
            numbers[plane] = normal.mean;
            numbers[planes + plane] = weight[plane % channels] * normal.rstd;
            numbers[2 * planes + plane] = bias[plane % channels];
            numbers[3 * planes + plane] = normal.scale;
        }
    }
};

// ---- gradients --------------------------------------------------------------------------------------------------

// Statistics kept by the op: `size` planes share a mean and 1 / deviation.
template <class C>
struct PlaneStatistics {
    const C *means, *rstds;
    int64_t size;

    YOKE_HD C rstd(int64_t plane) const { return rstds[plane / size]; }
    YOKE_HD Normal<C> normal(int64_t plane) const { return {means[plane / size], rstd(plane)}; }
};

// Sums of a plane's gradients, in double. The terms were added up in C before.
using PlaneGradientSums = GradientSums<double>;

template <class C>
struct BatchGradientNumbers {
    const PlaneGradientSums *sums;
    PlaneStatistics<C> of;
    ByChannel<C> weight;
    C *dweight, *dbias, *numbers;
    int64_t channels;
    double count;  // values of a channel
    bool of_batch;

    YOKE_HD void operator()(int64_t c) const
    {
        const PlaneGradientSums s = sums[c];
        const C factor = weight[c] * of.rstd(c);
        const Normal<C> normal = of.normal(c);
        dweight[c] = (C)s.g_normal;
        dbias[c] = (C)s.g;
        numbers[c] = normal.mean;
        numbers[channels + c] = factor;
        numbers[2 * channels + c] = of_batch ? -factor * (C)(s.g_normal / count) : (C)0;
        numbers[3 * channels + c] = of_batch ? -factor * (C)(s.g / count) : (C)0;
        numbers[4 * channels + c] = normal.rstd;
        numbers[5 * channels + c] = normal.scale;
    }
};

template <class C>
struct GroupGradientNumbers {
    const PlaneGradientSums *sums;
    PlaneStatistics<C> of;
    ByChannel<C> weight;
    C *numbers;
    int64_t channels, planes;
    double values;  // values of a group

    YOKE_HD void operator()(int64_t group) const
    {
        const int64_t first = group * of.size, last = first + of.size;
        PlaneGradientSums total = PlaneGradientSums::init();
        for (int64_t plane = first; plane < last; plane++) {
            const double w = (double)weight[plane % channels];
            total =
                PlaneGradientSums::combine(total, {w * sums[plane].g, w * sums[plane].g_normal});
        }
        const C rstd = of.rstd(first);
        const Normal<C> normal = of.normal(first);
        for (int64_t plane = first; plane < last; plane++) {
            numbers[plane] = normal.mean;
            numbers[planes + plane] = weight[plane % channels] * rstd;
            numbers[2 * planes + plane] = -rstd * (C)(total.g_normal / values);
            numbers[3 * planes + plane] = -rstd * (C)(total.g / values);
            numbers[4 * planes + plane] = normal.rstd;
            numbers[5 * planes + plane] = normal.scale;
        }
    }
};

// Functor of group_norm's gradients by weight and bias. For a channel, combines the sums of its planes, sample after
// sample.
template <class T>
struct ChannelGradients {
    const PlaneGradientSums *sums;
    int64_t samples, channels;
    T *dweight, *dbias;

    YOKE_HD void operator()(int64_t c) const
    {
        PlaneGradientSums total = PlaneGradientSums::init();
        for (int64_t n = 0; n < samples; n++)
            total = PlaneGradientSums::combine(total, sums[n * channels + c]);
        dweight[c] = convert<T>(total.g_normal);
        dbias[c] = convert<T>(total.g);
    }
};

// ---- maps -------------------------------------------------------------------------------------------------------

// Map (x scale - mean) factor + shift.
struct AffineMap {
    static constexpr int kInputs = 1, kNumbers = 4;
    template <class C>
    YOKE_HD C operator()(const C (&x)[1], const C *mean, int64_t planes) const
    {
        return (x[0] * mean[3 * planes] - mean[0]) * mean[planes] + mean[2 * planes];
    }
};

// Map relu(y), or relu(y + residual), where y is the result of AffineMap.
template <bool kAdds>
struct AffineReluMap {
    static constexpr int kInputs = kAdds ? 2 : 1, kNumbers = 4;
    template <class C>
    YOKE_HD C operator()(const C (&x)[kInputs], const C *mean, int64_t planes) const
    {
        const C y = AffineMap()({x[0]}, mean, planes);
        if constexpr (kAdds) return Relu()(y + x[1]);
        return Relu()(y);
    }
};

// Map g factor + (x scale - mean) rstd slope + shift. rstd and slope stay separate factors, because their product may
// be below C's range.
struct GradientMap {
    static constexpr int kInputs = 2, kNumbers = 6;
    template <class C>
    YOKE_HD C operator()(const C (&x)[2], const C *mean, int64_t planes) const
    {
        const C normal = (x[1] * mean[5 * planes] - mean[0]) * mean[4 * planes];
        return x[0] * mean[planes] + normal * mean[2 * planes] + mean[3 * planes];
    }
};

// Map of a gradient g through a relu with result x[2], then GradientMap.
struct ReluGradientMap {
    static constexpr int kInputs = 3, kNumbers = 6;
    template <class C>
    YOKE_HD C operator()(const C (&x)[3], const C *mean, int64_t planes) const
    {
        return GradientMap()({ReluBackward()(x[0], x[2]), x[1]}, mean, planes);
    }
};

// ---- arguments of a launch --------------------------------------------------------------------------------------

// Operands of batch_norm or batch_norm_add_relu. Only batch_norm_add_relu has a residual; the residual may be absent.
struct BatchCall {
    const yoke_operand *x, *residual, *mean, *variance, *weight, *bias, *out, *means, *variances,
        *rstds;
    double eps;

    BatchCall(const yoke_launch *launch, bool is_fused)
    {
        const yoke_operand *o = launch->operands;
        x = o++;
        residual = is_fused ? o++ : nullptr;
        mean = o++, variance = o++, weight = o++, bias = o++, out = o++;
        means = o++, variances = o++, rstds = o;
        eps = float_param(launch->params[0]);
    }
    int64_t channels() const { return x->shape[1]; }
    // Returns whether the statistics come from the batch: the call has no mean. Only then does numbers() use `sums`,
    // the sums of the planes.
    bool is_of_batch() const { return !is_present(*mean); }
    template <class C>
    BatchNumbers<C> numbers(const PlaneState<C> *sums, C *to) const
    {
        return {is_of_batch() ? sums : nullptr,
                {*mean, (C)0},
                {*variance, (C)0},
                {*weight, (C)1},
                {*bias, (C)0},
                data_of<C>(*means),
                data_of<C>(*variances),
                data_of<C>(*rstds),
                to,
                channels(),
                (C)eps};
    }
};

// Operands of the gradients of batch_norm and batch_norm_add_relu. Only batch_norm_add_relu has the result and the
// residual's gradient.
struct BatchGradientCall {
    const yoke_operand *grad, *x, *out, *weight, *mean, *rstd, *dx, *dweight, *dbias, *dresidual;
    bool of_batch, of_x, of_residual;

    BatchGradientCall(const yoke_launch *launch, bool is_fused)
    {
        const yoke_operand *o = launch->operands;
        const yoke_arg *p = launch->params;
        grad = o++, x = o++;
        out = is_fused ? o++ : nullptr;
        weight = o++, mean = o++, rstd = o++, dx = o++, dweight = o++, dbias = o++;
        dresidual = is_fused ? o : nullptr;
        of_batch = p[0].v.i != 0, of_x = p[1].v.i != 0;
        of_residual = is_fused && p[2].v.i != 0;
    }
    int64_t channels() const { return x->shape[1]; }
    template <class C>
    PlaneStatistics<C> statistics() const
    {
        return {data_of<const C>(*mean), data_of<const C>(*rstd), 1};
    }
    template <class C>
    BatchGradientNumbers<C> numbers(const PlaneGradientSums *sums, C *to) const
    {
        return {sums,
                statistics<C>(),
                {*weight, (C)1},
                data_of<C>(*dweight),
                data_of<C>(*dbias),
                to,
                channels(),
                (double)(channels() ? x->numel / channels() : 0),
                of_batch};
    }
};

template <class C>
inline GroupNumbers<C> group_numbers(const yoke_launch *launch, const PlaneState<C> *sums,
                                     C *numbers)
{
    const yoke_operand *o = launch->operands;
    const int64_t channels = o[0].shape[1];
    return {sums,
            {o[1], (C)1},
            {o[2], (C)0},
            data_of<C>(o[4]),
            data_of<C>(o[5]),
            numbers,
            channels / launch->params[0].v.i,
            channels,
            o[0].shape[0] * channels,
            (C)float_param(launch->params[1])};
}

template <class C>
inline PlaneStatistics<C> group_statistics(const yoke_launch *launch)
{
    const yoke_operand *o = launch->operands;
    return {data_of<const C>(o[3]), data_of<const C>(o[4]), o[1].shape[1] / launch->params[0].v.i};
}

// Returns the functor of group_norm's gradient by x. `length` is the number of values of a plane.
template <class C>
inline GroupGradientNumbers<C> group_gradient_numbers(const yoke_launch *launch,
                                                      const PlaneGradientSums *sums, C *numbers,
                                                      int64_t length)
{
    const yoke_operand *o = launch->operands, &x = o[1];
    const PlaneStatistics<C> of = group_statistics<C>(launch);
    const int64_t channels = x.shape[1];
    return {sums,
            of,
            {o[2], (C)1},
            numbers,
            channels,
            x.shape[0] * channels,
            (double)(of.size * length)};
}

template <class T>
inline ChannelGradients<T> channel_gradients(const yoke_launch *launch,
                                             const PlaneGradientSums *sums)
{
    const yoke_operand *o = launch->operands, &x = o[1];
    return {sums, x.shape[0], x.shape[1], data_of<T>(o[6]), data_of<T>(o[7])};
}

YOKE_KERNELS_END
