// Rows along one axis of any tensor, for softmax and cross entropy: each row is a dense run of the computing type,
// for any dtype and strides.
#pragma once

#include <cstdlib>

#include "kernels/common/axis_rows.h"
#include "kernels/common/loss.h"
#include "kernels/cpu/simd/fetch.h"
#include "kernels/cpu/simd/iterate.h"
#include "kernels/cpu/simd/run.h"

YOKE_SIMD_BEGIN

constexpr int64_t kSoftmaxGrain = 4096;
constexpr int64_t kRowsAtOnce =
    16;  // rows gathered together where neighbours in memory belong to different rows

// N operands, of which the last is written; all have the same shape.
template <int N>
using Rows = kernels::AxisRows<N>;

// Gathers `count` rows, each `length` elements of T, into dense rows of C.
template <class C, class T>
inline void gather_rows(C *to, const char *const *from, int64_t count, int64_t step, int64_t length)
{
    if (step == sizeof(T)) {
        for (int64_t r = 0; r < count; r++)
            convert_run((const T *)from[r], length, to + r * length);
        return;
    }
    for (int64_t i = 0; i < length; i++)
        for (int64_t r = 0; r < count; r++)
            to[r * length + i] = load<T>(*(const T *)(from[r] + i * step));
}

template <class T, class C>
inline void scatter_rows(char *const *to, const C *from, int64_t count, int64_t step,
                         int64_t length)
{
    if (step == sizeof(T)) {
        for (int64_t r = 0; r < count; r++) convert_run(from + r * length, length, (T *)to[r]);
        return;
    }
    for (int64_t i = 0; i < length; i++)
        for (int64_t r = 0; r < count; r++)
            *(T *)(to[r] + i * step) = store<T>(from[r * length + i]);
}

// Calls f(in[N - 1] rows, out row, length, far) for every row, in the computing type. `far` is true if the tensor
// does not fit the caches. Dense rows of this type are used in place; other rows pass through a buffer, with `far`
// false. Returns YOKE_E_OOM if memory for a buffer is missing.
template <class T, int N, class F>
inline yoke_status for_each_row(const yoke_launch *launch, const Rows<N> &rows, const F &f)
{
    using C = compute_type<T>;
    int64_t n = rows.length, count = rows.outer.numel;
    if (n == 0 || count == 0) return YOKE_OK;
    bool dense = std::is_same_v<T, C>, far = is_far(n * count * (int64_t)sizeof(T));
    for (int i = 0; i < N; i++) dense &= n == 1 || rows.step[i] == (int64_t)sizeof(T);
    int64_t grain = max(1, kSoftmaxGrain / n);
    if (dense) {
        parallel_range(count, grain, [&](int64_t begin, int64_t end) {
            Cursor<N> cursor(rows.outer, begin);
            for (; begin < end; begin++, cursor.advance(rows.outer, 0, 1)) {
                const C *in[N];
                for (int i = 0; i < N; i++) in[i] = (const C *)cursor.data[i];
                f(in, (C *)cursor.data[N - 1], n, far);
            }
        });
        return YOKE_OK;
    }
    int failures = 0;
    parallel_range(count, max(grain, kRowsAtOnce), [&](int64_t begin, int64_t end) {
        C *buffer = (C *)malloc((size_t)(N * kRowsAtOnce * n) * sizeof(C));
        if (!buffer) {
            __atomic_store_n(&failures, 1, __ATOMIC_RELAXED);
            return;
        }
        Cursor<N> cursor(rows.outer, begin);
        while (begin < end) {
            int64_t taken = 0;
            char *at[N][kRowsAtOnce];
            for (; taken < kRowsAtOnce && begin < end;
                 taken++, begin++, cursor.advance(rows.outer, 0, 1))
                for (int i = 0; i < N; i++) at[i][taken] = cursor.data[i];
            for (int i = 0; i < N - 1; i++)
                gather_rows<C, T>(buffer + i * kRowsAtOnce * n, at[i], taken, rows.step[i], n);
            C *out = buffer + (N - 1) * kRowsAtOnce * n;
            for (int64_t r = 0; r < taken; r++) {
                const C *in[N];
                for (int i = 0; i < N; i++) in[i] = buffer + (i * kRowsAtOnce + r) * n;
                f(in, out + r * n, n, false);
            }
            scatter_rows<T>(at[N - 1], out, taken, rows.step[N - 1], n);
        }
        free(buffer);
    });
    if (failures)
        return fail(YOKE_E_OOM, "%s: no memory for rows of %lld elements", op_name(launch->op),
                    (long long)n);
    return YOKE_OK;
}

YOKE_SIMD_END
