// Mean and squared deviations of every plane, of finite values always finite.
//
// Contract: a few values at a time in the computing type, states joined in double (kernels/common/moments.h).
#pragma once

#include "kernels/common/channel_numbers.h"
#include "kernels/cpu/simd/channels.h"

YOKE_SIMD_BEGIN

using kernels::PlaneState;

template <class C>
inline bool is_doubtful(const kernels::RowMoments<C> &found)
{
    return ((double)found.squares < kernels::Moments<C>::kLeastSquares) |
           kernels::is_doubtful(found.mean, found.variance());
}

// Returns the state of moments that are not in doubt.
template <class C>
inline PlaneState<C> plain_state(const kernels::RowMoments<C> &found)
{
    return {kernels::Moments<C>::state_of((double)found.count, (double)found.mean,
                                          (double)found.squares, 1)};
}

template <class C>
inline PlaneState<C> plane_moments(const C *const (&in)[1], int64_t n)
{
    const C *x = in[0];
    const auto found = kernels::RowMoments<C>::of(x, n);
    if (is_doubtful(found)) [[unlikely]]
        return {kernels::Moments<C>().careful(n, [=](int64_t i) { return x[i]; })};
    return plain_state(found);
}

// Computes the mean and squared deviations of kCount vectors of columns from column j on. The second pass adds the
// mean of the deviations to the mean, because the plain sum of the first pass is rounded.
template <class V, int kCount, class T, class C>
inline void vector_moments(const T *const *rows, int64_t count, int64_t j, C *mean, C *squares)
{
    constexpr int64_t kStep = sizeof(V) / sizeof(C);
    V at[kCount] = {}, rest[kCount] = {}, square[kCount] = {};
    for (int64_t r = 0; r < count; r++)
#pragma GCC unroll 4
        for (int k = 0; k < kCount; k++) at[k] += load_vector<V>(rows[r] + j + k * kStep);
#pragma GCC unroll 4
    for (int k = 0; k < kCount; k++) at[k] /= (C)count;
    for (int64_t r = 0; r < count; r++)
#pragma GCC unroll 4
        for (int k = 0; k < kCount; k++) {
            const V deviation = load_vector<V>(rows[r] + j + k * kStep) - at[k];
            rest[k] += deviation;
            square[k] += deviation * deviation;
        }
#pragma GCC unroll 4
    for (int k = 0; k < kCount; k++) {
        *(V *)(mean + j + k * kStep) = at[k] + rest[k] / (C)count;
        *(V *)(squares + j + k * kStep) = square[k] - rest[k] * rest[k] / (C)count;
    }
}

// Computes doubtful states of columns again, with care. A pass over all columns finds columns with a single value.
template <class C, class T>
[[gnu::noinline]] void mend_columns(const T *const *rows, int64_t count, int64_t columns,
                                    const C *mean, const C *squares, PlaneState<C> *states)
{
    using Moments = kernels::Moments<C>;
    kernels::flag_type<C> differs[kPlaneColumns] = {};
    for (int64_t r = 1; r < count; r++)
#pragma omp simd
        for (int64_t j = 0; j < columns; j++)
            differs[j] |= !(convert<C>(rows[r][j]) == convert<C>(rows[0][j]));
    for (int64_t j = 0; j < columns; j++) {
        if (!is_doubtful(kernels::RowMoments<C>{(C)count, mean[j], squares[j]})) continue;
        const C first = convert<C>(rows[0][j]);
        if (!differs[j] && first - first == 0)
            states[j] = {Moments::of_constant(count, first)};
        else
            states[j] = {
                Moments().careful(count, [=](int64_t r) { return convert<C>(rows[r][j]); })};
    }
}

// Computes the moments of each of `columns` columns over `count` rows, in two passes over a block that stays in a
// near cache.
template <class C, class T>
inline void column_moments(const T *const (&in)[1][kPlaneRows], int64_t count, int64_t columns,
                           PlaneState<C> *states)
{
    C mean[kPlaneColumns], squares[kPlaneColumns];
    each_vectors<C>(columns, [&]<class V, int kCount>(int64_t j) {
        vector_moments<V, kCount>(in[0], count, j, mean, squares);
    });
    kernels::flag_type<C> doubts = 0;
#pragma omp simd reduction(| : doubts)
    for (int64_t j = 0; j < columns; j++) {
        const kernels::RowMoments<C> found{(C)count, mean[j], squares[j]};
        states[j] = plain_state(found);
        doubts |= is_doubtful(found);
    }
    if (doubts) [[unlikely]]
        mend_columns<C>(in[0], count, columns, mean, squares, states);
}

template <class C>
inline yoke_status all_moments(const yoke_launch *launch, const Planes<1> &planes,
                               PlaneState<C> *partial, PlaneState<C> *out)
{
    return sum_planes<C>(
        launch, planes, Loaded<1>(), partial, out, [](int64_t) { return plane_moments<C>; },
        [](int64_t) {
            return [](const auto &in, int64_t count, int64_t columns, PlaneState<C> *states) {
                column_moments<C>(in, count, columns, states);
            };
        });
}

YOKE_SIMD_END
