// Rows over the last axes of tensors of any strides, as layer_norm and rms_norm take them.
//
// Contract
//  * Rows are numbered, and elements of a row ordered, row-major by shape, whatever the strides.
//  * A row that lies densely in the computing type is used where it is; others pass through a buffer.
#pragma once

#include <cstdlib>

#include "kernels/cpu/simd/fetch.h"
#include "kernels/cpu/simd/iterate.h"
#include "kernels/cpu/simd/run.h"
#include "kernels/cpu/simd/share.h"

YOKE_SIMD_BEGIN

// Rows that pass through the buffer together where neighbours in memory belong to different rows.
constexpr int kNormRows = 16;
// Elements of short rows that are taken together: with a weight and a bias they stay in the first-level cache.
constexpr int64_t kNormBlockLength = 2048;

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

    // Whether the last operand's rows are written where they lie, and are many.
    template <class T>
    bool is_far_as() const
    {
        return written && std::is_same_v<T, compute_type<T>> && is_dense(N - 1, sizeof(T)) &&
               is_far(count * length * (int64_t)sizeof(T));
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
        for (int r = 0; r < count; r++) convert_run((const T *)at[r], n, to + r * n);
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
        for (int r = 0; r < count; r++) convert_run(from + r * n, n, (T *)at[r]);
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

// Dense rows of C, some at a time: in[i][r] is row r of operand i.
template <int N, class C>
struct RowBlock {
    int64_t first;  // number of the first
    int count;
    C *in[N][kNormRows];
};

// How many rows are taken at a time. Short ones go together, since what one row waits for (its sums) another can fill.
template <class T, int N>
inline int rows_at_once(const NormRows<N> &rows)
{
    for (int i = 0; i < N; i++)
        if (!rows.is_dense(i, sizeof(T))) return kNormRows;
    return (int)min(kNormRows, max(1, kNormBlockLength / max(1, rows.length)));
}

// f(block) for rows [begin, end), which fills the last operand's rows. False: no memory for the buffer.
template <class T, int N, class F>
inline bool run_norm_rows(const NormRows<N> &rows, int64_t begin, int64_t end, const F &f)
{
    using C = compute_type<T>;
    int64_t n = rows.length;
    int at_once = rows_at_once<T>(rows);
    bool in_place[N], buffered = false;
    for (int i = 0; i < N; i++) {
        in_place[i] = rows.is_dense(i, sizeof(T)) && std::is_same_v<T, C>;
        buffered |= !in_place[i];
    }
    C *buffer = nullptr;
    if (buffered && !(buffer = (C *)malloc((size_t)(N * at_once * n + 1) * sizeof(C))))
        return false;
    Cursor<N> cursor(rows.outer, begin);
    while (begin < end) {
        RowBlock<N, C> block{begin, (int)min(at_once, end - begin), {}};
        char *at[N][kNormRows] = {};
        for (int r = 0; r < block.count; r++, cursor.advance(rows.outer, 0, 1))
            for (int i = 0; i < N; i++) {
                at[i][r] = cursor.data[i];
                block.in[i][r] =
                    in_place[i] ? (C *)at[i][r] : buffer + ((int64_t)i * at_once + r) * n;
            }
        for (int i = 0; i < N - (int)rows.written; i++)
            if (!in_place[i])
                gather_norm_rows<T, C, N>(rows, i, at[i], block.count, block.in[i][0]);
        f(block);
        if (rows.written && !in_place[N - 1])
            scatter_norm_rows<T, C, N>(rows, N - 1, at[N - 1], block.count, block.in[N - 1][0]);
        begin += block.count;
    }
    free(buffer);
    return true;
}

YOKE_SIMD_END
