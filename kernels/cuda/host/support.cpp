#include "kernels/cuda/host/support.h"

namespace yoke::cuda {

yoke_status bad_dtype(const yoke_launch *launch, const char *operand, yoke_dtype dtype)
{
    return fail(YOKE_E_TYPE, 0,
                "%s: %s has dtype %s, which the cuda kernel does not take; cast it first",
                op_name(launch->op), operand, dtype_name(dtype));
}

yoke_status launch_failed(const yoke_launch *launch, cudaError_t error, int64_t blocks, int threads,
                          int64_t shared)
{
    const auto *device = static_cast<const Device *>(launch->device);
    return fail(
        status_of(error), error,
        "%s: cuda:%d refused a launch of %lld blocks of %d threads with %lld bytes of shared memory: %s, %s",
        op_name(launch->op), device->index, static_cast<long long>(blocks), threads,
        static_cast<long long>(shared), cudaGetErrorName(error), cudaGetErrorString(error));
}

yoke_status Scratch::reserve(uint64_t bytes)
{
    return g_host->scratch_alloc(launch_->device, bytes ? bytes : 1, launch_->stream, &data_);
}

Scratch::~Scratch()
{
    if (data_) g_host->scratch_free(launch_->device, data_, launch_->stream);
}

}  // namespace yoke::cuda
