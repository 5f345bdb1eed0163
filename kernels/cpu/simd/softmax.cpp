// softmax and log_softmax along any axis, and their gradients.
#include "kernels/cpu/simd/softmax.h"

YOKE_SIMD_BEGIN

// Each row is gone over while it is in the first-level cache; rows may be changed in place.

// Prefetch during the pass of exps, which computes much: meanwhile it fetches the next row of `out`. So the last
// pass, which computes little, only fetches the next row of x.
template <class C>
struct FetchNext {
    char *out;
    int64_t row;  // bytes from a row to the next; 0 where that is not worth fetching

    void operator()(int64_t i) const
    {
        constexpr int64_t kBytes = kernels::kRowParts * (int64_t)sizeof(C);
        if (row) fetch_to_write(out + row + i * (int64_t)sizeof(C), kBytes);
    }
};

template <class C>
static void scale_row(C *out, C scale, int64_t n, const FetchNext<C> &next, const C *x)
{
    constexpr int64_t kStep = kernels::kRowParts;
    int64_t i = 0;
    for (; next.row && i + kStep <= n; i += kStep) {
        fetch_to_read((const char *)(x + i) + next.row, kStep * (int64_t)sizeof(C));
#pragma omp simd
        for (int64_t k = i; k < i + kStep; k++) out[k] *= scale;
    }
#pragma omp simd
    for (int64_t k = i; k < n; k++) out[k] *= scale;
}

// Computes the softmax of a row: out = exp(x - max) in the summing pass, then a multiplication in another pass. So
// each element costs a single exp. If all elements are -infinity, or an element is infinity, the differences are NaN,
// and so is the row.
template <class C>
static void softmax_row(const C *x, C *out, int64_t n, bool far)
{
    constexpr int64_t kLongest = 65536;  // bytes of a row; a longer next row would evict the row
    const int64_t row = n * (int64_t)sizeof(C);
    const FetchNext<C> next{(char *)out, far && row <= kLongest ? row : 0};
    const C top = kernels::row_max(x, n), sum = kernels::row_sum_exp<true>(x, n, top, out, next);
    scale_row(out, (C)1 / sum, n, next, x);
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
