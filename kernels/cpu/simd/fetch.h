// Fetching ahead of a long pass over memory: what it will read and write is asked for while what comes before it is
// computed.
//
// A store to a line that is far away waits until the line has come, and a core has few such stores on the way at a
// time: of a pass that reads and writes 16 MiB that was a third of the time. Loads are fetched ahead by the hardware
// too, but not across pages.
#pragma once

#include "kernels/cpu/simd/simd.h"

YOKE_SIMD_BEGIN

constexpr int64_t kFarBytes = (int64_t)1 << 20;  // what a core's own caches do not hold
constexpr int64_t kLine = 64;
constexpr int64_t kFetchAhead = 2048;  // bytes: some hundred nanoseconds at the speed of memory

inline bool is_far(int64_t bytes)
{
    return bytes >= kFarBytes;
}

// Addresses beyond the end of an array do no harm: a fetch never faults. The loops have a length that the compiler
// knows, and are unrolled: gcc takes a loop of nothing but fetches for one that does nothing.
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

// f(i) for each i below n, in vectors: the last pass over a row of `to`, during which the next row of both is fetched.
// Rows that do not follow one another lose nothing but the fetches.
template <class C, class F>
inline void finish_row(C *to, const C *from, int64_t n, bool far, const F &f)
{
    constexpr int64_t kStep = 64, kBytes = kStep * (int64_t)sizeof(C);
    constexpr int64_t kLongest = 65536;  // bytes of a row beyond which the next would push it out
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
