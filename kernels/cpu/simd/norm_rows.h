// Rows over the last axes of tensors of any strides, for layer_norm and rms_norm.
//
// Contract
//  * Rows are numbered row-major by shape, whatever the strides. So are the elements of a row.
//  * A dense row of the computing type is used in place; other rows pass through a buffer.
#pragma once

#include <cstdlib>

#include "kernels/cpu/simd/fetch.h"
#include "kernels/cpu/simd/halves.h"
#include "kernels/cpu/simd/iterate.h"
#include "kernels/cpu/simd/share.h"

YOKE_SIMD_BEGIN

// Rows that pass through the buffer together where neighbours in memory belong to different rows.
constexpr int kNormRows = 16;
// Elements of short rows taken together: with a weight and a bias, they fit the first-level cache.
constexpr int64_t kNormBlockLength = 2048;

// N operands of one shape, each with its own dtype. The last `written` operands are written. Rows are over the axes
// from `axis` on.
template <int N>
struct NormRows {
    Loop<N> outer;
    Loop<N> inner;
    int64_t count, length;
    yoke_dtype dtype[N];
    int written = 1;

    NormRows(const yoke_operand *const (&operands)[N], int axis)
    {
        plan_ordered<N>(outer, operands, 0, axis);
        plan_ordered<N>(inner, operands, axis, operands[0]->ndim);
        count = outer.numel;
        length = inner.numel;
        for (int i = 0; i < N; i++) dtype[i] = operands[i]->dtype;
    }

    bool is_dense(int i) const
    {
        return inner.ndim == 1 && (inner.stride[0][i] == dtype_size(dtype[i]) || length == 1);
    }
    // Returns whether an operand's rows are read or written where they lie.
    template <class C>
    bool is_in_place(int i) const
    {
        return dtype[i] == kernels::dtype_of<C> && is_dense(i);
    }
    // Returns whether the last operand's rows are written where they lie, and do not fit the caches.
    template <class C>
    bool is_far_as() const
    {
        return written && is_in_place<C>(N - 1) && is_far(count * length * (int64_t)sizeof(C));
    }
};

// Calls f(place in the dense rows, element) for operand `i` of `count` rows that do not lie densely. If rows are
// neighbours, the order is the order of memory.
template <int N, class F>
inline void walk_norm_rows(const NormRows<N> &rows, int i, char *const *at, int count, const F &f)
{
    Loop<N> inner = rows.inner;
    inner.data[i] = at[0];
    int64_t done = 0;
    walk<N>(inner, 0, rows.length, [&](char *const *data, const int64_t *stride, int64_t run) {
        int64_t offset = data[i] - at[0];
        for (int64_t j = 0; j < run; j++)
            for (int r = 0; r < count; r++)
                f(r * rows.length + done + j, at[r] + offset + j * stride[i]);
        done += run;
    });
}

// Copies the elements of operand `i` of `count` rows to dense rows of C.
template <class C, int N>
inline void gather_norm_rows(const NormRows<N> &rows, int i, char *const *at, int count, C *to)
{
    int64_t n = rows.length;
    if (rows.is_dense(i)) {
        for (int r = 0; r < count; r++) take_run(rows.dtype[i], at[r], 0, n, to + r * n);
        return;
    }
    for_stored<C>(rows.dtype[i], [&]<class T>() {
        walk_norm_rows(rows, i, at, count, [=](int64_t place, const char *element) {
            to[place] = load<T>(*(const T *)element);
        });
    });
}

template <class C, int N>
inline void scatter_norm_rows(const NormRows<N> &rows, int i, char *const *at, int count,
                              const C *from)
{
    int64_t n = rows.length;
    if (rows.is_dense(i)) {
        for (int r = 0; r < count; r++) give_run(rows.dtype[i], from + r * n, n, at[r], 0);
        return;
    }
    for_stored<C>(rows.dtype[i], [&]<class T>() {
        walk_norm_rows(rows, i, at, count, [=](int64_t place, char *element) {
            *(T *)element = store<T>(from[place]);
        });
    });
}

// Dense rows of C, some at a time: in[i][r] is row r of operand i.
template <int N, class C>
struct RowBlock {
    int64_t first;  // number of the first
    int count;
    C *in[N][kNormRows];
};

// Returns the number of rows taken at a time. Short rows go together: while the sums of a row are pending, other rows
// use the time.
template <int N>
inline int rows_at_once(const NormRows<N> &rows)
{
    for (int i = 0; i < N; i++)
        if (!rows.is_dense(i)) return kNormRows;
    return (int)min(kNormRows, max(1, kNormBlockLength / max(1, rows.length)));
}

// Calls f(block) for rows [begin, end). f fills the rows of the written operands. Returns false if there is no memory
// for the buffer.
template <class C, int N, class F>
inline bool run_norm_rows(const NormRows<N> &rows, int64_t begin, int64_t end, const F &f)
{
    int64_t n = rows.length;
    const int at_once = rows_at_once(rows), read = N - rows.written;
    bool in_place[N], buffered = false;
    for (int i = 0; i < N; i++) {
        in_place[i] = rows.template is_in_place<C>(i);
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
        for (int i = 0; i < read; i++)
            if (!in_place[i]) gather_norm_rows(rows, i, at[i], block.count, block.in[i][0]);
        f(block);
        for (int i = read; i < N; i++)
            if (!in_place[i]) scatter_norm_rows<C>(rows, i, at[i], block.count, block.in[i][0]);
        begin += block.count;
    }
    free(buffer);
    return true;
}

YOKE_SIMD_END
