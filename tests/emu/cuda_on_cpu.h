// The language of CUDA kernels as plain C++: the names that nvcc knows, over the emulation in emu.h. This header is
// included first when a .cu file is compiled for the CPU.
#pragma once

#define YOKE_EMULATED 1

#include <cuda_runtime_api.h>

#include <type_traits>

#include "tests/emu/approximate.h"
#include "tests/emu/emu.h"
#include "tests/emu/mma.h"
#include "tests/emu/races.h"
#include "tests/emu/record.h"

#define __launch_bounds__(...)
#undef __restrict__
#define __restrict__

#define threadIdx (::yoke::emu::g_thread->index)
#define blockIdx (::yoke::emu::g_grid->block_index)
#define blockDim (::yoke::emu::g_grid->block_size)
#define gridDim (::yoke::emu::g_grid->grid_size)

// The place of a call tells barriers apart: all threads of a block must meet at the same one.
#define YOKE_EMU_STRING_(x) #x
#define YOKE_EMU_STRING(x) YOKE_EMU_STRING_(x)
#define YOKE_EMU_PLACE __FILE__ ":" YOKE_EMU_STRING(__LINE__)

#define __syncthreads() ::yoke::emu::block_barrier(YOKE_EMU_PLACE)
#define __syncthreads_or(vote) ::yoke::emu::block_vote(YOKE_EMU_PLACE, (vote) != 0)
#define __syncwarp(...) ::yoke::emu::warp_barrier(YOKE_EMU_PLACE __VA_OPT__(, ) __VA_ARGS__)
#define __shfl_sync(...) ::yoke::emu::shuffle(YOKE_EMU_PLACE, __VA_ARGS__)
#define __shfl_xor_sync(...) ::yoke::emu::shuffle_xor(YOKE_EMU_PLACE, __VA_ARGS__)
#define __shfl_up_sync(...) ::yoke::emu::shuffle_up(YOKE_EMU_PLACE, __VA_ARGS__)
#define __shfl_down_sync(...) ::yoke::emu::shuffle_down(YOKE_EMU_PLACE, __VA_ARGS__)
#define __ballot_sync(...) ::yoke::emu::ballot(YOKE_EMU_PLACE, __VA_ARGS__)
#define __any_sync(...) (::yoke::emu::ballot(YOKE_EMU_PLACE, __VA_ARGS__) != 0)

namespace yoke::emu {

template <class T>
inline T load_global(const T *p)
{
    return *p;
}

// Returns the high half of a product.
inline uint64_t high_product(uint64_t a, uint64_t b)
{
    __extension__ using Wide = unsigned __int128;
    return (uint64_t)((Wide)a * b >> 64);
}

inline int popcount(unsigned x)
{
    return __builtin_popcount(x);
}

}  // namespace yoke::emu

#define __ldg(p) ::yoke::emu::load_global(p)
#define __popc(x) ::yoke::emu::popcount(x)
#define __umulhi(a, b) ((unsigned)(((unsigned long long)(a) * (b)) >> 32))
#define __umul64hi(a, b) ::yoke::emu::high_product(a, b)

// Blocks run one after another in a host thread, so plain code is atomic. Launches of other host threads may run
// meanwhile only if they use other memory.
template <class T>
inline T atomicAdd(T *p, T x)
{
    static_assert(std::is_integral_v<T>,
                  "the order of a floating-point sum is never left to chance");
    ::yoke::emu::note_atomic(p, sizeof *p);
    const T old = *p;
    *p = (T)(old + x);
    return old;
}
template <class T>
inline T atomicMax(T *p, T x)
{
    ::yoke::emu::note_atomic(p, sizeof *p);
    const T old = *p;
    *p = x > old ? x : old;
    return old;
}
template <class T>
inline T atomicCAS(T *p, T expected, T x)
{
    ::yoke::emu::note_atomic(p, sizeof *p);
    const T old = *p;
    if (old == expected) *p = x;
    return old;
}
template <class T>
inline T atomicExch(T *p, T x)
{
    ::yoke::emu::note_atomic(p, sizeof *p);
    const T old = *p;
    *p = x;
    return old;
}
inline void __threadfence() {}
inline void __threadfence_system() {}
