// Functions of the module for kernels' entries: failures, scratch, the device.
#pragma once

#include "kernels/common/names.h"
#include "kernels/common/scratch.h"
#include "kernels/cuda/host/cuda.h"

namespace yoke::cuda {

using kernels::dtype_name;
using kernels::op_name;

// Fails with "softmax: x has dtype int64, which the cuda kernel does not take". Called only after a wrong shape rule.
yoke_status bad_dtype(const yoke_launch *launch, const char *operand, yoke_dtype dtype);

// Reports a failed launch and returns its status: "add: cuda:0 refused a launch of 12 blocks of 256 threads: …". If
// the error is of earlier work or of an earlier call, reports "add: cuda:0: found at add, caused by …".
yoke_status launch_failed(const yoke_launch *launch, cudaError_t error, int64_t blocks, int threads,
                          int64_t shared);

inline int64_t multiprocessors(const yoke_launch *launch)
{
    return static_cast<const Device *>(launch->device)->multiprocessors;
}

// Returns the architecture of the compiled kernels in use: 90 is 9.0.
inline int compiled_for(const yoke_launch *launch)
{
    return static_cast<const Device *>(launch->device)->arch;
}

using Scratch = kernels::Scratch<g_host>;

}  // namespace yoke::cuda
