// Maps over x [N, C, ...] with numbers by plane: the step after the sums of batch_norm, group_norm and their
// gradients.
//
// Contract
//  * Operand 0 is written. The last operand is the first of F::kNumbers arrays of numbers, `planes` apart. The
//    operands between are f's inputs. All but the last operand have the dtype and shape of x; the last operand
//    broadcasts to x.
//  * Elements pass in runs of kMapRun. Dense elements that widen at no cost are used in place, others pass through
//    buffers.
//  * If channels are neighbours in memory (NHWC), the channels' numbers are repeated until they fill a run, so a run
//    is equally long for any number of channels.
#pragma once

#include <utility>

#include "kernels/common/channel_numbers.h"
#include "kernels/cpu/simd/fetch.h"
#include "kernels/cpu/simd/halves.h"
#include "kernels/cpu/simd/iterate.h"
#include "kernels/cpu/simd/share.h"

YOKE_SIMD_BEGIN

constexpr int64_t kMapRun = 512;

// Numbers of a run, `apart` from each array to the next. There is either a number for all elements, or a number for
// each element.
template <class C>
struct RunNumbers {
    const C *first;
    int64_t apart;
    bool by_element;
};

// Returns f of element i of all inputs, as a stored value.
template <class T, class C, class F, size_t... kPlaces>
inline __attribute__((always_inline)) T map_one(const F &f, const T *const *in, int64_t i,
                                                const C *numbers, int64_t apart,
                                                std::index_sequence<kPlaces...>)
{
    const C x[] = {convert<C>(in[kPlaces][i])...};
    return convert<T>(f(x, numbers, apart));
}

template <class T, class C, class F>
inline void map_values(const F &f, const T *const *in, const RunNumbers<C> &numbers, int64_t n,
                       T *to)
{
    constexpr auto kPlaces = std::make_index_sequence<F::kInputs>();
    const C *first = numbers.first;
    const int64_t apart = numbers.apart;
    if (numbers.by_element) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++) to[i] = map_one(f, in, i, first + i, apart, kPlaces);
        return;
    }
    C of[F::kNumbers];
    for (int k = 0; k < F::kNumbers; k++) of[k] = first[k * apart];
#pragma omp simd
    for (int64_t i = 0; i < n; i++) to[i] = map_one(f, in, i, (const C *)of, 1, kPlaces);
}

// Properties of a map besides its operands: the dtype, the distance of the arrays of numbers, and whether the run is
// long.
struct MapCall {
    yoke_dtype dtype;
    int64_t planes;
    bool far;
};

// Maps n elements, at most kMapRun, of each operand.
template <class C, int N, class F>
inline void map_run(const F &f, const MapCall &call, char *const *data, const int64_t *stride,
                    int64_t n, const RunNumbers<C> &numbers)
{
    constexpr int64_t kBytes = kMapRun * (int64_t)sizeof(uint16_t);  // bytes of the narrowest dtype
    if (call.far)
        for (int64_t at = 0; at < n * dtype_size(call.dtype); at += kBytes)
            fetch_to_write(data[0] + kFetchAhead + at, kBytes);
    if (are_dense(stride, N - 1, dtype_size(call.dtype)) &&
        for_direct<C>(call.dtype, [&]<class T>() {
            const T *in[N - 2];
            for (int i = 0; i < N - 2; i++) in[i] = (const T *)data[i + 1];
            map_values(f, in, numbers, n, (T *)data[0]);
        }))
        return;
    C buffer[N - 1][kMapRun];
    const C *in[N - 2];
    for (int i = 0; i < N - 2; i++)
        in[i] = see_elements(call.dtype, data[i + 1], stride[i + 1], n, buffer[i]);
    map_values(f, in, numbers, n, buffer[N - 2]);
    store_elements(call.dtype, buffer[N - 2], data[0], stride[0], n);
}

// Maps elements [begin, end) of a loop of any strides, in runs. If the last operand's numbers for a run are neither
// contiguous nor all in one place, gathers these numbers first.
template <class C, int N, class F>
inline void map_strided(const Loop<N> &loop, int64_t begin, int64_t end, const MapCall &call,
                        const F &f)
{
    walk<N>(loop, begin, end, [&](char *const *data, const int64_t *stride, int64_t length) {
        const int64_t step = stride[N - 1];
        for (int64_t first = 0; first < length; first += kMapRun) {
            const int64_t n = min(kMapRun, length - first);
            char *at[N];
            for (int i = 0; i < N; i++) at[i] = data[i] + first * stride[i];
            RunNumbers<C> numbers{(const C *)at[N - 1], call.planes, step != 0};
            C gathered[F::kNumbers][kMapRun];
            if (step != 0 && step != (int64_t)sizeof(C)) {
                for (int k = 0; k < F::kNumbers; k++)
                    gather_run(at[N - 1] + k * call.planes * (int64_t)sizeof(C), step, n, sizeof(C),
                               (char *)gathered[k]);
                numbers = {gathered[0], kMapRun, true};
            }
            map_run<C, N>(f, call, at, stride, n, numbers);
        }
    });
}

// Returns whether rows of channels follow each other in every operand, and a run has space for at least two rows.
template <class C, int N>
inline bool is_rows_of_channels(const Loop<N> &loop, int64_t size)
{
    if (loop.ndim != 2 || loop.shape[0] > kMapRun / 2 || loop.stride[1][N - 1] != 0 ||
        loop.stride[0][N - 1] != (int64_t)sizeof(C))
        return false;
    for (int i = 0; i < N - 1; i++)
        if (loop.stride[0][i] != size || loop.stride[1][i] != loop.shape[0] * size) return false;
    return true;
}

// Maps rows [begin, end) of channels, several rows in a run.
template <class C, int N, class F>
inline void map_rows(const Loop<N> &loop, int64_t begin, int64_t end, const MapCall &call,
                     const F &f)
{
    const int64_t channels = loop.shape[0], rows = kMapRun / channels;
    C repeated[F::kNumbers][kMapRun];
    for (int k = 0; k < F::kNumbers; k++)
        for (int64_t row = 0; row < rows; row++)
            __builtin_memcpy(repeated[k] + row * channels,
                             (const C *)loop.data[N - 1] + k * call.planes,
                             (size_t)channels * sizeof(C));
    for (; begin < end; begin += rows) {
        char *at[N];
        for (int i = 0; i < N; i++) at[i] = loop.data[i] + begin * loop.stride[1][i];
        map_run<C, N>(f, call, at, loop.stride[0], min(rows, end - begin) * channels,
                      {repeated[0], kMapRun, true});
    }
}

template <class C, class F, int N>
inline void map_channels(const yoke_operand *const (&operands)[N], int64_t planes, const F &f)
{
    static_assert(N == F::kInputs + 2);
    Loop<N> loop;
    plan_loop<N>(loop, operands);
    const yoke_dtype dtype = operands[0]->dtype;
    const int64_t size = dtype_size(dtype);
    const MapCall call{dtype, planes, is_far(loop.numel * size)};
    if (is_rows_of_channels<C>(loop, size)) {
        parallel_shares(
            loop.shape[1], max(1, kGrain / loop.shape[0]),
            [&](int64_t begin, int64_t end) { map_rows<C>(loop, begin, end, call, f); });
        return;
    }
    parallel_range(loop.numel, kGrain,
                   [&](int64_t begin, int64_t end) { map_strided<C>(loop, begin, end, call, f); });
}

YOKE_SIMD_END
