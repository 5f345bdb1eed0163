// Common beginning of all .cu files of this folder: kernels, their launches, shared memory, warps, vector loads.
//
// Contract
//  * A file has a family of ops: its purpose, kernels, then the entries YOKE_KERNEL(<op>) { … }. If an op has neither
//    an entry nor a composition, linking fails.
//  * An entry runs inside the context of its device (set by module.cpp), starts kernels on launch->stream and never
//    waits. It relies on backend.h for the properties of a launch.
//  * A file compiles as CUDA and, over tests/emu, as plain C++. So shared memory goes through YOKE_SHARED and
//    YOKE_DYNAMIC_SHARED, launches go through start(), and CUB and PTX have files of their own.
//  * Deterministic: no floating-point atomics; partial results are combined in the order of their indices.
#pragma once

#include <algorithm>
#include <tuple>
#include <utility>

#include "kernels/common/kernel.h"
#include "kernels/cuda/host/support.h"

#define YOKE_CUDA_BEGIN    \
    namespace yoke::cuda { \
    inline namespace YOKE_ISA {
#define YOKE_CUDA_END \
    }                 \
    }

// Defines a kernel of the op table. kernels.cpp finds the kernel by this name.
#define YOKE_KERNEL(name)                                               \
    extern "C" yoke_status yoke_cuda_##name(const yoke_launch *launch); \
    extern "C" yoke_status yoke_cuda_##name(const yoke_launch *launch)

// Define arrays of elements of T in the block's shared memory: `count` (a constant) elements, or the bytes that the
// launch gives.
#if defined(YOKE_EMULATED)
#define YOKE_SHARED(T, name, count)   \
    static const char name##_tag = 0; \
    const ::yoke::emu::Shared<T> name(YOKE_EMU_PLACE, &name##_tag, (size_t)(count))
#define YOKE_DYNAMIC_SHARED(T, name) const ::yoke::emu::Shared<T> name(YOKE_EMU_PLACE, nullptr, 0)
#else
#define YOKE_SHARED(T, name, count) __shared__ __align__(16) T name[count]
#define YOKE_DYNAMIC_SHARED(T, name)                              \
    extern __shared__ __align__(16) unsigned char yoke_dynamic[]; \
    T *const name = reinterpret_cast<T *>(yoke_dynamic)
#endif

// Stand before a loop: the first unrolls the body `n` (a constant) times, the second never unrolls.
#if defined(__CUDACC__)
#define YOKE_PRAGMA(text) _Pragma(#text)
#define YOKE_UNROLL_BY(n) YOKE_PRAGMA(unroll n)
#define YOKE_NO_UNROLL _Pragma("unroll 1")
#else
#define YOKE_UNROLL_BY(n) static_assert((n) > 0);
#define YOKE_NO_UNROLL
#endif

YOKE_CUDA_BEGIN

YOKE_KERNEL_NAMES

// for_float, for_number, for_any, for_size: f.operator()<T>() for the type that a dtype names.
YOKE_DISPATCHERS

// ---- launches ---------------------------------------------------------------------------------------------------

constexpr int kWarp = 32;
constexpr unsigned kWholeWarp = 0xffffffffu;
constexpr int kThreads = 256;  // threads of a block, if a kernel needs no other number

// Threads that fit a multiprocessor, and the wanted blocks of a kernel that fit.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ == 800 || __CUDA_ARCH__ / 100 == 9 || \
    __CUDA_ARCH__ / 100 == 10
constexpr int kResidentThreads = 2048;
#elif __CUDA_ARCH__ < 800
constexpr int kResidentThreads = 1024;
#else
constexpr int kResidentThreads = 1536;
#endif
template <int kWanted, int kOfThreads>
inline constexpr int kFitting = std::min(kWanted, kResidentThreads / kOfThreads);

struct Grid {
    int64_t blocks;  // below 2^31
    int threads = kThreads;
    int64_t shared = 0;  // bytes of the dynamic array
    int64_t rows = 1;    // blocks along y, below 2^16
};

// Starts kernel(args...) on the launch's stream. If CUDA refuses a kernel, reports this with the op's name and
// returns the failure.
template <class... P, class... A>
inline yoke_status start(const yoke_launch *launch, void (*kernel)(P...), const Grid &grid,
                         const A &...args)
{
    const dim3 blocks((unsigned)grid.blocks, (unsigned)grid.rows), threads((unsigned)grid.threads);
#if defined(YOKE_EMULATED)
    if (emu::records()) {
        emu::record(launch, kernels::op_name(launch->op), (const void *)kernel, blocks, threads,
                    (size_t)grid.shared, emu::parameters<P...>(P(args)...));
        return YOKE_OK;
    }
    const cudaError_t error =
        emu::launch(kernels::op_name(launch->op), (const void *)kernel, launch, blocks, threads,
                    (size_t)grid.shared, [=] { kernel(P(args)...); });
#else
    const auto stream = static_cast<cudaStream_t>(launch->stream);
    kernel<<<blocks, threads, (size_t)grid.shared, stream>>>(P(args)...);
    const cudaError_t error = cudaGetLastError();
#endif
    if (error == cudaSuccess) return YOKE_OK;
    return launch_failed(launch, error, grid.blocks * grid.rows, grid.threads, grid.shared);
}

// Returns the threads of a block. Tests over the emulation try other numbers than the usual number, in whole warps.
inline int block_size(int usual)
{
#if defined(YOKE_EMULATED)
    return emu::block_size(usual);
#else
    return usual;
#endif
}

// Blocks for each multiprocessor in a grid whose threads take several items in turn. A multiprocessor holds 2 to 8
// blocks at once, limited by registers. With several times as many blocks, the last blocks leave the multiprocessor
// idle only for a moment. With a second wave of a block or two, the time would double. More blocks would be worse,
// because a thread's preparations should serve several items.
constexpr int64_t kGridBlocks = 32;

// Returns as many blocks as keep the device busy, at most one for each `per_block` of the n items, and at least one.
inline int64_t blocks_for(const yoke_launch *launch, int64_t n, int64_t per_block,
                          int64_t per_multiprocessor = kGridBlocks)
{
    const int64_t most = multiprocessors(launch) * per_multiprocessor,
                  wanted = divide_up(n, per_block);
    return wanted < 1 ? 1 : wanted < most ? wanted : most;
}

// ---- warps and blocks --------------------------------------------------------------------------------------------

// Returns the value of the lane whose number differs in `bits`. All lanes of the warp call this. A value of any size
// is exchanged in words.
template <class T>
__device__ inline T shuffle_xor(T value, int bits)
{
    static_assert(sizeof(T) % 4 == 0 && std::is_trivially_copyable_v<T>, "made of words");
    unsigned words[sizeof(T) / 4];
    memcpy(words, &value, sizeof(T));
    for (unsigned &word : words) word = __shfl_xor_sync(kWholeWarp, word, bits);
    memcpy(&value, words, sizeof(T));
    return value;
}

// Returns the value of the lane `distance` further, or this lane's value if there is no such lane.
template <class T>
__device__ inline T shuffle_down(T value, int distance)
{
    static_assert(sizeof(T) % 4 == 0 && std::is_trivially_copyable_v<T>, "made of words");
    unsigned words[sizeof(T) / 4];
    memcpy(words, &value, sizeof(T));
    for (unsigned &word : words) word = __shfl_down_sync(kWholeWarp, word, (unsigned)distance);
    memcpy(&value, words, sizeof(T));
    return value;
}

// Returns the value of warp lane 0 to every lane.
template <class T>
__device__ inline T from_first(T value)
{
    static_assert(sizeof(T) % 4 == 0 && std::is_trivially_copyable_v<T>, "made of words");
    unsigned words[sizeof(T) / 4];
    memcpy(words, &value, sizeof(T));
    for (unsigned &word : words) word = __shfl_sync(kWholeWarp, word, 0);
    memcpy(&value, words, sizeof(T));
    return value;
}

// Copies of a combination in a loop over states or shuffles. A state of several numbers takes long to combine, and its
// code is large: one copy.
template <class T>
inline constexpr int kStateCopies = sizeof(T) > 8 ? 1 : 5;

// Combines the values of a warp's lanes in a fixed order, by halving. Only warp lane 0 gets the result.
template <class T, class Combine>
__device__ inline T reduce_warp(T value, const Combine &combine)
{
    YOKE_UNROLL_BY(kStateCopies<T>)
    for (int distance = kWarp / 2; distance > 0; distance /= 2)
        value = combine(value, shuffle_down(value, distance));
    return value;
}

__device__ inline int place_in_warp()
{
    return (int)threadIdx.x % kWarp;
}

__device__ inline int warp_of_thread()
{
    return (int)threadIdx.x / kWarp;
}

// Combines the values of a block's threads in a fixed order, and returns the result to every thread. The block has
// whole warps, at most 32. `first` is a value that leaves the other argument of combine unchanged.
template <class T, class Combine>
__device__ inline T reduce_block(T value, const T &first, const Combine &combine)
{
    YOKE_SHARED(T, partial, kWarp);
    const int warps = (int)blockDim.x / kWarp;
    value = reduce_warp(value, combine);
    __syncthreads();  // an earlier call may still read
    if (place_in_warp() == 0) partial[warp_of_thread()] = value;
    __syncthreads();
    // Each warp reads for itself: a single reading warp would need another barrier.
    value = first;
    if (place_in_warp() < warps) value = partial[place_in_warp()];
    return from_first(reduce_warp(value, combine));
}

// Adds to an element of shared memory, to which several threads may add at once. Returns the earlier value. Only for
// integers.
template <class Array, class T>
__device__ inline T shared_add(Array &array, int64_t i, T x)
{
    static_assert(std::is_integral_v<T>,
                  "the order of a floating-point sum is never left to chance");
#if defined(YOKE_EMULATED)
    return array.add(i, x);
#else
    return atomicAdd(&array[i], x);
#endif
}

// ---- vector loads and stores ----------------------------------------------------------------------------------------

// N elements that are read or written at once, N * sizeof(T) at most 16 bytes.
template <class T, int N>
struct alignas(sizeof(T) * N) Pack {
    T at[N];
};

// As many elements as 16 bytes hold of the larger of the types.
template <class... T>
inline constexpr int kPackLength = 16 / (int)std::max({sizeof(T)...});

template <int N, class T>
__device__ inline Pack<T, N> load_pack(const T *from)
{
#if defined(YOKE_EMULATED)
    if ((uintptr_t)from % sizeof(Pack<T, N>))
        emu::report("load_pack", "%p is not aligned", (const void *)from);
#endif
    return *reinterpret_cast<const Pack<T, N> *>(from);
}

template <int N, class T>
__device__ inline void store_pack(T *to, const Pack<T, N> &pack)
{
#if defined(YOKE_EMULATED)
    if ((uintptr_t)to % sizeof(Pack<T, N>))
        emu::report("store_pack", "%p is not aligned", (void *)to);
#endif
    *reinterpret_cast<Pack<T, N> *>(to) = pack;
}

inline bool is_aligned(const void *pointer, int64_t bytes)
{
    return (uintptr_t)pointer % (uintptr_t)bytes == 0;
}

YOKE_CUDA_END
