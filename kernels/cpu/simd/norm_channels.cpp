// batch_norm and group_norm, and their gradients: the moments of each plane, then one map over x by channel.
#include "kernels/common/channel_numbers.h"
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

// ---- what is made of sums ---------------------------------------------------------------------------------------

template <class State, class C>
using Room = kernels::PlaneRoom<Scratch, State, C>;

// f(i) for each i below n.
template <class F>
static void for_each(int64_t n, const F &f)
{
    for (int64_t i = 0; i < n; i++) f(i);
}

// The mean and 1 / deviation of each plane, where the numbers of a gradient have them.
template <class C>
static void fill_statistics(const kernels::PlaneStatistics<C> &of, int64_t planes, C *numbers)
{
    for (int64_t plane = 0; plane < planes; plane++) {
        numbers[plane] = of.mean(plane);
        numbers[4 * planes + plane] = of.rstd(plane);
    }
}

// ---- batch_norm -------------------------------------------------------------------------------------------------

template <class T>
static yoke_status normalize_batch(const yoke_launch *launch)
{
    using C = compute_type<T>;
    const yoke_operand *o = launch->operands;
    const yoke_operand &x = o[0], &out = o[5];
    int64_t channels = x.shape[1];
    Planes<1> planes({&x}, false);
    Room<MomentsState, C> room(launch);
    bool of_batch = !is_present(o[1]);
    if (yoke_status status = room.reserve(of_batch ? partial_count(planes) : 0, channels, 3))
        return status;
    if (of_batch) all_moments<T>(planes, room.partial, room.sums);
    for_each(channels, kernels::batch_numbers<C>(launch, room.sums, room.numbers));
    PerPlane numbers(x, false, room.numbers, o[6].dtype);
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
    int64_t channels = x.shape[1];
    Planes<2> planes({&x, &g}, false);
    Room<kernels::GradientSums<C>, C> room(launch);
    if (yoke_status status = room.reserve(partial_count(planes), channels, 5)) return status;
    fill_statistics(kernels::batch_statistics<C>(launch), channels, room.numbers);
    all_gradient_sums<T>(planes, room.numbers, room.numbers + 4 * channels, room.partial,
                         room.sums);
    for_each(channels, kernels::batch_gradient_numbers<C>(launch, room.sums, room.numbers));
    PerPlane numbers(x, false, room.numbers, o[3].dtype);
    if (launch->params[2].v.i != 0) gradient_map<T>(dx, g, x, numbers.operand, channels);
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
    int64_t groups = launch->params[0].v.i, channels = x.shape[1], count = x.shape[0] * channels;
    Planes<1> planes({&x}, true);
    Room<MomentsState, C> room(launch);
    if (yoke_status status = room.reserve(partial_count(planes), count, 3)) return status;
    all_moments<T>(planes, room.partial, room.sums);
    for_each(x.shape[0] * groups, kernels::group_numbers<C>(launch, room.sums, room.numbers));
    PerPlane numbers(x, true, room.numbers, o[4].dtype);
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
    int64_t groups = launch->params[0].v.i, channels = x.shape[1];
    int64_t count = x.shape[0] * channels;
    Planes<2> planes({&x, &g}, true);
    Room<kernels::GradientSums<C>, C> room(launch);
    if (yoke_status status = room.reserve(partial_count(planes), count, 5)) return status;
    fill_statistics(kernels::group_statistics<C>(launch), count, room.numbers);
    all_gradient_sums<T>(planes, room.numbers, room.numbers + 4 * count, room.partial, room.sums);
    for_each(channels, kernels::channel_gradients<T>(launch, room.sums));
    if (launch->params[1].v.i == 0) return YOKE_OK;
    for_each(x.shape[0] * groups, kernels::group_gradient_numbers<C>(
                                      launch, room.sums, room.numbers, planes.reduced.numel));
    PerPlane numbers(x, true, room.numbers, o[3].dtype);
    gradient_map<T>(dx, g, x, numbers.operand, count);
    return YOKE_OK;
}

YOKE_KERNEL(_group_norm_backward)
{
    return for_float(launch, "x", launch->operands[1].dtype,
                     [&]<class T>() { return group_norm_gradient<T>(launch); });
}

YOKE_SIMD_END
