// Gradients of reductions: of amax and amin, prod, var, norm and logsumexp.
//
// grad (and out, or mean) have x's axes; the reduced axes have length 1.
#include "kernels/common/axes.h"
#include "kernels/common/moments.h"
#include "kernels/common/ties.h"
#include "kernels/cpu/simd/iterate.h"
#include "kernels/cpu/simd/map.h"

YOKE_SIMD_BEGIN

// ---- elementwise gradients: from x, the gradient and another value for each result ------------------------------

// Computes f(g, x, y) for each element. g and y are in the computing type; x is converted to it.
template <class T, class F>
static yoke_status map_gradient(const yoke_launch *launch, const F &f)
{
    using C = compute_type<T>;
    const yoke_operand *o = launch->operands;
    return map<C, C, C, C>(f, kGrain / 4, o[3], o[0], o[1], o[2]);
}

YOKE_KERNEL(_var_backward)
{
    const yoke_operand *o = launch->operands;
    return for_float(launch, "x", o[1].dtype, [&]<class T>() {
        using C = compute_type<T>;
        return map<C, double, C, double>(kernels::VarBackward(), kGrain / 4, o[3], o[0], o[1],
                                         o[2]);
    });
}

YOKE_KERNEL(_logsumexp_backward)
{
    return for_float(launch, "x", launch->operands[1].dtype, [&]<class T>() {
        return map_gradient<T>(launch, kernels::LogSumExpBackward());
    });
}

// ---- gradients with a pass over all elements of a result first --------------------------------------------------

// Axes kept by `top`, with N operands, and the reduced axes, with out and x.
template <int N>
struct KeptAndReduced {
    Loop<N> kept = {};
    Loop<2> reduced = {};

    KeptAndReduced(const yoke_operand *const (&operands)[N], const yoke_operand &top)
    {
        const yoke_operand &x = *operands[1];
        bool is_reduced[YOKE_MAX_NDIM];
        kernels::mark_missing_axes(top, x, is_reduced);
        kernels::begin_loop<N>(kept, operands);
        reduced.numel = 1;
        for (int axis = x.ndim - 1; axis >= 0; axis--) {
            int64_t steps[N];
            for (int i = 0; i < N; i++) steps[i] = step_of(*operands[i], axis, x.ndim);
            if (is_reduced[axis])
                add_axis<2>(reduced, x.shape[axis], {steps[0], steps[1]});
            else
                add_axis<N>(kept, x.shape[axis], steps);
        }
        finish_loop<N>(kept);
        finish_loop<2>(reduced);
    }

    // Calls f(elements of the result, pointers to its other values) for every result, by the team.
    template <class F>
    void for_each(const F &f) const
    {
        parallel_range(kept.numel, max(1, kGrain / reduced.numel), [&](int64_t begin, int64_t end) {
            Cursor<N> cursor(kept, begin);
            for (; begin < end; begin++, cursor.advance(kept, 0, 1)) {
                Loop<2> row = reduced;
                row.data[0] = cursor.data[0];
                row.data[1] = cursor.data[1];
                f(row, cursor.data + 2);
            }
        });
    }
};

// Calls take(out, x) for every element of a result.
template <class T, class F>
static void for_elements(const Loop<2> &row, const F &take)
{
    walk<2>(row, 0, row.numel, [&](char *const *data, const int64_t *stride, int64_t n) {
        for (int64_t i = 0; i < n; i++)
            take(*(T *)(data[0] + i * stride[0]), load<T>(*(const T *)(data[1] + i * stride[1])));
    });
}

using kernels::is_same;

// Divides a result's gradient evenly among its elements of extreme value. Other elements get 0.
template <class T>
static void share_extreme(const Loop<2> &row, compute_type<T> g, compute_type<T> top)
{
    using C = compute_type<T>;
    int64_t count = 0;
    for_elements<T>(row, [&](T &, C x) { count += is_same(x, top); });
    const kernels::ShareOfExtreme share_of;
    C share = g / (C)max(1, count);
    for_elements<T>(row, [&](T &out, C x) { out = store<T>(share_of(share, x, top)); });
}

YOKE_KERNEL(_amax_backward)
{
    const yoke_operand &grad = launch->operands[0], &x = launch->operands[1];
    const yoke_operand &top = launch->operands[2], &out = launch->operands[3];
    if (x.numel == 0) return YOKE_OK;
    KeptAndReduced<4> axes({&out, &x, &grad, &top}, top);
    return for_float(launch, "x", x.dtype, [&]<class T>() {
        axes.for_each([](const Loop<2> &row, char *const *more) {
            share_extreme<T>(row, load<T>(*(const T *)more[0]), load<T>(*(const T *)more[1]));
        });
        return (yoke_status)YOKE_OK;
    });
}

// Divides a result's gradient evenly among its elements of extreme magnitude, for norms of infinite order. Other
// elements get 0.
template <class T>
static void share_magnitude(const Loop<2> &row, compute_type<T> g, compute_type<T> top)
{
    using C = compute_type<T>;
    int64_t count = 0;
    for_elements<T>(row, [&](T &, C x) { count += is_same(kernels::magnitude(x), top); });
    const kernels::ShareOfMagnitude share_of;
    C share = g / (C)max(1, count);
    for_elements<T>(row, [&](T &out, C x) { out = store<T>(share_of(share, x, top)); });
}

YOKE_KERNEL(_norm_backward)
{
    const yoke_operand &grad = launch->operands[0], &x = launch->operands[1];
    const yoke_operand &norm = launch->operands[2], &out = launch->operands[3];
    if (x.numel == 0) return YOKE_OK;
    double p = float_param(launch->params[0]);
    return for_float(launch, "x", x.dtype, [&]<class T>() {
        using C = compute_type<T>;
        if (p - p == 0) return map_gradient<T>(launch, kernels::NormBackward{p});
        KeptAndReduced<4>({&out, &x, &grad, &norm}, norm)
            .for_each([](const Loop<2> &row, char *const *more) {
                share_magnitude<T>(row, *(const C *)more[0], *(const C *)more[1]);
            });
        return (yoke_status)YOKE_OK;
    });
}

// Writes the gradient of each element: g times the product of all other elements.
template <class T>
static void spread_product(const Loop<2> &row, double g)
{
    using C = compute_type<T>;
    kernels::Factors all = kernels::Factors::none();
    for_elements<T>(row, [&](T &, C x) { all = all.with((double)x); });
    for_elements<T>(row, [&](T &out, C x) { out = convert<T>(all.others(g, (double)x)); });
}

YOKE_KERNEL(_prod_backward)
{
    const yoke_operand &grad = launch->operands[0], &x = launch->operands[1];
    const yoke_operand &out = launch->operands[2];
    if (x.numel == 0) return YOKE_OK;
    KeptAndReduced<3> axes({&out, &x, &grad}, grad);
    return for_float(launch, "x", x.dtype, [&]<class T>() {
        axes.for_each([](const Loop<2> &row, char *const *more) {
            spread_product<T>(row, (double)*(const compute_type<T> *)more[0]);
        });
        return (yoke_status)YOKE_OK;
    });
}

YOKE_SIMD_END
