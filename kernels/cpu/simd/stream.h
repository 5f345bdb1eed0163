// Stores past the caches, for large results that the same call does not read again.
//
// An ordinary store first reads the line that it replaces: a kernel that reads n bytes and writes n moves 3 n. A
// streaming store moves 2 n, but leaves the result in memory; hence only for results that would not stay in a cache
// anyway, and by size alone, so that a call takes the same way every time.
//
// Contract: a thread that has streamed calls stream_end before another may read what it wrote.
#pragma once

#include <cstring>

#include "kernels/cpu/simd/simd.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

YOKE_SIMD_BEGIN

constexpr int64_t kStreamBytes = (int64_t)8 << 20;

inline bool is_streamed(int64_t bytes)
{
#if defined(__SSE2__)
    return bytes >= kStreamBytes;
#else
    return bytes < 0;
#endif
}

#if defined(__AVX512F__)
constexpr int64_t kStreamVector = 64;
inline void stream_vector(char *to, const char *from)
{
    _mm512_stream_si512((__m512i *)to, _mm512_loadu_si512((const void *)from));
}
#elif defined(__AVX__)
constexpr int64_t kStreamVector = 32;
inline void stream_vector(char *to, const char *from)
{
    _mm256_stream_si256((__m256i *)to, _mm256_loadu_si256((const __m256i *)from));
}
#elif defined(__SSE2__)
constexpr int64_t kStreamVector = 16;
inline void stream_vector(char *to, const char *from)
{
    _mm_stream_si128((__m128i *)to, _mm_loadu_si128((const __m128i *)from));
}
#else
constexpr int64_t kStreamVector = 16;
inline void stream_vector(char *to, const char *from)
{
    memcpy(to, from, kStreamVector);
}
#endif

// Copies a run that lies in a near cache to where it is to stay.
inline void stream_copy(void *destination, const void *source, int64_t bytes)
{
    char *to = static_cast<char *>(destination);
    const char *from = static_cast<const char *>(source);
    int64_t head = min(bytes, (int64_t)(-(uintptr_t)to & (uintptr_t)(kStreamVector - 1)));
    if (head) memcpy(to, from, (size_t)head);
    int64_t i = head;
    for (; i + kStreamVector <= bytes; i += kStreamVector) stream_vector(to + i, from + i);
    if (i < bytes) memcpy(to + i, from + i, (size_t)(bytes - i));
}

inline void stream_end()
{
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

YOKE_SIMD_END
