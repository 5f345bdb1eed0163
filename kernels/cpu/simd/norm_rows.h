// Rows over the last axes of tensors of any strides, as layer_norm and rms_norm take them.
//
// Contract
//  * Rows are numbered, and elements of a row ordered, row-major by shape, whatever the strides.
//  * A row that lies densely in the computing type is used where it is; others pass through a buffer.
#pragma once

#include <cstdlib>

#include "kernels/common/span.h"
#include "kernels/cpu/simd/iterate.h"
#include "kernels/cpu/simd/share.h"
#include "kernels/cpu/simd/stream.h"

YOKE_SIMD_BEGIN

// Rows that pass through the buffer together where neighbours in memory belong to different rows.
constexpr int kNormRows = 16;

// A loop over axes [first, last) in row-major order.
template <int N>
inline void plan_ordered(Loop<N> &loop, const yoke_operand *const (&operands)[N], int first,
                         int last)
{
    int ndim = operands[0]->ndim;
    loop.ndim = 0;
    loop.numel = 1;
    for (int i = 0; i < N; i++) loop.data[i] = data_of<char>(*operands[i]);
    for (int axis = last - 1; axis >= first; axis--) {
        int64_t strides[N];
        for (int i = 0; i < N; i++) strides[i] = step_of(*operands[i], axis, ndim);
        add_axis<N>(loop, operands[0]->shape[axis], strides);
    }
    if (loop.ndim == 0) finish_loop<N>(loop);
    join_axes<N>(loop);
}

// N operands of one shape, of which the last is written (if any is); rows are over the axes from `axis` on.
template <int N>
struct NormRows {
    Loop<N> outer;
    Loop<N> inner;
    int64_t count, length;
    bool written = true;

    NormRows(const yoke_operand *const (&operands)[N], int axis)
    {
        plan_ordered<N>(outer, operands, 0, axis);
        plan_ordered<N>(inner, operands, axis, operands[0]->ndim);
        count = outer.numel;
        length = inner.numel;
    }

    bool is_dense(int i, int64_t size) const
    {
        return inner.ndim == 1 && (inner.stride[0][i] == size || length == 1);
    }
};

// The elements of operand `i` of `count` rows into dense rows of C.
template <class T, class C, int N>
inline void gather_norm_rows(const NormRows<N> &rows, int i, char *const *at, int count, C *to)
{
    int64_t n = rows.length;
    if (rows.is_dense(i, sizeof(T))) {
        for (int r = 0; r < count; r++) kernels::convert_span((const T *)at[r], n, to + r * n);
        return;
    }
    Loop<N> inner = rows.inner;
    inner.data[i] = at[0];
    int64_t done = 0;
    walk<N>(inner, 0, n, [&](char *const *data, const int64_t *stride, int64_t run) {
        int64_t offset = data[i] - at[0];
        for (int64_t j = 0; j < run; j++)
            for (int r = 0; r < count; r++)
                to[r * n + done + j] = load<T>(*(const T *)(at[r] + offset + j * stride[i]));
        done += run;
    });
}

template <class T, class C, int N>
inline void scatter_norm_rows(const NormRows<N> &rows, int i, char *const *at, int count,
                              const C *from)
{
    int64_t n = rows.length;
    if (rows.is_dense(i, sizeof(T))) {
        for (int r = 0; r < count; r++) kernels::convert_span(from + r * n, n, (T *)at[r]);
        return;
    }
    Loop<N> inner = rows.inner;
    inner.data[i] = at[0];
    int64_t done = 0;
    walk<N>(inner, 0, n, [&](char *const *data, const int64_t *stride, int64_t run) {
        int64_t offset = data[i] - at[0];
        for (int64_t j = 0; j < run; j++)
            for (int r = 0; r < count; r++)
                *(T *)(at[r] + offset + j * stride[i]) = store<T>(from[r * n + done + j]);
        done += run;
    });
}

// f(row number, in[N - 1], out) for rows [begin, end), each operand a dense row of C. False: no memory for the buffer.
template <class T, int N, class F>
inline bool run_norm_rows(const NormRows<N> &rows, int64_t begin, int64_t end, bool streamed,
                          const F &f)
{
    using C = compute_type<T>;
    int64_t n = rows.length;
    bool in_place[N], buffered = false;
    int block = 1;
    for (int i = 0; i < N; i++) block = rows.is_dense(i, sizeof(T)) ? block : kNormRows;
    streamed &= std::is_same_v<T, C> && block == 1 && rows.written;
    for (int i = 0; i < N; i++) {
        in_place[i] = rows.is_dense(i, sizeof(T)) && std::is_same_v<T, C>;
        if (i == N - 1 && streamed) in_place[i] = false;
        buffered |= !in_place[i];
    }
    C *buffer = nullptr;
    if (buffered && !(buffer = (C *)malloc((size_t)(N * block * n) * sizeof(C) + 64))) return false;
    Cursor<N> cursor(rows.outer, begin);
    while (begin < end) {
        int taken = 0;
        char *at[N][kNormRows] = {};
        for (; taken < block && begin + taken < end; taken++, cursor.advance(rows.outer, 0, 1))
            for (int i = 0; i < N; i++) at[i][taken] = cursor.data[i];
        for (int i = 0; i < N - 1; i++)
            if (!in_place[i])
                gather_norm_rows<T, C, N>(rows, i, at[i], taken, buffer + i * block * n);
        C *made = buffer + (N - 1) * block * n;
        for (int r = 0; r < taken; r++) {
            const C *in[N];
            for (int i = 0; i < N; i++)
                in[i] = in_place[i] ? (const C *)at[i][r] : buffer + (i * block + r) * n;
            f(begin + r, in, in_place[N - 1] ? (C *)at[N - 1][r] : made + r * n);
        }
        if (streamed)
            stream_copy(at[N - 1][0], made, n * (int64_t)sizeof(T));
        else if (rows.written && !in_place[N - 1])
            scatter_norm_rows<T, C, N>(rows, N - 1, at[N - 1], taken, made);
        begin += taken;
    }
    free(buffer);
    if (streamed) stream_end();
    return true;
}

YOKE_SIMD_END
