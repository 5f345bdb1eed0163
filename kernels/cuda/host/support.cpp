#include "kernels/cuda/host/support.h"

#include "kernels/common/support.h"
#include "kernels/cuda/host/failures.h"

namespace yoke::cuda {

yoke_status bad_dtype(const yoke_launch *launch, const char *operand, yoke_dtype dtype)
{
    return kernels::refuse_dtype(g_host, "cuda", launch, operand, dtype);
}

yoke_status launch_failed(const yoke_launch *launch, cudaError_t error, int64_t blocks, int threads,
                          int64_t shared)
{
    if (status_of(error) == YOKE_E_DEVICE_LOST)
        return found_loss(launch, error, op_name(launch->op));
    const auto *device = static_cast<const Device *>(launch->device);
    return fail(
        status_of(error), error,
        "%s: cuda:%d refused a launch of %lld blocks of %d threads with %lld bytes of shared memory: %s, %s",
        op_name(launch->op), device->index, static_cast<long long>(blocks), threads,
        static_cast<long long>(shared), cudaGetErrorName(error), cudaGetErrorString(error));
}

}  // namespace yoke::cuda
