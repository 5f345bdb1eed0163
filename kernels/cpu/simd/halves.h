// Runs of a dense array of floats of any width, in the computing type: float, or double.
#pragma once

#include "kernels/cpu/simd/run.h"

YOKE_SIMD_BEGIN

// Copies n elements of a dense array, from number `at` on, as values of C. C is the computing type of the dtype.
template <class C>
inline void take_run(yoke_dtype dtype, const void *array, int64_t at, int64_t n, C *to)
{
    if constexpr (std::is_same_v<C, float>)
        if (dtype != YOKE_F32)
            return widen_run(dtype, static_cast<const uint16_t *>(array) + at, n, to);
    __builtin_memcpy(to, static_cast<const C *>(array) + at, (size_t)n * sizeof(C));
}

// Writes n values of C as elements of a dense array, from number `at` on. Narrow dtypes are rounded.
template <class C>
inline void give_run(yoke_dtype dtype, const C *from, int64_t n, void *array, int64_t at)
{
    if constexpr (std::is_same_v<C, float>)
        if (dtype != YOKE_F32)
            return narrow_run(dtype, from, n, static_cast<uint16_t *>(array) + at);
    __builtin_memcpy(static_cast<C *>(array) + at, from, (size_t)n * sizeof(C));
}

// Returns n elements of a dense array as values of C: in place if the array stores C, else copied to the buffer.
template <class C>
inline const C *see_run(yoke_dtype dtype, const void *array, int64_t at, int64_t n, C *buffer)
{
    if (dtype == kernels::dtype_of<C>) return static_cast<const C *>(array) + at;
    take_run(dtype, array, at, n, buffer);
    return buffer;
}

// Returns n elements of any stride as values of C: in place if they are dense and stored as C, else in the buffer.
template <class C>
inline const C *see_elements(yoke_dtype dtype, const char *from, int64_t stride, int64_t n,
                             C *buffer)
{
    if (dtype == kernels::dtype_of<C> && stride == (int64_t)sizeof(C)) return (const C *)from;
    if constexpr (std::is_same_v<C, float>)
        if (dtype != YOKE_F32 && stride == 2) return widen_run(dtype, from, n, buffer), buffer;
    return static_cast<const C *>(load_elements(dtype, from, stride, n, buffer));
}

// Calls f.operator()<T>() with the stored type of a dtype that is computed in C.
template <class C, class F>
inline void for_stored(yoke_dtype dtype, const F &f)
{
    if constexpr (std::is_same_v<C, float>) {
        if (dtype == YOKE_F16) return f.template operator()<f16>();
        if (dtype == YOKE_BF16) return f.template operator()<bf16>();
    }
    f.template operator()<C>();
}

// Returns whether the first n strides all equal `size`, so elements are neighbours.
inline bool are_dense(const int64_t *stride, int n, int64_t size)
{
    for (int i = 0; i < n; i++)
        if (stride[i] != size) return false;
    return true;
}

// Calls f.operator()<T>() with the stored type, if a loop in C may read this type directly. Such types are C, and
// bf16, which widens by a shift. Returns whether it called f. For f16 it returns false: compilers do not use the
// instruction for f16 in a loop, so runs of f16 are widened first.
template <class C, class F>
inline bool for_direct(yoke_dtype dtype, const F &f)
{
    if constexpr (std::is_same_v<C, float>)
        if (dtype == YOKE_BF16) return f.template operator()<bf16>(), true;
    if (dtype != kernels::dtype_of<C>) return false;
    f.template operator()<C>();
    return true;
}

// Calls run.operator()<C>() with the computing type of a float dtype and returns its status. For other dtypes returns
// bad_dtype().
template <class F>
inline yoke_status in_floats(const yoke_launch *launch, const char *argument, yoke_dtype dtype,
                             const F &run)
{
    switch (dtype) {
        case YOKE_F64:
            return run.template operator()<double>();
        case YOKE_F32:
        case YOKE_F16:
        case YOKE_BF16:
            return run.template operator()<float>();
        default:
            return bad_dtype(launch, argument, dtype);
    }
}

YOKE_SIMD_END
