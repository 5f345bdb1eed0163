// Maps over x [N, C, ...] with numbers by plane: what follows the sums of batch_norm, group_norm and their gradients.
//
// Contract
//  * Operand 0 is written, the last is the first of F::kNumbers arrays of numbers, `planes` apart; those between are
//    f's inputs. All but the last are of dtype T and of x's shape, the last broadcasts to it.
//  * Elements pass in runs of kMapRun, where they lie if they are dense and computed in T, else through buffers.
//  * Where channels are neighbours in memory (NHWC), their numbers are repeated until they fill a run, so that a run
//    is as long whatever the channels.
#pragma once

#include "kernels/common/channel_numbers.h"
#include "kernels/cpu/simd/fetch.h"
#include "kernels/cpu/simd/iterate.h"
#include "kernels/cpu/simd/run.h"
#include "kernels/cpu/simd/share.h"

YOKE_SIMD_BEGIN

constexpr int64_t kMapRun = 512;

// Numbers of a run, `apart` from one array to the next: one for all elements, or one each.
template <class C>
struct RunNumbers {
    const C *first;
    int64_t apart;
    bool by_element;
};

template <class C, class F>
inline void map_values(const F &f, const C *const (&in)[F::kInputs], const RunNumbers<C> &numbers,
                       int64_t n, C *to)
{
    constexpr int kIn = F::kInputs;
    const C *first = numbers.first;
    const int64_t apart = numbers.apart;
    if (numbers.by_element) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++) {
            C x[kIn];
            for (int k = 0; k < kIn; k++) x[k] = in[k][i];
            to[i] = f(x, first + i, apart);
        }
        return;
    }
    C of[F::kNumbers];
    for (int k = 0; k < F::kNumbers; k++) of[k] = first[k * apart];
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        C x[kIn];
        for (int k = 0; k < kIn; k++) x[k] = in[k][i];
        to[i] = f(x, of, 1);
    }
}

// n elements, at most kMapRun, of each operand.
template <class T, int N, class F, class C = compute_type<T>>
inline void map_run(const F &f, char *const *data, const int64_t *stride, int64_t n,
                    const RunNumbers<C> &numbers, bool far)
{
    constexpr int kIn = N - 2;
    constexpr bool kInPlace = std::is_same_v<T, C>;
    constexpr yoke_dtype kDtype = kernels::dtype_of<T>;
    constexpr int64_t kSize = sizeof(T), kBytes = kMapRun * kSize;
    C buffer[N - 1][kMapRun];
    const C *in[kIn];
    if (far) fetch_to_write(data[0] + kBytes, kBytes);
    for (int i = 0; i < kIn; i++) {
        if (far) fetch_to_read(data[i + 1] + kBytes, kBytes);
        in[i] = kInPlace && stride[i + 1] == kSize
                    ? (const C *)data[i + 1]
                    : (const C *)load_elements(kDtype, data[i + 1], stride[i + 1], n, buffer[i]);
    }
    const bool direct = kInPlace && stride[0] == kSize;
    C *to = direct ? (C *)data[0] : buffer[kIn];
    map_values(f, in, numbers, n, to);
    if (!direct) store_elements(kDtype, to, data[0], stride[0], n);
}

// Runs of any strides; where numbers lie neither together nor all in one place, they are gathered.
template <class T, int N, class F>
inline void map_strided(const Loop<N> &loop, int64_t begin, int64_t end, int64_t planes, bool far,
                        const F &f)
{
    using C = compute_type<T>;
    walk<N>(loop, begin, end, [=](char *const *data, const int64_t *stride, int64_t length) {
        const int64_t step = stride[N - 1];
        for (int64_t first = 0; first < length; first += kMapRun) {
            const int64_t n = min(kMapRun, length - first);
            char *at[N];
            for (int i = 0; i < N; i++) at[i] = data[i] + first * stride[i];
            RunNumbers<C> numbers{(const C *)at[N - 1], planes, step != 0};
            C gathered[F::kNumbers][kMapRun];
            if (step != 0 && step != (int64_t)sizeof(C)) {
                for (int k = 0; k < F::kNumbers; k++)
                    gather_run(at[N - 1] + k * planes * (int64_t)sizeof(C), step, n, sizeof(C),
                               (char *)gathered[k]);
                numbers = {gathered[0], kMapRun, true};
            }
            map_run<T, N>(f, at, stride, n, numbers, far);
        }
    });
}

// Whether rows of channels follow one another in every operand, and several fill a run.
template <class T, int N>
inline bool is_rows_of_channels(const Loop<N> &loop)
{
    if (loop.ndim != 2 || loop.shape[0] > kMapRun / 2 || loop.stride[1][N - 1] != 0 ||
        loop.stride[0][N - 1] != (int64_t)sizeof(compute_type<T>))
        return false;
    for (int i = 0; i < N - 1; i++)
        if (loop.stride[0][i] != (int64_t)sizeof(T) ||
            loop.stride[1][i] != loop.shape[0] * (int64_t)sizeof(T))
            return false;
    return true;
}

// Rows [begin, end) of channels.
template <class T, int N, class F>
inline void map_rows(const Loop<N> &loop, int64_t begin, int64_t end, int64_t planes, bool far,
                     const F &f)
{
    using C = compute_type<T>;
    const int64_t channels = loop.shape[0], rows = kMapRun / channels;
    C repeated[F::kNumbers][kMapRun];
    for (int k = 0; k < F::kNumbers; k++)
        for (int64_t row = 0; row < rows; row++)
            __builtin_memcpy(repeated[k] + row * channels, (const C *)loop.data[N - 1] + k * planes,
                             (size_t)channels * sizeof(C));
    for (; begin < end; begin += rows) {
        char *at[N];
        for (int i = 0; i < N; i++) at[i] = loop.data[i] + begin * loop.stride[1][i];
        map_run<T, N>(f, at, loop.stride[0], min(rows, end - begin) * channels,
                      {repeated[0], kMapRun, true}, far);
    }
}

template <class T, class F, int N>
inline void map_channels(const yoke_operand *const (&operands)[N], int64_t planes, const F &f)
{
    static_assert(N == F::kInputs + 2);
    Loop<N> loop;
    plan_loop<N>(loop, operands);
    const bool far = is_far(loop.numel * (int64_t)sizeof(T));
    if (is_rows_of_channels<T>(loop)) {
        const int64_t channels = loop.shape[0];
        parallel_shares(loop.shape[1], max(1, kGrain / channels), [&](int64_t begin, int64_t end) {
            map_rows<T>(loop, begin, end, planes, far, f);
        });
        return;
    }
    parallel_range(loop.numel, kGrain, [&](int64_t begin, int64_t end) {
        map_strided<T>(loop, begin, end, planes, far, f);
    });
}

YOKE_SIMD_END
