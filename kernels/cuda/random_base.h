// Random numbers within a graph: a replay repeats its launches' arguments, yet is to draw anew.
#pragma once

#include "kernels/cuda/support.h"

namespace yoke::cuda {

// Device memory with a number that a kernel adds to the offset it was given; null outside captures.
inline const int64_t *random_base(const yoke_launch *)
{
    return nullptr;
}

#if defined(__CUDACC__) || defined(YOKE_EMULATED)
__device__ inline uint64_t moved_offset(uint64_t offset, const int64_t *base)
{
    return base ? offset + (uint64_t)*base : offset;
}
#endif

}  // namespace yoke::cuda
