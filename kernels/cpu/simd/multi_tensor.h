// Work over the tensors of a list in one launch: shared among the threads by elements, done on runs of float or double.
//
// Contract
//  * Tensors of a list lie in place in the launch record; those of several lists correspond by number and have one
//    shape for each number. Strides may differ.
//  * f of for_runs gets dense arrays of the compute type. What is stored so already is worked on in place; the rest
//    passes through a buffer, a tile at a time.
#pragma once

#include "kernels/common/optim_group.h"
#include "kernels/cpu/simd/iterate.h"
#include "kernels/cpu/simd/run.h"

YOKE_SIMD_BEGIN

constexpr int64_t kTile = 512;  // elements: the buffers of a tile stay in the first-level cache

// Calls f(tensor, from, to) for each tensor with a part of elements [begin, end), counted over all tensors end to
// end.
template <class F>
inline void for_parts(const yoke_operand *tensors, int64_t count, int64_t begin, int64_t end,
                      const F &f)
{
    int64_t first = 0;  // first element of this tensor, counted over all tensors
    for (int64_t i = 0; i < count && first < end; i++) {
        int64_t n = tensors[i].numel, from = max(begin, first), to = min(end, first + n);
        if (from < to) f(i, from - first, to - first);
        first += n;
    }
}

using kernels::total_numel;

// Calls f(tensor, from, to) for all elements, shared among the threads.
template <class F>
inline void for_tensors(const yoke_operand *tensors, int64_t count, const F &f)
{
    parallel_range(total_numel(tensors, count), kGrain,
                   [&](int64_t begin, int64_t end) { for_parts(tensors, count, begin, end, f); });
}

// ---- runs of a single tensor --------------------------------------------------------------------------------------

template <class C, class T>
inline void gather(const char *data, int64_t stride, int64_t n, C *out)
{
    if (stride == (int64_t)sizeof(T)) return convert_run((const T *)data, n, out);
    for (int64_t i = 0; i < n; i++) out[i] = convert<C>(*(const T *)(data + i * stride));
}

template <class C, class T>
inline void scatter(const C *from, int64_t n, char *data, int64_t stride)
{
    if (stride == (int64_t)sizeof(T)) return convert_run(from, n, (T *)data);
    for (int64_t i = 0; i < n; i++) *(T *)(data + i * stride) = convert<T>(from[i]);
}

#define YOKE_GATHER_CASE(value, type) \
    case value:                       \
        return gather<C, type>(data, stride, n, out);
#define YOKE_SCATTER_CASE(value, type) \
    case value:                        \
        return scatter<C, type>(from, n, data, stride);

template <class C>
inline void gather_as(yoke_dtype dtype, const char *data, int64_t stride, int64_t n, C *out)
{
    switch (dtype) {
        YOKE_FLOAT_TYPES(YOKE_GATHER_CASE)
    }
}

template <class C>
inline void scatter_as(yoke_dtype dtype, const C *from, int64_t n, char *data, int64_t stride)
{
    switch (dtype) {
        YOKE_FLOAT_TYPES(YOKE_SCATTER_CASE)
    }
}

#undef YOKE_GATHER_CASE
#undef YOKE_SCATTER_CASE

// Calls f(arrays, n) over elements [begin, end) of N operands of one shape. Bit i of `reads` and `writes` tells
// whether operand i is read before f and written after it. f may change arrays[i]; then this array is written. An
// operand without a bit only defines its shape.
template <class C, int N, class F>
inline void for_runs(const yoke_operand *const (&operands)[N], unsigned reads, unsigned writes,
                     int64_t begin, int64_t end, const F &f)
{
    constexpr yoke_dtype kDense = sizeof(C) == 8 ? YOKE_F64 : YOKE_F32;
    C buffers[N][kTile];
    Loop<N> loop;
    plan_loop<N>(loop, operands);
    walk<N>(loop, begin, end, [&](char *const *data, const int64_t *stride, int64_t n) {
        bool direct[N], all_direct = true;
        int64_t step[N];
        for (int i = 0; i < N; i++) {
            step[i] = n == 1 ? dtype_size(operands[i]->dtype) : stride[i];
            direct[i] = operands[i]->dtype == kDense && step[i] == (int64_t)sizeof(C);
            all_direct &= direct[i] || !((reads | writes) >> i & 1u);
        }
        int64_t length = all_direct ? n : kTile;
        for (int64_t at = 0; at < n; at += length) {
            int64_t count = min(length, n - at);
            C *arrays[N];
            for (int i = 0; i < N; i++) {
                char *place = data[i] + at * step[i];
                arrays[i] = direct[i] ? (C *)place : buffers[i];
                if (!direct[i] && (reads >> i & 1u))
                    gather_as<C>(operands[i]->dtype, place, step[i], count, buffers[i]);
            }
            f(arrays, count);
            for (int i = 0; i < N; i++) {
                char *place = data[i] + at * step[i];
                if ((writes >> i & 1u) && (char *)arrays[i] != place)
                    scatter_as<C>(operands[i]->dtype, arrays[i], count, place, step[i]);
            }
        }
    });
}

// Calls f.operator()<C>() with the computing type of a floating dtype.
template <class F>
inline void with_compute_type(yoke_dtype dtype, F &&f)
{
    if (dtype == YOKE_F64)
        f.template operator()<double>();
    else
        f.template operator()<float>();
}

YOKE_SIMD_END
