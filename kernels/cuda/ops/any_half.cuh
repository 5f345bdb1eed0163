// A half whose dtype is known at run time. So a kernel that is seldom needed exists once for both dtypes.
//
// General<T> is the type of such a kernel's elements: AnyHalf for f16 and bf16, else T. The functions convert elements
// of this type, and need the dtype only for AnyHalf.
#pragma once

#include "kernels/cuda/ops/halves.cuh"

YOKE_KERNELS_BEGIN
struct AnyHalf {
    uint16_t bits;
};
template <>
struct ComputeType<AnyHalf> {
    using type = float;
};
YOKE_KERNELS_END

YOKE_CUDA_BEGIN

using kernels::AnyHalf;

template <class T>
using General = std::conditional_t<kernels::is_half<T>, AnyHalf, T>;

template <class T>
__device__ inline compute_type<T> widen_as([[maybe_unused]] yoke_dtype dtype, T x)
{
    if constexpr (std::is_same_v<T, AnyHalf>)
        return dtype == YOKE_BF16 ? widen<bf16>({x.bits}) : widen<f16>({x.bits});
    else
        return widen<T>(x);
}

template <class T>
__device__ inline T stored_as([[maybe_unused]] yoke_dtype dtype, compute_type<T> x)
{
    if constexpr (std::is_same_v<T, AnyHalf>)
        return {dtype == YOKE_BF16 ? store<bf16>(x).bits : store<f16>(x).bits};
    else
        return store<T>(x);
}

template <class T, int N>
__device__ inline void unpack_as([[maybe_unused]] yoke_dtype dtype, const Pack<T, N> &pack,
                                 compute_type<T> *to)
{
    if constexpr (std::is_same_v<T, AnyHalf>) {
        unsigned words[N / 2];
        memcpy(words, pack.at, sizeof words);
        YOKE_UNROLL
        for (int k = 0; k < N; k += 2) {
            if (dtype == YOKE_BF16)
                widen_pair<bf16>(words[k / 2], to + k);
            else
                widen_pair<f16>(words[k / 2], to + k);
        }
    } else {
        unpack<T, N>(pack, to);
    }
}

template <class T, int N>
__device__ inline Pack<T, N> packed_as([[maybe_unused]] yoke_dtype dtype,
                                       const compute_type<T> *from)
{
    if constexpr (std::is_same_v<T, AnyHalf>) {
        Pack<T, N> pack;
        if (dtype == YOKE_BF16)
            memcpy(pack.at, pack_of<bf16, N>(from).at, sizeof pack.at);
        else
            memcpy(pack.at, pack_of<f16, N>(from).at, sizeof pack.at);
        return pack;
    } else {
        return pack_of<T, N>(from);
    }
}

YOKE_CUDA_END
