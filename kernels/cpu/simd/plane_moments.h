// Mean and squared deviations of every plane, of finite values always finite.
//
// Contract: a few values at a time in the computing type, states joined in double, in which no square of a float
// overflows.
#pragma once

#include "kernels/common/norm.h"
#include "kernels/cpu/simd/channels.h"

YOKE_SIMD_BEGIN

using MomentsState = kernels::Moments<double>;

// Moments of n values; in double, where `found` is in doubt. at(i) is value i.
template <class C, class At>
inline MomentsState finished(kernels::Moments<C> found, int64_t n, const At &at)
{
    MomentsState state{(double)found.count, (double)found.mean, (double)found.squares};
    if (!kernels::is_doubtful(found.mean, found.variance())) return state;
    double sum = 0, rest = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)at(i);
    for (int64_t i = 0; i < n; i++) rest += (double)at(i) - sum / (double)n;
    const double mean = sum / (double)n + rest / (double)n;
    for (int64_t i = 0; i < n; i++) squares += ((double)at(i) - mean) * ((double)at(i) - mean);
    return {(double)n, mean, squares};
}

template <class C>
inline MomentsState plane_moments(const C *const (&in)[1], int64_t n)
{
    const C *x = in[0];
    return finished(kernels::Moments<C>::of(x, n), n, [=](int64_t i) { return x[i]; });
}

// The moments of each of `columns` columns over `count` rows, in two passes over a block that stays in a near cache.
// The second corrects the mean by that of the deviations from it, which the plain sum of the first may owe it.
template <class C>
inline void column_moments(const C *const (&in)[1][kPlaneRows], int64_t count, int64_t columns,
                           MomentsState *states)
{
    C mean[kPlaneColumns] = {}, squares[kPlaneColumns] = {}, rest[kPlaneColumns] = {};
    for (int64_t r = 0; r < count; r++) {
        const C *x = in[0][r];
#pragma omp simd
        for (int64_t j = 0; j < columns; j++) mean[j] += x[j];
    }
    for (int64_t j = 0; j < columns; j++) mean[j] /= (C)count;
    for (int64_t r = 0; r < count; r++) {
        const C *x = in[0][r];
#pragma omp simd
        for (int64_t j = 0; j < columns; j++) {
            C deviation = x[j] - mean[j];
            rest[j] += deviation;
            squares[j] += deviation * deviation;
        }
    }
    for (int64_t j = 0; j < columns; j++) {
        const kernels::Moments<C> found{(C)count, mean[j] + rest[j] / (C)count,
                                        squares[j] - rest[j] * rest[j] / (C)count};
        states[j] = finished(found, count, [&](int64_t r) { return in[0][r][j]; });
    }
}

template <class C>
inline yoke_status all_moments(const yoke_launch *launch, const Planes<1> &planes,
                               MomentsState *partial, MomentsState *out)
{
    return sum_planes<C>(
        launch, planes, Loaded<1>(), partial, out, [](int64_t) { return plane_moments<C>; },
        [](int64_t) { return column_moments<C>; });
}

YOKE_SIMD_END
