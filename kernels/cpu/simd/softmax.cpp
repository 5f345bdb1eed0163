// softmax and log_softmax along any axis, and their gradients.
#include "kernels/cpu/simd/softmax.h"

YOKE_SIMD_BEGIN

// Each row is gone over while it is in the first-level cache; rows may be changed in place.

// out = exp(x - max) in the pass that sums, then one pass of products: one exp an element. Where all are -infinity, or
// one is infinity, the differences are NaN and so is the row.
template <class C>
static void softmax_row(const C *x, C *out, int64_t n, bool far)
{
    C scale = (C)1 / kernels::row_sum_exp<true>(x, n, kernels::row_max(x, n), out);
    finish_row(
        out, x, n, far, [=](int64_t i) __attribute__((always_inline)) { out[i] *= scale; });
}

template <class C>
static void log_softmax_row(const C *x, C *out, int64_t n, bool far)
{
    auto state = kernels::softmax_state(x, 1, n);
    C log_sum = kernels::log(state.sum);
    finish_row(
        out, x, n, far, [=](int64_t i) __attribute__((always_inline)) {
            out[i] = (x[i] - state.max) - log_sum;
        });
}

template <class C>
static void softmax_backward_row(const C *g, const C *y, C *out, int64_t n, bool far)
{
    C dot = kernels::row_sum<C>(
        n, [=](int64_t i) __attribute__((always_inline)) { return g[i] * y[i]; });
    finish_row(
        out, g, n, far, [=](int64_t i) __attribute__((always_inline)) {
            out[i] = kernels::softmax_backward(g[i], y[i], dot);
        });
}

template <class C>
static void log_softmax_backward_row(const C *g, const C *y, C *out, int64_t n, bool far)
{
    C sum = kernels::row_sum<C>(
        n, [=](int64_t i) __attribute__((always_inline)) { return g[i]; });
    finish_row(
        out, g, n, far, [=](int64_t i) __attribute__((always_inline)) {
            out[i] = kernels::log_softmax_backward(g[i], y[i], sum);
        });
}

YOKE_KERNEL(softmax)
{
    const yoke_operand &x = launch->operands[0], &out = launch->operands[1];
    Rows<2> rows({&x, &out}, (int)launch->params[0].v.i);
    return for_float(launch, "x", x.dtype, [&]<class T>() {
        using C = compute_type<T>;
        return for_each_row<T>(launch, rows, [](const C *const *in, C *y, int64_t n, bool far) {
            softmax_row(in[0], y, n, far);
        });
    });
}

YOKE_KERNEL(log_softmax)
{
    const yoke_operand &x = launch->operands[0], &out = launch->operands[1];
    Rows<2> rows({&x, &out}, (int)launch->params[0].v.i);
    return for_float(launch, "x", x.dtype, [&]<class T>() {
        using C = compute_type<T>;
        return for_each_row<T>(launch, rows, [](const C *const *in, C *y, int64_t n, bool far) {
            log_softmax_row(in[0], y, n, far);
        });
    });
}

YOKE_KERNEL(_softmax_backward)
{
    const yoke_operand *o = launch->operands;
    Rows<3> rows({&o[0], &o[1], &o[2]}, (int)launch->params[0].v.i);
    return for_float(launch, "grad", o[0].dtype, [&]<class T>() {
        using C = compute_type<T>;
        return for_each_row<T>(launch, rows, [](const C *const *in, C *dx, int64_t n, bool far) {
            softmax_backward_row(in[0], in[1], dx, n, far);
        });
    });
}

YOKE_KERNEL(_log_softmax_backward)
{
    const yoke_operand *o = launch->operands;
    Rows<3> rows({&o[0], &o[1], &o[2]}, (int)launch->params[0].v.i);
    return for_float(launch, "grad", o[0].dtype, [&]<class T>() {
        using C = compute_type<T>;
        return for_each_row<T>(launch, rows, [](const C *const *in, C *dx, int64_t n, bool far) {
            log_softmax_backward_row(in[0], in[1], dx, n, far);
        });
    });
}

YOKE_SIMD_END
