// The one way through strided tensors: N operands walked together in the shape of the first.
//
// Contract
//  * plan_loop drops axes of length 1, puts the axis with the smallest strides innermost and joins axes that lie end
//    to end, so that a contiguous or merely permuted tensor becomes one run. Broadcast axes have stride 0.
//  * walk calls inner(pointers, strides, n) for runs of the innermost axis; strides are in bytes, may be negative.
//  * Any range of the walk may be run by any thread: element i of it is the same element every time.
#pragma once

#include "kernels/cpu/simd/simd.h"

YOKE_SIMD_BEGIN

template <int N>
struct Loop {
    int ndim;                          // at least 1
    int64_t shape[YOKE_MAX_NDIM];      // axis 0 is the innermost
    int64_t stride[YOKE_MAX_NDIM][N];  // bytes
    char *data[N];
    int64_t numel;
};

// Whether axis a should be inside axis b: the first operand whose two strides differ decides.
template <int N>
inline bool is_inner(const int64_t (&a)[N], const int64_t (&b)[N])
{
    for (int i = 0; i < N; i++) {
        int64_t size_a = a[i] < 0 ? -a[i] : a[i], size_b = b[i] < 0 ? -b[i] : b[i];
        if (size_a && size_b && size_a != size_b) return size_a < size_b;
    }
    return false;
}

// Whether axis `outer` continues where the innermost `inner` ends, for every operand.
template <int N>
inline bool continues(const Loop<N> &loop, int inner, int outer)
{
    for (int i = 0; i < N; i++)
        if (loop.stride[outer][i] != loop.stride[inner][i] * loop.shape[inner]) return false;
    return true;
}

template <int N>
inline void sort_axes(Loop<N> &loop)
{
    for (int i = 1; i < loop.ndim; i++) {
        for (int j = i; j > 0 && is_inner<N>(loop.stride[j], loop.stride[j - 1]); j--) {
            int64_t length = loop.shape[j];
            loop.shape[j] = loop.shape[j - 1];
            loop.shape[j - 1] = length;
            for (int k = 0; k < N; k++) {
                int64_t stride = loop.stride[j][k];
                loop.stride[j][k] = loop.stride[j - 1][k];
                loop.stride[j - 1][k] = stride;
            }
        }
    }
}

template <int N>
inline void join_axes(Loop<N> &loop)
{
    int last = 0;
    for (int axis = 1; axis < loop.ndim; axis++) {
        if (continues<N>(loop, last, axis)) {
            loop.shape[last] *= loop.shape[axis];
            continue;
        }
        last++;
        loop.shape[last] = loop.shape[axis];
        for (int k = 0; k < N; k++) loop.stride[last][k] = loop.stride[axis][k];
    }
    loop.ndim = last + 1;
}

// Axes are added in any order, each with the strides (in bytes) of every operand; finish_loop makes them a loop.
template <int N>
inline void add_axis(Loop<N> &loop, int64_t length, const int64_t (&strides)[N])
{
    if (length == 1) return;
    loop.shape[loop.ndim] = length;
    for (int i = 0; i < N; i++) loop.stride[loop.ndim][i] = strides[i];
    loop.ndim++;
    loop.numel *= length;
}

template <int N>
inline void finish_loop(Loop<N> &loop)
{
    if (loop.ndim == 0) {
        loop.ndim = 1;
        loop.shape[0] = 1;
        for (int i = 0; i < N; i++) loop.stride[0][i] = 0;
    } else if (loop.ndim > 1) {
        sort_axes<N>(loop);
        join_axes<N>(loop);
    }
}

// The step in bytes of an operand along `axis` of a shape with `ndim` axes to which it broadcasts.
inline int64_t step_of(const yoke_operand &operand, int axis, int ndim)
{
    int own = axis - (ndim - operand.ndim);
    if (own < 0 || operand.shape[own] == 1) return 0;
    return operand.strides[own] * dtype_size(operand.dtype);
}

// operands[0] gives the shape; the others broadcast to it.
template <int N>
inline void plan_loop(Loop<N> &loop, const yoke_operand *const (&operands)[N])
{
    const yoke_operand &first = *operands[0];
    loop.ndim = 0;
    loop.numel = 1;
    for (int i = 0; i < N; i++) loop.data[i] = data_of<char>(*operands[i]);
    for (int axis = first.ndim - 1; axis >= 0; axis--) {
        int64_t strides[N];
        for (int i = 0; i < N; i++) strides[i] = step_of(*operands[i], axis, first.ndim);
        add_axis<N>(loop, first.shape[axis], strides);
    }
    finish_loop<N>(loop);
}

// A place in a loop: how far along each axis, and the pointers there.
template <int N>
struct Cursor {
    int64_t at[YOKE_MAX_NDIM];
    char *data[N];

    Cursor(const Loop<N> &loop, int64_t index, int first_axis = 0)
    {
        for (int i = 0; i < N; i++) data[i] = loop.data[i];
        for (int axis = first_axis; axis < loop.ndim; axis++) {
            at[axis] = index % loop.shape[axis];
            index /= loop.shape[axis];
            for (int i = 0; i < N; i++) data[i] += at[axis] * loop.stride[axis][i];
        }
    }

    void advance(const Loop<N> &loop, int axis, int64_t steps)
    {
        at[axis] += steps;
        for (int i = 0; i < N; i++) data[i] += steps * loop.stride[axis][i];
        while (at[axis] == loop.shape[axis] && axis + 1 < loop.ndim) {
            for (int i = 0; i < N; i++)
                data[i] += loop.stride[axis + 1][i] - at[axis] * loop.stride[axis][i];
            at[axis] = 0;
            at[++axis]++;
        }
    }
};

// Elements [begin, end) of the loop.
template <int N, class F>
inline void walk(const Loop<N> &loop, int64_t begin, int64_t end, const F &inner)
{
    if (begin >= end) return;
    if (loop.ndim == 1) {
        char *data[N];
        for (int i = 0; i < N; i++) data[i] = loop.data[i] + begin * loop.stride[0][i];
        return inner(data, loop.stride[0], end - begin);
    }
    Cursor<N> cursor(loop, begin);
    while (begin < end) {
        int64_t n = min(loop.shape[0] - cursor.at[0], end - begin);
        inner(cursor.data, loop.stride[0], n);
        cursor.advance(loop, 0, n);
        begin += n;
    }
}

// ---- elementwise maps: f takes stored values and gives one -----------------------------------------------------
// map_run has f by value: what it holds is then known not to change as results are stored.

template <class Out, class A, class F>
inline void map_run(F f, char *const *data, const int64_t *stride, int64_t n)
{
    Out *out = (Out *)data[0];
    const A *a = (const A *)data[1];
    if (stride[0] == sizeof(Out) && stride[1] == sizeof(A)) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++) out[i] = f(a[i]);
    } else if (stride[0] == sizeof(Out) && stride[1] == 0) {
        Out value = f(*a);
#pragma omp simd
        for (int64_t i = 0; i < n; i++) out[i] = value;
    } else {
        for (int64_t i = 0; i < n; i++)
            *(Out *)(data[0] + i * stride[0]) = f(*(const A *)(data[1] + i * stride[1]));
    }
}

template <class Out, class A, class B, class F>
inline void map_run(F f, char *const *data, const int64_t *stride, int64_t n)
{
    Out *out = (Out *)data[0];
    const A *a = (const A *)data[1];
    const B *b = (const B *)data[2];
    if (stride[0] == sizeof(Out) && stride[1] == sizeof(A) && stride[2] == sizeof(B)) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++) out[i] = f(a[i], b[i]);
    } else if (stride[0] == sizeof(Out) && stride[1] == sizeof(A) && stride[2] == 0) {
        B right = *b;
#pragma omp simd
        for (int64_t i = 0; i < n; i++) out[i] = f(a[i], right);
    } else if (stride[0] == sizeof(Out) && stride[1] == 0 && stride[2] == sizeof(B)) {
        A left = *a;
#pragma omp simd
        for (int64_t i = 0; i < n; i++) out[i] = f(left, b[i]);
    } else {
        for (int64_t i = 0; i < n; i++)
            *(Out *)(data[0] + i * stride[0]) =
                f(*(const A *)(data[1] + i * stride[1]), *(const B *)(data[2] + i * stride[2]));
    }
}

// Whether an operand is one run beside n elements, or one value for all of them: what small launches mostly are.
inline bool is_simple(const yoke_operand &operand, int64_t n)
{
    return operand.numel == 1 || (operand.numel == n && is_contiguous(operand));
}

template <class Out, class A, class F>
inline yoke_status map(const yoke_operand &out, const yoke_operand &a, const F &f,
                       int64_t grain = kGrain)
{
    int64_t n = out.numel;
    if (n < 2 * grain && is_contiguous(out) && is_simple(a, n)) {
        char *data[2] = {data_of<char>(out), data_of<char>(a)};
        const int64_t stride[2] = {sizeof(Out), a.numel == n ? (int64_t)sizeof(A) : 0};
        map_run<Out, A>(f, data, stride, n);
        return YOKE_OK;
    }
    Loop<2> loop;
    plan_loop<2>(loop, {&out, &a});
    parallel_range(n, grain, [&](int64_t begin, int64_t end) {
        walk<2>(loop, begin, end, [&](char *const *data, const int64_t *stride, int64_t run) {
            map_run<Out, A>(f, data, stride, run);
        });
    });
    return YOKE_OK;
}

template <class Out, class A, class B, class F>
inline yoke_status map(const yoke_operand &out, const yoke_operand &a, const yoke_operand &b,
                       const F &f, int64_t grain = kGrain)
{
    int64_t n = out.numel;
    if (n < 2 * grain && is_contiguous(out) && is_simple(a, n) && is_simple(b, n)) {
        char *data[3] = {data_of<char>(out), data_of<char>(a), data_of<char>(b)};
        const int64_t stride[3] = {sizeof(Out), a.numel == n ? (int64_t)sizeof(A) : 0,
                                   b.numel == n ? (int64_t)sizeof(B) : 0};
        map_run<Out, A, B>(f, data, stride, n);
        return YOKE_OK;
    }
    Loop<3> loop;
    plan_loop<3>(loop, {&out, &a, &b});
    parallel_range(n, grain, [&](int64_t begin, int64_t end) {
        walk<3>(loop, begin, end, [&](char *const *data, const int64_t *stride, int64_t run) {
            map_run<Out, A, B>(f, data, stride, run);
        });
    });
    return YOKE_OK;
}

// A functor of kernels/common as one over stored values of T. Always inlined (YOKE_HD), as every functor of a map must
// be: a loop with a call in it does not become vectors.
template <class T, class F>
struct Stored {
    F f;
    YOKE_HD T operator()(T a) const { return store<T>(f(load<T>(a))); }
    YOKE_HD T operator()(T a, T b) const { return store<T>(f(load<T>(a), load<T>(b))); }
};

template <class To, class From>
struct Converted {
    YOKE_HD To operator()(From x) const { return convert<To>(x); }
};

YOKE_SIMD_END
