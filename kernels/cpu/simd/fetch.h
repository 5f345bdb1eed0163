// Prefetch for a long pass over memory: the data of later steps is fetched while earlier steps are computed.
//
// A store to a distant line waits until the line has arrived, and a core has few such stores in flight. In a pass
// that reads and writes 16 MiB, this wait was a third of the time. The hardware prefetches loads too, but not across
// pages.
#pragma once

#include "kernels/cpu/simd/simd.h"

YOKE_SIMD_BEGIN

constexpr int64_t kFarBytes = (int64_t)1 << 20;  // more than a core's own caches hold
constexpr int64_t kLine = 64;
constexpr int64_t kFetchAhead = 2048;  // bytes: some hundred nanoseconds at the speed of memory

inline bool is_far(int64_t bytes)
{
    return bytes >= kFarBytes;
}

// Fetches bytes to read. Addresses beyond the end of an array do no harm, because a fetch never faults. The loops
// have a constant length and are unrolled: gcc treats a loop of fetches only as a loop without effect.
inline __attribute__((always_inline)) void fetch_to_read(const void *from, int64_t bytes)
{
#pragma GCC unroll 64
    for (int64_t at = 0; at < bytes; at += kLine) __builtin_prefetch((const char *)from + at, 0);
}

inline __attribute__((always_inline)) void fetch_to_write(void *to, int64_t bytes)
{
#pragma GCC unroll 64
    for (int64_t at = 0; at < bytes; at += kLine) __builtin_prefetch((char *)to + at, 1);
}

// Calls f(i) for each i below n, in vectors: the last pass over a row of `to`. Meanwhile it fetches the next row of
// both arrays. If rows do not follow each other, only the fetches are wasted.
template <class C, class F>
inline void finish_row(C *to, const C *from, int64_t n, bool far, const F &f)
{
    constexpr int64_t kStep = 64, kBytes = kStep * (int64_t)sizeof(C);
    constexpr int64_t kLongest = 65536;  // bytes of a row; a longer next row would evict the row
    int64_t i = 0;
    if (far && n * (int64_t)sizeof(C) <= kLongest)
        for (; i + kStep <= n; i += kStep) {
            fetch_to_write((char *)(to + i) + n * (int64_t)sizeof(C), kBytes);
            fetch_to_read((const char *)(from + i) + n * (int64_t)sizeof(C), kBytes);
#pragma omp simd
            for (int64_t k = i; k < i + kStep; k++) f(k);
        }
#pragma omp simd
    for (int64_t k = i; k < n; k++) f(k);
}

YOKE_SIMD_END
