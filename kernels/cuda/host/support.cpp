#include "kernels/cuda/host/support.h"

#include "kernels/common/support.h"
#include "kernels/cuda/host/failures.h"

namespace yoke::cuda {

yoke_status bad_dtype(const yoke_launch *launch, const char *operand, yoke_dtype dtype)
{
    return kernels::refuse_dtype(g_host, "cuda", launch, operand, dtype);
}

// Returns whether an error belongs to an earlier call. After a launch, cudaGetLastError() also reports, once, an
// unread error of an earlier call. If this launch cannot cause the error, it is such an error; for other errors the
// origin is unknown.
static bool is_of_earlier_call(cudaError_t error, int64_t blocks, int threads, int64_t shared)
{
    constexpr int kMostThreads = 1024;
    constexpr int64_t kMostShared = 48 << 10;  // usable without a request
    switch (error) {
        case cudaErrorInvalidConfiguration:
            return blocks > 0 && threads > 0 && threads <= kMostThreads && shared <= kMostShared;
        case cudaErrorInvalidMemcpyDirection:
        case cudaErrorInvalidPitchValue:
        case cudaErrorInvalidSymbol:
        case cudaErrorNotReady:
        case cudaErrorPeerAccessUnsupported:
        case cudaErrorPeerAccessAlreadyEnabled:
        case cudaErrorPeerAccessNotEnabled:
        case cudaErrorHostMemoryAlreadyRegistered:
        case cudaErrorHostMemoryNotRegistered:
        case cudaErrorTimeout:
        case cudaErrorGraphExecUpdateFailure:
            return true;
        default:
            return false;
    }
}

yoke_status launch_failed(const yoke_launch *launch, cudaError_t error, int64_t blocks, int threads,
                          int64_t shared)
{
    if (status_of(error) == YOKE_E_DEVICE_LOST)
        return found_loss(launch, error, op_name(launch->op));
    const auto *device = static_cast<const Device *>(launch->device);
    if (is_of_earlier_call(error, blocks, threads, shared))
        return fail(
            status_of(error), error,
            "%s: cuda:%d: found at %s, caused by an earlier call of CUDA in this thread, whose result was not checked: %s (%d), %s; later launches work. 'compute-sanitizer --report-api-errors all' names that call",
            op_name(launch->op), device->index, op_name(launch->op), cudaGetErrorName(error),
            static_cast<int>(error), cudaGetErrorString(error));
    return fail(
        status_of(error), error,
        "%s: cuda:%d refused a launch of %lld blocks of %d threads with %lld bytes of shared memory: %s, %s",
        op_name(launch->op), device->index, static_cast<long long>(blocks), threads,
        static_cast<long long>(shared), cudaGetErrorName(error), cudaGetErrorString(error));
}

}  // namespace yoke::cuda
