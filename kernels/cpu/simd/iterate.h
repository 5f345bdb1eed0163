// The one way through strided tensors: N operands walked together in the shape of the first.
//
// Contract
//  * The loop is that of kernels/common/loop.h.
//  * walk calls inner(pointers, strides, n) for runs of the innermost axis; strides are in bytes, may be negative.
//  * Any range of the walk may be run by any thread: element i of it is the same element every time.
#pragma once

#include "kernels/common/loop.h"
#include "kernels/cpu/simd/fetch.h"

YOKE_SIMD_BEGIN

using kernels::add_axis;
using kernels::finish_loop;
using kernels::join_axes;
using kernels::Loop;
using kernels::plan_loop;
using kernels::plan_ordered;
using kernels::step_of;

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

// Dense runs. A long one goes by steps of a few vectors, each of which fetches what a later step needs.
template <class Out, class F, class... A>
inline void map_dense(const F &f, Out *out, int64_t n, const A *...in)
{
    constexpr int64_t kStep = 64;
    int64_t i = 0;
    if (is_float<Out> && is_far(n * (int64_t)sizeof(Out)))
        for (; i + kStep <= n; i += kStep) {
            fetch_to_write((char *)(out + i) + kFetchAhead, kStep * (int64_t)sizeof(Out));
            (fetch_to_read((const char *)(in + i) + kFetchAhead, kStep * (int64_t)sizeof(A)), ...);
#pragma omp simd
            for (int64_t k = i; k < i + kStep; k++) out[k] = f(in[k]...);
        }
#pragma omp simd
    for (int64_t k = i; k < n; k++) out[k] = f(in[k]...);
}

template <class Out, class A, class F>
inline void map_run(F f, char *const *data, const int64_t *stride, int64_t n)
{
    Out *out = (Out *)data[0];
    const A *a = (const A *)data[1];
    if (stride[0] == sizeof(Out) && stride[1] == sizeof(A)) {
        map_dense(f, out, n, a);
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
        map_dense(f, out, n, a, b);
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
