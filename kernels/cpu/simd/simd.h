// Common beginning of all files of this folder. The folder is compiled once per instruction set.
//
// Contract
//  * All code stands in yoke::cpu::YOKE_ISA. This folder must not instantiate a template of the C++ library: the
//    linker keeps a single copy of such a function, perhaps with AVX-512 instructions, and calls it everywhere.
//  * A kernel is YOKE_KERNEL(<op>) { … }. If the op table has an op without a kernel in this folder, linking fails.
//  * Kernels rely on backend.h: shapes and parameters of a launch are checked before.
#pragma once

#include "kernels/common/kernel.h"
#include "kernels/cpu/cpu.h"

#define YOKE_SIMD_BEGIN   \
    namespace yoke::cpu { \
    inline namespace YOKE_ISA {
#define YOKE_SIMD_END \
    }                 \
    }

YOKE_SIMD_BEGIN

YOKE_KERNEL_NAMES

// Declares and defines a kernel. Only the table knows the list of ops, so a new op rebuilds no kernel file.
#define YOKE_KERNEL(name)                        \
    namespace entry {                            \
    yoke_status name(const yoke_launch *launch); \
    }                                            \
    yoke_status entry::name(const yoke_launch *launch)

// Defines for_float, for_number, for_any and for_size: they call f.operator()<T>() with the type of a dtype.
YOKE_DISPATCHERS

// ---- threads ----------------------------------------------------------------------------------------------------

// Elements below which cheap work stays in the calling thread: waking the team costs some microseconds.
constexpr int64_t kGrain = 32768;

// Calls f(i, slot) for each i below count, by the team; see run_chunks. `slots` is team_size() before the call. Slots
// are below `slots` and below count, so memory for that many slots is enough.
template <class F>
inline void parallel_slots(int64_t count, int64_t slots, const F &f)
{
    if (count == 1) return f((int64_t)0, 0);
    run_chunks(
        count,
        [](void *context, int64_t i, int slot) { (*static_cast<const F *>(context))(i, slot); },
        const_cast<void *>(static_cast<const void *>(&f)), (int)slots);
}

// Calls f(i) for each i below count, by the team.
template <class F>
inline void parallel_items(int64_t count, const F &f)
{
    parallel_slots(count, INT32_MAX, [&](int64_t i, int) { f(i); });
}

// Chunks from this length on are of elements, not rows, and end where a vector or a cache line does.
constexpr int64_t kLongChunk = 4096;

// Calls f(begin, end) for chunks of [0, n), by the team. Work below 2 * grain stays in the calling thread. For work
// whose result does not depend on the cut.
template <class F>
inline void parallel_range(int64_t n, int64_t grain, const F &f)
{
    if (n < 2 * grain) return n > 0 ? f((int64_t)0, n) : (void)0;
    int64_t chunks = fine_chunks(n / grain);
    int64_t chunk = divide_up(n, chunks);
    if (chunk >= kLongChunk) chunk = divide_up(chunk, 64) * 64;
    parallel_items(divide_up(n, chunk), [&](int64_t i) { f(i * chunk, min(n, (i + 1) * chunk)); });
}

YOKE_SIMD_END
