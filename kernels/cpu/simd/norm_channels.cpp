// batch_norm (also with residual and relu), group_norm, and their gradients: first the sums of each plane, then a map
// over x by channel.
#include "kernels/cpu/simd/channel_maps.h"
#include "kernels/cpu/simd/plane_moments.h"

YOKE_SIMD_BEGIN

// ---- sums of planes ---------------------------------------------------------------------------------------------

// View of a gradient g through a relu. The operands are x, g, the relu's result, and optionally the masked g.
struct MaskedByRelu {
    static constexpr int kLoaded = 3;
    yoke_dtype dtype;
    bool keeps;

    template <class T>
    void prepare(const T *(&in)[4], char *const *data, const int64_t *stride, int64_t n,
                 T *room) const
    {
        const bool in_place =
            keeps && dtype == kernels::dtype_of<T> && stride[3] == (int64_t)sizeof(T);
        const T *g = in[1], *out = in[2];
        T *to = in_place ? (T *)data[3] : room;
#pragma omp simd
        for (int64_t i = 0; i < n; i++) to[i] = kernels::ReluBackward()(g[i], out[i]);
        if (keeps && !in_place) store_elements(dtype, to, data[3], stride[3], n);
        in[1] = to;
    }
};

using kernels::PlaneGradientSums;

// The Normal of each plane, as the numbers of a gradient have them.
template <class C>
struct PlaneNormals {
    const C *mean, *rstd, *scale;

    PlaneNormals(const C *numbers, int64_t planes)
        : mean(numbers), rstd(numbers + 4 * planes), scale(numbers + 5 * planes)
    {
    }
    PlaneNormals from(int64_t plane) const
    {
        PlaneNormals moved = *this;
        moved.mean += plane, moved.rstd += plane, moved.scale += plane;
        return moved;
    }
};

// Sums g, and g times the normalised x, in kCount vectors of columns from column j on.
template <class V, int kCount, class T, class C>
static void vector_gradient_sums(const T *const *x, const T *const *g, int64_t count, int64_t j,
                                 const PlaneNormals<C> &of, PlaneGradientSums *states)
{
    constexpr int64_t kStep = sizeof(V) / sizeof(C);
    V sum[kCount] = {}, product[kCount] = {};
    for (int64_t r = 0; r < count; r++)
#pragma GCC unroll 4
        for (int k = 0; k < kCount; k++) {
            const int64_t at = j + k * kStep;
            const V of_g = load_vector<V>(g[r] + at), of_x = load_vector<V>(x[r] + at);
            sum[k] += of_g;
            product[k] +=
                of_g * ((of_x * *(const V *)(of.scale + at) - *(const V *)(of.mean + at)) *
                        *(const V *)(of.rstd + at));
        }
    for (int k = 0; k < kCount; k++)
        for (int64_t i = 0; i < kStep; i++) states[j + k * kStep + i] = {sum[k][i], product[k][i]};
}

// Computes two sums for every plane: of g, and of g times the normalised x. The operands are x, g, and perhaps more.
template <class C, int N, class View>
static yoke_status all_gradient_sums(const yoke_launch *launch, const Planes<N> &planes,
                                     const View &view, const PlaneNormals<C> &of,
                                     PlaneGradientSums *partial, PlaneGradientSums *out)
{
    using Sums = PlaneGradientSums;
    auto by_plane = [=](int64_t plane) {
        const C mean = of.mean[plane], rstd = of.rstd[plane], scale = of.scale[plane];
        return [=](const C *const(&in)[N], int64_t n) {
            const C *x = in[0], *g = in[1];
            return Sums{kernels::sum_of<C>(n, [=](int64_t i) { return g[i]; }),
                        kernels::sum_of<C>(
                            n, [=](int64_t i) { return g[i] * ((x[i] * scale - mean) * rstd); })};
        };
    };
    auto by_column = [=](int64_t first) {
        return [=](const auto &in, int64_t count, int64_t columns, Sums *states) {
            each_vectors<C>(columns, [&]<class V, int kCount>(int64_t j) {
                vector_gradient_sums<V, kCount>(in[0], in[1], count, j, of.from(first), states);
            });
        };
    };
    return sum_planes<C>(launch, planes, view, partial, out, by_plane, by_column);
}

// ---- numbers computed from sums ---------------------------------------------------------------------------------

template <class State, class C>
using Room = kernels::PlaneRoom<Scratch, State, C>;

// Calls f(i) for each i below n.
template <class F>
static void for_each(int64_t n, const F &f)
{
    for (int64_t i = 0; i < n; i++) f(i);
}

// Writes the Normal of each plane into `numbers`, where PlaneNormals reads it.
template <class C>
static void fill_statistics(const kernels::PlaneStatistics<C> &of, int64_t planes, C *numbers)
{
    for (int64_t plane = 0; plane < planes; plane++) {
        const kernels::Normal<C> normal = of.normal(plane);
        numbers[plane] = normal.mean;
        numbers[4 * planes + plane] = normal.rstd;
        numbers[5 * planes + plane] = normal.scale;
    }
}

// ---- batch_norm, batch_norm_add_relu ----------------------------------------------------------------------------

using kernels::BatchCall;
using kernels::BatchGradientCall;

template <class C>
static yoke_status normalize_batch(const yoke_launch *launch, const BatchCall &o)
{
    const yoke_operand &x = *o.x;
    const int64_t channels = o.channels();
    Planes<1> planes({&x}, false);
    Room<PlaneState<C>, C> room(launch);
    if (yoke_status status = room.reserve(o.is_of_batch() ? partial_count(planes) : 0, channels, 4))
        return status;
    if (o.is_of_batch())
        if (yoke_status status = all_moments<C>(launch, planes, room.partial, room.sums))
            return status;
    for_each(channels, o.numbers<C>(room.sums, room.numbers));
    PerPlane numbers(x, false, room.numbers, kernels::dtype_of<C>);
    if (!o.residual)
        map_channels<C>({o.out, &x, &numbers.operand}, channels, kernels::AffineMap());
    else if (!is_present(*o.residual))
        map_channels<C>({o.out, &x, &numbers.operand}, channels, kernels::AffineReluMap<false>());
    else
        map_channels<C>({o.out, &x, o.residual, &numbers.operand}, channels,
                        kernels::AffineReluMap<true>());
    return YOKE_OK;
}

static yoke_status normalize_batch(const yoke_launch *launch, bool is_fused)
{
    const BatchCall call(launch, is_fused);
    return in_floats(launch, "x", call.x->dtype,
                     [&]<class C>() { return normalize_batch<C>(launch, call); });
}

YOKE_KERNEL(_batch_norm)
{
    return normalize_batch(launch, false);
}

YOKE_KERNEL(_batch_norm_add_relu)
{
    return normalize_batch(launch, true);
}

// Computes the sums of planes, and from them the numbers for the gradient's map.
template <class C, int N, class View>
static yoke_status find_gradient_numbers(const yoke_launch *launch, const BatchGradientCall &o,
                                         const Planes<N> &planes, const View &view,
                                         Room<PlaneGradientSums, C> &room)
{
    const int64_t channels = o.channels();
    if (yoke_status status = room.reserve(partial_count(planes), channels, 6)) return status;
    fill_statistics(o.statistics<C>(), channels, room.numbers);
    const PlaneNormals<C> of(room.numbers, channels);
    if (yoke_status status =
            all_gradient_sums<C>(launch, planes, view, of, room.partial, room.sums))
        return status;
    for_each(channels, o.numbers<C>(room.sums, room.numbers));
    return YOKE_OK;
}

template <class C>
static yoke_status batch_norm_gradient(const yoke_launch *launch, const BatchGradientCall &o)
{
    Room<PlaneGradientSums, C> room(launch);
    const yoke_operand &x = *o.x, *g = o.grad;
    const yoke_status status =
        o.out ? find_gradient_numbers<C>(
                    launch, o, Planes<4>({&x, g, o.out, o.of_residual ? o.dresidual : g}, false),
                    MaskedByRelu{x.dtype, o.of_residual}, room)
              : find_gradient_numbers<C>(launch, o, Planes<2>({&x, g}, false), Loaded<2>(), room);
    if (status || !o.of_x) return status;
    PerPlane numbers(x, false, room.numbers, kernels::dtype_of<C>);
    // A residual's gradient is the g that has come through.
    if (o.out && !o.of_residual)
        map_channels<C>({o.dx, g, &x, o.out, &numbers.operand}, o.channels(),
                        kernels::ReluGradientMap());
    else
        map_channels<C>({o.dx, o.out ? o.dresidual : g, &x, &numbers.operand}, o.channels(),
                        kernels::GradientMap());
    return YOKE_OK;
}

static yoke_status batch_norm_gradient(const yoke_launch *launch, bool is_fused)
{
    const BatchGradientCall call(launch, is_fused);
    return in_floats(launch, "x", call.x->dtype,
                     [&]<class C>() { return batch_norm_gradient<C>(launch, call); });
}

YOKE_KERNEL(_batch_norm_backward)
{
    return batch_norm_gradient(launch, false);
}

YOKE_KERNEL(_batch_norm_add_relu_backward)
{
    return batch_norm_gradient(launch, true);
}

// ---- group_norm -------------------------------------------------------------------------------------------------

template <class C>
static yoke_status normalize_groups(const yoke_launch *launch)
{
    const yoke_operand *o = launch->operands;
    const yoke_operand &x = o[0], &out = o[3];
    int64_t groups = launch->params[0].v.i, channels = x.shape[1], count = x.shape[0] * channels;
    Planes<1> planes({&x}, true);
    Room<PlaneState<C>, C> room(launch);
    if (yoke_status status = room.reserve(partial_count(planes), count, 4)) return status;
    if (yoke_status status = all_moments<C>(launch, planes, room.partial, room.sums)) return status;
    for_each(x.shape[0] * groups, kernels::group_numbers<C>(launch, room.sums, room.numbers));
    PerPlane numbers(x, true, room.numbers, o[4].dtype);
    map_channels<C>({&out, &x, &numbers.operand}, count, kernels::AffineMap());
    return YOKE_OK;
}

YOKE_KERNEL(group_norm)
{
    return in_floats(launch, "x", launch->operands[0].dtype,
                     [&]<class C>() { return normalize_groups<C>(launch); });
}

template <class C>
static yoke_status group_norm_gradient(const yoke_launch *launch)
{
    const yoke_operand *o = launch->operands;
    const yoke_operand &g = o[0], &x = o[1], &dx = o[5];
    int64_t groups = launch->params[0].v.i, channels = x.shape[1];
    int64_t count = x.shape[0] * channels;
    Planes<2> planes({&x, &g}, true);
    Room<PlaneGradientSums, C> room(launch);
    if (yoke_status status = room.reserve(partial_count(planes), count, 6)) return status;
    fill_statistics(kernels::group_statistics<C>(launch), count, room.numbers);
    const PlaneNormals<C> of(room.numbers, count);
    if (yoke_status status =
            all_gradient_sums<C>(launch, planes, Loaded<2>(), of, room.partial, room.sums))
        return status;
    for_stored<C>(x.dtype, [&]<class T>() {
        for_each(channels, kernels::channel_gradients<T>(launch, room.sums));
    });
    if (launch->params[1].v.i == 0) return YOKE_OK;
    for_each(x.shape[0] * groups, kernels::group_gradient_numbers<C>(
                                      launch, room.sums, room.numbers, planes.reduced.numel));
    PerPlane numbers(x, true, room.numbers, o[3].dtype);
    map_channels<C>({&dx, &g, &x, &numbers.operand}, count, kernels::GradientMap());
    return YOKE_OK;
}

YOKE_KERNEL(_group_norm_backward)
{
    return in_floats(launch, "x", launch->operands[1].dtype,
                     [&]<class C>() { return group_norm_gradient<C>(launch); });
}

YOKE_SIMD_END
