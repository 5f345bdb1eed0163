// Mean and squared deviations of every plane, of finite values always finite.
//
// Contract: a few values at a time in the computing type, states joined in double (kernels/common/moments.h).
#pragma once

#include "kernels/common/channel_numbers.h"
#include "kernels/cpu/simd/channels.h"

YOKE_SIMD_BEGIN

using kernels::PlaneState;

// Moments of n values; with care, where `found` is in doubt. at(i) is value i. Values that are all 0 are not.
template <class C, class At>
inline PlaneState<C> finished(kernels::RowMoments<C> found, int64_t n, const At &at)
{
    using Moments = kernels::Moments<C>;
    const bool vanishes = found.mean != (C)0 && (double)found.squares < Moments::kLeastSquares;
    if (vanishes || kernels::is_doubtful(found.mean, found.variance()))
        return {Moments().careful(n, at)};
    return {Moments::plain_state(n, found.mean, (C)0, found.squares)};
}

template <class C>
inline PlaneState<C> plane_moments(const C *const (&in)[1], int64_t n)
{
    const C *x = in[0];
    return finished(kernels::RowMoments<C>::of(x, n), n, [=](int64_t i) { return x[i]; });
}

// Mean and squared deviations of kCount vectors of columns from column j on. The second pass corrects the mean by that
// of the deviations from it, which the plain sum of the first may owe it.
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

// The moments of each of `columns` columns over `count` rows, in two passes over a block that stays in a near cache.
template <class C, class T>
inline void column_moments(const T *const (&in)[1][kPlaneRows], int64_t count, int64_t columns,
                           PlaneState<C> *states)
{
    C mean[kPlaneColumns], squares[kPlaneColumns];
    each_vectors<C>(columns, [&]<class V, int kCount>(int64_t j) {
        vector_moments<V, kCount>(in[0], count, j, mean, squares);
    });
    for (int64_t j = 0; j < columns; j++)
        states[j] = finished(kernels::RowMoments<C>{(C)count, mean[j], squares[j]}, count,
                             [&](int64_t r) { return convert<C>(in[0][r][j]); });
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
