// Vectors to compute in, straight from where elements are stored.
#pragma once

#include "kernels/cpu/simd/simd.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

YOKE_SIMD_BEGIN

template <class E, int kBytes>
using VectorOf [[gnu::vector_size(kBytes), gnu::aligned(sizeof(E)), gnu::may_alias]] = E;

// Returns a vector of the elements from `from` on, in the computing type.
template <class V, class C>
inline V load_vector(const C *from)
{
    return *(const V *)from;
}

template <class V>
inline V load_vector(const bf16 *from)
{
    using Wide = VectorOf<uint32_t, sizeof(V)>;
// For __builtin_convertvector, GCC splits vectors and joins them again. For the unmasked instruction, GCC warns about
// an uninitialised result.
#if defined(__AVX512F__)
    if constexpr (sizeof(V) == 64)
        return (
            V)((Wide)_mm512_maskz_cvtepu16_epi32(0xffff, _mm256_loadu_si256((const __m256i *)from))
               << 16);
#elif defined(__AVX2__)
    if constexpr (sizeof(V) == 32)
        return (V)((Wide)_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)from)) << 16);
#endif
    using Bits = VectorOf<uint16_t, sizeof(V) / 2>;
    return (V)(__builtin_convertvector(*(const Bits *)from, Wide) << 16);
}

template <class V>
inline V load_vector(const f16 *from)
{
#if defined(__AVX512F__)
    if constexpr (sizeof(V) == 64)
        return (V)_mm512_maskz_cvtph_ps(0xffff, _mm256_loadu_si256((const __m256i *)from));
#elif defined(__AVX2__) && defined(__F16C__)
    if constexpr (sizeof(V) == 32)
        return (V)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)from));
#endif
    V v = {};
    for (int i = 0; i < (int)(sizeof(V) / sizeof(float)); i++) v[i] = convert<float>(from[i]);
    return v;
}

// Returns a vector of integers, widened from the smaller integers at `from`.
template <class V, class I>
inline V load_integers(const I *from)
{
#if defined(__AVX512F__)
    if constexpr (sizeof(I) == 1 && sizeof(V) == 64 && sizeof(V{}[0]) == 4)
        return (V)_mm512_maskz_cvtepu8_epi32(0xffff, _mm_loadu_si128((const __m128i *)from));
    if constexpr (sizeof(I) == 1 && sizeof(V) == 64 && sizeof(V{}[0]) == 2)
        return (V)_mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i *)from));
#elif defined(__AVX2__)
    if constexpr (sizeof(I) == 1 && sizeof(V) == 32 && sizeof(V{}[0]) == 4)
        return (V)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)from));
    if constexpr (sizeof(I) == 1 && sizeof(V) == 32 && sizeof(V{}[0]) == 2)
        return (V)_mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)from));
#endif
    using Narrow = VectorOf<I, sizeof(V) / sizeof(V{}[0]) * sizeof(I)>;
    return __builtin_convertvector(*(const Narrow *)from, V);
}

YOKE_SIMD_END
