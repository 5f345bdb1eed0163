// Runs of elements of which only the size, or the narrow dtype, is known: moved, repeated, converted.
//
// Contract: strides are in bytes and may be negative or 0; sizes are 1, 2, 4 or 8. Each function is compiled once: what
// moves elements need not know what they are.
#pragma once

#include "kernels/cpu/simd/simd.h"

YOKE_SIMD_BEGIN

// to[i] = the element at from + i * stride.
void gather_run(const char *from, int64_t stride, int64_t n, int64_t size, char *to);
// The element at to + i * stride = from[i].
void scatter_run(const char *from, char *to, int64_t stride, int64_t n, int64_t size);
// Both sides strided; data and stride: the result, then what is copied. A stride of 0 repeats one element.
void copy_run(char *const *data, const int64_t *stride, int64_t n, int64_t size);
// to[1 .. n) = to[0].
void repeat_element(char *to, int64_t size, int64_t n);

// n elements of a narrow float dtype (f16, bf16, float8) as floats, and floats rounded to it.
void widen_run(yoke_dtype dtype, const void *from, int64_t n, float *to);
void narrow_run(yoke_dtype dtype, const float *from, int64_t n, void *to);

YOKE_SIMD_END
