// Runs of elements with a known size or a narrow dtype: moved, repeated, converted.
//
// Contract: strides are in bytes and may be negative or 0; sizes are 1, 2, 4 or 8. Each function is compiled once,
// because moves need no dtype.
#pragma once

#include "kernels/cpu/simd/simd.h"

YOKE_SIMD_BEGIN

// Copies the elements at from + i * stride to a dense run.
void gather_run(const char *from, int64_t stride, int64_t n, int64_t size, char *to);
// Copies a dense run to the elements at to + i * stride.
void scatter_run(const char *from, char *to, int64_t stride, int64_t n, int64_t size);
// Copies between strided runs. data and stride have the result first, then the source. A stride of 0 repeats an
// element.
void copy_run(char *const *data, const int64_t *stride, int64_t n, int64_t size);
// Copies to[0] to to[1 .. n).
void repeat_element(char *to, int64_t size, int64_t n);

// Converts n elements of a narrow float dtype (f16, bf16, float8) to floats. narrow_run rounds floats to such a
// dtype.
void widen_run(yoke_dtype dtype, const void *from, int64_t n, float *to);
void narrow_run(yoke_dtype dtype, const float *from, int64_t n, void *to);

// Writes convert<To>(x) for each element of a dense run. The runs do not overlap.
template <class To, class From>
inline void convert_run(const From *from, int64_t n, To *to)
{
    if constexpr (std::is_same_v<To, From>)
        __builtin_memcpy(to, from, (size_t)n * sizeof(To));
    else if constexpr (std::is_same_v<To, float> && kernels::is_narrow<From>)
        widen_run(kernels::dtype_of<From>, from, n, to);
    else if constexpr (std::is_same_v<From, float> && kernels::is_narrow<To>)
        narrow_run(kernels::dtype_of<To>, from, n, to);
    else
        for (int64_t i = 0; i < n; i++) to[i] = convert<To>(from[i]);
}

constexpr int64_t kMostElements = 1024;  // limit of the next two functions

// Returns elements of a dtype as a dense run: in place, or in the buffer. Narrow floats become floats; all other
// elements stay as stored.
const void *load_elements(yoke_dtype dtype, const char *from, int64_t stride, int64_t n,
                          void *buffer);
// Stores a dense run, as load_elements returns it, at to + i * stride. Floats for narrow dtypes are rounded.
void store_elements(yoke_dtype dtype, const void *from, char *to, int64_t stride, int64_t n);

YOKE_SIMD_END
