// batch_norm and group_norm, and their gradients: the moments of each plane, then one map over x by channel.
#include "kernels/cpu/simd/plane_moments.h"

YOKE_SIMD_BEGIN

// ---- sums of planes ---------------------------------------------------------------------------------------------

// Sums of g and of g times the normalised x (operands: x, g), by each plane's mean and rstd.
template <class T>
static void all_gradient_sums(const Planes<2> &planes, const compute_type<T> *means,
                              const compute_type<T> *rstds,
                              kernels::GradientSums<compute_type<T>> *partial,
                              kernels::GradientSums<compute_type<T>> *out)
{
    using C = compute_type<T>;
    using Sums = kernels::GradientSums<C>;
    auto by_plane = [=](int64_t plane) {
        C mean = means[plane], rstd = rstds[plane];
        return [=](const C *const(&in)[2], int64_t n) {
            const C *x = in[0], *g = in[1];
            return Sums{
                kernels::sum_of<C>(n, [=](int64_t i) { return g[i]; }),
                kernels::sum_of<C>(n, [=](int64_t i) { return g[i] * ((x[i] - mean) * rstd); })};
        };
    };
    auto by_column = [=](int64_t first) {
        return
            [=](const C *const(&in)[2][kPlaneRows], int64_t count, int64_t columns, Sums *states) {
                const C *mean = means + first, *rstd = rstds + first;
                C sum[kPlaneColumns] = {}, product[kPlaneColumns] = {};
                for (int64_t r = 0; r < count; r++) {
                    const C *x = in[0][r], *g = in[1][r];
#pragma omp simd
                    for (int64_t j = 0; j < columns; j++) {
                        sum[j] += g[j];
                        product[j] += g[j] * ((x[j] - mean[j]) * rstd[j]);
                    }
                }
                for (int64_t j = 0; j < columns; j++) states[j] = {sum[j], product[j]};
            };
    };
    sum_planes<T>(planes, partial, out, by_plane, by_column);
}

// ---- maps -------------------------------------------------------------------------------------------------------

// For each plane three or four numbers, each in an array of its own, `planes` apart.
template <class T>
static void affine_map(const yoke_operand &out, const yoke_operand &x, const yoke_operand &numbers,
                       int64_t planes)
{
    using C = compute_type<T>;
    Loop<3> loop;
    plan_loop<3>(loop, {&out, &x, &numbers});
    parallel_range(loop.numel, kGrain, [&](int64_t begin, int64_t end) {
        walk<3>(loop, begin, end, [=](char *const *data, const int64_t *stride, int64_t n) {
            const C *mean = (const C *)data[2], *scale = mean + planes, *shift = scale + planes;
            bool dense = stride[0] == sizeof(T) && stride[1] == sizeof(T);
            T *to = (T *)data[0];
            const T *from = (const T *)data[1];
            if (dense && stride[2] == 0) {
                C m = *mean, a = *scale, b = *shift;
#pragma omp simd
                for (int64_t i = 0; i < n; i++) to[i] = store<T>((load<T>(from[i]) - m) * a + b);
            } else if (dense && stride[2] == sizeof(C)) {
#pragma omp simd
                for (int64_t i = 0; i < n; i++)
                    to[i] = store<T>((load<T>(from[i]) - mean[i]) * scale[i] + shift[i]);
            } else {
                for (int64_t i = 0; i < n; i++) {
                    int64_t at = i * stride[2] / (int64_t)sizeof(C);
                    C value = load<T>(*(const T *)(data[1] + i * stride[1]));
                    *(T *)(data[0] + i * stride[0]) =
                        store<T>((value - mean[at]) * scale[at] + shift[at]);
                }
            }
        });
    });
}

// dx = g * scale + (x - mean) * rstd * slope + shift. The product of rstd and slope may be less than C has.
template <class T>
static void gradient_map(const yoke_operand &dx, const yoke_operand &g, const yoke_operand &x,
                         const yoke_operand &numbers, int64_t planes)
{
    using C = compute_type<T>;
    Loop<4> loop;
    plan_loop<4>(loop, {&dx, &g, &x, &numbers});
    parallel_range(loop.numel, kGrain, [&](int64_t begin, int64_t end) {
        walk<4>(loop, begin, end, [=](char *const *data, const int64_t *stride, int64_t n) {
            const C *mean = (const C *)data[3], *scale = mean + planes, *slope = scale + planes;
            const C *shift = slope + planes, *rstd = shift + planes;
            bool dense = stride[0] == sizeof(T) && stride[1] == sizeof(T) && stride[2] == sizeof(T);
            T *to = (T *)data[0];
            const T *gs = (const T *)data[1], *xs = (const T *)data[2];
            if (dense && stride[3] == 0) {
                C m = *mean, a = *scale, k = *slope, b = *shift, s = *rstd;
#pragma omp simd
                for (int64_t i = 0; i < n; i++)
                    to[i] = store<T>(load<T>(gs[i]) * a + (load<T>(xs[i]) - m) * s * k + b);
            } else if (dense && stride[3] == sizeof(C)) {
#pragma omp simd
                for (int64_t i = 0; i < n; i++)
                    to[i] = store<T>(load<T>(gs[i]) * scale[i] +
                                     (load<T>(xs[i]) - mean[i]) * rstd[i] * slope[i] + shift[i]);
            } else {
                for (int64_t i = 0; i < n; i++) {
                    int64_t at = i * stride[3] / (int64_t)sizeof(C);
                    C value = load<T>(*(const T *)(data[2] + i * stride[2]));
                    *(T *)(data[0] + i * stride[0]) =
                        store<T>(load<T>(*(const T *)(data[1] + i * stride[1])) * scale[at] +
                                 (value - mean[at]) * rstd[at] * slope[at] + shift[at]);
                }
            }
        });
    });
}

// ---- parameters -------------------------------------------------------------------------------------------------

// A parameter by channel, of x's dtype or float32; absent, it has one value throughout.
template <class C>
struct ByChannel {
    const yoke_operand &operand;
    C otherwise;

    C operator[](int64_t channel) const
    {
        if (!is_present(operand)) return otherwise;
        int64_t at = operand.numel > 1 ? channel * operand.strides[0] : 0;
        switch (operand.dtype) {
            case YOKE_F64:
                return (C)data_of<double>(operand)[at];
            case YOKE_F16:
                return (C)load<f16>(data_of<f16>(operand)[at]);
            case YOKE_BF16:
                return (C)load<bf16>(data_of<bf16>(operand)[at]);
            default:
                return (C)data_of<float>(operand)[at];
        }
    }
};

template <class T>
static void put(const yoke_operand &out, int64_t i, compute_type<T> value)
{
    data_of<T>(out)[i] = store<T>(value);
}

// The memory of one call: `size` bytes for partial sums, then the planes' sums, then numbers.
template <class State, class C>
struct Room {
    Scratch scratch;
    State *partial = nullptr, *sums = nullptr;
    C *numbers = nullptr;

    explicit Room(const yoke_launch *launch) : scratch(launch) {}
    yoke_status reserve(int64_t partials, int64_t planes, int64_t numbers_a_plane)
    {
        uint64_t states = (uint64_t)(partials + planes) * sizeof(State);
        uint64_t bytes = states + (uint64_t)(planes * numbers_a_plane + 1) * sizeof(C);
        if (yoke_status status = scratch.reserve(bytes)) return status;
        partial = static_cast<State *>(scratch.data());
        sums = partial + partials;
        numbers = reinterpret_cast<C *>(sums + planes);
        return YOKE_OK;
    }
};

// ---- batch_norm -------------------------------------------------------------------------------------------------

template <class T>
static yoke_status normalize_batch(const yoke_launch *launch)
{
    using C = compute_type<T>;
    const yoke_operand *o = launch->operands;
    const yoke_operand &x = o[0], &out = o[5];
    C *means = data_of<C>(o[6]), *variances = data_of<C>(o[7]),
      eps = (C)float_param(launch->params[0]);
    ByChannel<C> given_mean{o[1], (C)0}, given_variance{o[2], (C)0}, weight{o[3], (C)1};
    ByChannel<C> bias{o[4], (C)0};
    int64_t channels = x.shape[1];
    Planes<1> planes({&x}, false);
    Room<MomentsState, C> room(launch);
    bool of_batch = !is_present(o[1]);
    if (yoke_status status = room.reserve(of_batch ? partial_count(planes) : 0, channels, 3))
        return status;
    if (of_batch) all_moments<T>(planes, room.partial, room.sums);
    C *mean = room.numbers, *scale = mean + channels, *shift = scale + channels;
    for (int64_t c = 0; c < channels; c++) {
        means[c] = mean[c] = of_batch ? (C)room.sums[c].mean : given_mean[c];
        variances[c] = of_batch ? (C)room.sums[c].variance() : given_variance[c];
        scale[c] = weight[c] * kernels::inverse_root(variances[c], eps);
        shift[c] = bias[c];
    }
    PerPlane numbers(x, false, mean, o[6].dtype);
    affine_map<T>(out, x, numbers.operand, channels);
    return YOKE_OK;
}

YOKE_KERNEL(_batch_norm)
{
    return for_float(launch, "x", launch->operands[0].dtype,
                     [&]<class T>() { return normalize_batch<T>(launch); });
}

template <class T>
static yoke_status batch_norm_gradient(const yoke_launch *launch)
{
    using C = compute_type<T>;
    const yoke_operand *o = launch->operands;
    const yoke_operand &g = o[0], &x = o[1], &dx = o[5];
    const C *means = data_of<C>(o[3]), *variances = data_of<C>(o[4]);
    C eps = (C)float_param(launch->params[0]);
    bool of_batch = launch->params[1].v.i != 0, of_x = launch->params[2].v.i != 0;
    ByChannel<C> weight{o[2], (C)1};
    int64_t channels = x.shape[1];
    C count = (C)(channels ? x.numel / channels : 0);
    Planes<2> planes({&x, &g}, false);
    Room<kernels::GradientSums<C>, C> room(launch);
    if (yoke_status status = room.reserve(partial_count(planes), channels, 5)) return status;
    C *mean = room.numbers, *scale = mean + channels, *slope = scale + channels;
    C *shift = slope + channels, *rstd = shift + channels;
    for (int64_t c = 0; c < channels; c++) {
        mean[c] = means[c];
        rstd[c] = kernels::inverse_root(variances[c], eps);
    }
    all_gradient_sums<T>(planes, mean, rstd, room.partial, room.sums);
    for (int64_t c = 0; c < channels; c++) {
        auto sums = room.sums[c];
        put<C>(o[6], c, sums.g_normal);
        put<C>(o[7], c, sums.g);
        scale[c] = weight[c] * rstd[c];
        slope[c] = of_batch ? -scale[c] * (sums.g_normal / count) : (C)0;
        shift[c] = of_batch ? -scale[c] * (sums.g / count) : (C)0;
    }
    PerPlane numbers(x, false, mean, o[3].dtype);
    if (of_x) gradient_map<T>(dx, g, x, numbers.operand, channels);
    return YOKE_OK;
}

YOKE_KERNEL(_batch_norm_backward)
{
    return for_float(launch, "x", launch->operands[1].dtype,
                     [&]<class T>() { return batch_norm_gradient<T>(launch); });
}

// ---- group_norm -------------------------------------------------------------------------------------------------

template <class T>
static yoke_status normalize_groups(const yoke_launch *launch)
{
    using C = compute_type<T>;
    const yoke_operand *o = launch->operands;
    const yoke_operand &x = o[0], &out = o[3];
    C *means = data_of<C>(o[4]), *rstds = data_of<C>(o[5]), eps = (C)float_param(launch->params[1]);
    ByChannel<C> weight{o[1], (C)1}, bias{o[2], (C)0};
    int64_t groups = launch->params[0].v.i, channels = x.shape[1], size = channels / groups;
    Planes<1> planes({&x}, true);
    int64_t count = x.shape[0] * channels;
    Room<MomentsState, C> room(launch);
    if (yoke_status status = room.reserve(partial_count(planes), count, 3)) return status;
    all_moments<T>(planes, room.partial, room.sums);
    C *mean = room.numbers, *scale = mean + count, *shift = scale + count;
    for (int64_t group = 0; group < x.shape[0] * groups; group++) {
        auto total = MomentsState::init();
        for (int64_t i = 0; i < size; i++)
            total = MomentsState::combine(total, room.sums[group * size + i]);
        means[group] = (C)total.mean;
        rstds[group] = kernels::inverse_root_of(total.variance(), eps);
        for (int64_t i = 0; i < size; i++) {
            int64_t plane = group * size + i;
            mean[plane] = means[group];
            scale[plane] = weight[plane % channels] * rstds[group];
            shift[plane] = bias[plane % channels];
        }
    }
    PerPlane numbers(x, true, mean, o[4].dtype);
    affine_map<T>(out, x, numbers.operand, count);
    return YOKE_OK;
}

YOKE_KERNEL(group_norm)
{
    return for_float(launch, "x", launch->operands[0].dtype,
                     [&]<class T>() { return normalize_groups<T>(launch); });
}

template <class T>
static yoke_status group_norm_gradient(const yoke_launch *launch)
{
    using C = compute_type<T>;
    const yoke_operand *o = launch->operands;
    const yoke_operand &g = o[0], &x = o[1], &dx = o[5];
    const C *means = data_of<C>(o[3]), *rstds = data_of<C>(o[4]);
    int64_t groups = launch->params[0].v.i, channels = x.shape[1], size = channels / groups;
    bool of_x = launch->params[1].v.i != 0;
    ByChannel<C> weight{o[2], (C)1};
    int64_t count = x.shape[0] * channels;
    Planes<2> planes({&x, &g}, true);
    Room<kernels::GradientSums<C>, C> room(launch);
    if (yoke_status status = room.reserve(partial_count(planes), count, 5)) return status;
    C *mean = room.numbers, *scale = mean + count, *slope = scale + count;
    C *shift = slope + count, *rstd = shift + count;
    for (int64_t plane = 0; plane < count; plane++) {
        mean[plane] = means[plane / size];
        rstd[plane] = rstds[plane / size];
    }
    all_gradient_sums<T>(planes, mean, rstd, room.partial, room.sums);
    C values = (C)(size * planes.reduced.numel);
    for (int64_t group = 0; group < x.shape[0] * groups; group++) {
        auto total = kernels::GradientSums<C>::init();
        for (int64_t plane = group * size; plane < (group + 1) * size; plane++) {
            C w = weight[plane % channels];
            auto sums = room.sums[plane];
            total = kernels::GradientSums<C>::combine(total, {w * sums.g, w * sums.g_normal});
        }
        for (int64_t plane = group * size; plane < (group + 1) * size; plane++) {
            scale[plane] = weight[plane % channels] * rstd[plane];
            slope[plane] = -rstd[plane] * (total.g_normal / values);
            shift[plane] = -rstd[plane] * (total.g / values);
        }
    }
    for (int64_t c = 0; c < channels; c++) {
        auto sums = kernels::GradientSums<C>::init();
        for (int64_t n = 0; n < x.shape[0]; n++)
            sums = kernels::GradientSums<C>::combine(sums, room.sums[n * channels + c]);
        put<T>(o[6], c, sums.g_normal);
        put<T>(o[7], c, sums.g);
    }
    PerPlane numbers(x, true, mean, o[3].dtype);
    if (of_x) gradient_map<T>(dx, g, x, numbers.operand, count);
    return YOKE_OK;
}

YOKE_KERNEL(_group_norm_backward)
{
    return for_float(launch, "x", launch->operands[1].dtype,
                     [&]<class T>() { return group_norm_gradient<T>(launch); });
}

YOKE_SIMD_END
