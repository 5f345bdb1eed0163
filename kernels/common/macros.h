// Macros of every header of kernels/common: one spelling for host and device code, one namespace per ISA.
//
// Contract
//  * The same header is compiled several times into one library: once per x86-64 level, once by nvcc. Each build
//    defines YOKE_ISA (v3, v4, cuda, …), so two builds never share a symbol. Otherwise a linker may keep the AVX-512
//    copy of an inline function and call it on a machine without AVX-512.
//  * Functions are YOKE_HD: always inlined, hence never emitted alone. The headers use the C++ library for types
//    only.
//  * Loops that must be fast have no branches and no calls, so plain loops vectorise. They need -fno-math-errno and
//    -fno-trapping-math (neither changes a value). They must not be compiled with -ffast-math: infinities, NaN and
//    the order of additions are part of the results.
//  * Rounding is to nearest, and subnormals are kept (no FTZ, no DAZ), as at the start of a program.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#ifndef YOKE_ISA
#define YOKE_ISA base
#endif

#if defined(__CUDACC__)
#define YOKE_HD __host__ __device__ __forceinline__
#else
#define YOKE_HD inline __attribute__((always_inline))
#endif

// Stands before a short loop over parts. If the loop stays whole, gcc makes vectors of it and keeps them in
// registers. If gcc unrolls the loop first, it seldom does.
#if defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
#define YOKE_PARTS _Pragma("GCC unroll 1")
#else
#define YOKE_PARTS
#endif

// Stands before a loop over parts that reads and writes the same memory, element by element.
#if defined(__clang__)
#define YOKE_PARTS_IN_PLACE _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__) && !defined(__CUDACC__)
#define YOKE_PARTS_IN_PLACE _Pragma("GCC ivdep") _Pragma("GCC unroll 1")
#else
#define YOKE_PARTS_IN_PLACE
#endif

// Stands before a loop of constant length over values in a device kernel's registers, because registers cannot be
// indexed. nvcc leaves the pragma in templates for the host compiler, which does not support it.
#if defined(__CUDA_ARCH__)
#define YOKE_UNROLL _Pragma("unroll")
#else
#define YOKE_UNROLL
#endif

// Opens a namespace with an inline namespace for the ISA. Callers write yoke::kernels::name.
#define YOKE_KERNELS_BEGIN    \
    namespace yoke::kernels { \
    inline namespace YOKE_ISA {
#define YOKE_KERNELS_END \
    }                    \
    }

YOKE_KERNELS_BEGIN

// Returns the bits of a value as another type of the same size.
template <class To, class From>
YOKE_HD To bit_cast(From from)
{
    static_assert(sizeof(To) == sizeof(From), "bit_cast keeps the size");
    To to;
    memcpy(&to, &from, sizeof(to));
    return to;
}

// Returns `yes` if the condition holds, else `no`. Both arguments are evaluated, so compilers make a blend instead of
// a branch.
template <class T>
YOKE_HD T select(bool condition, T yes, T no)
{
    return condition ? yes : no;
}

YOKE_KERNELS_END
