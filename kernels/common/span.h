// Conversion of a run of elements. Kernels use it to move f16 and bf16 to a buffer of floats and back, in tiles that
// fit the first-level cache.
//
// Contract: the same bits as convert<To>(x) for each element. x and out do not overlap.
//
// Only between f16 and float are instructions (F16C) faster than the integer loop. They round alike and keep the same
// bits of a NaN; the tests check this for every value.
#pragma once

#include "kernels/common/numeric.h"

#if defined(__F16C__) && !defined(__CUDACC__)
#include <immintrin.h>
#define YOKE_F16C 1
#endif

YOKE_KERNELS_BEGIN

#ifdef YOKE_F16C
// Converts whole vectors. Returns the number of converted elements; the plain loop converts the rest.
YOKE_HD int64_t convert_vectors(const f16 *x, int64_t n, float *out)
{
    int64_t whole = n & ~(int64_t)7;
    for (int64_t i = 0; i < whole; i += 8)
        _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(x + i))));
    return whole;
}

YOKE_HD int64_t convert_vectors(const float *x, int64_t n, f16 *out)
{
    int64_t whole = n & ~(int64_t)7;
    for (int64_t i = 0; i < whole; i += 8)
        _mm_storeu_si128((__m128i *)(out + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
    return whole;
}
#endif

template <class To, class From>
YOKE_HD int64_t convert_vectors(const From *, int64_t, To *)
{
    return 0;
}

// Sets out[i] = convert<To>(x[i]) for n elements, both dense.
template <class To, class From>
YOKE_HD void convert_span(const From *__restrict x, int64_t n, To *__restrict out)
{
    for (int64_t i = convert_vectors(x, n, out); i < n; ++i) out[i] = convert<To>(x[i]);
}

YOKE_KERNELS_END
