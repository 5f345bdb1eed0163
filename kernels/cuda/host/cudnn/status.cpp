#include "kernels/cuda/host/cudnn/status.h"

#include <atomic>
#include <cstdarg>
#include <cstdio>

#include "kernels/cuda/host/failures.h"
#include "kernels/cuda/host/support.h"

namespace yoke::cuda {

namespace {

yoke_status status_of_cudnn(cudnnStatus_t status)
{
    switch (status) {
        case CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED:
        case CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED:
            return YOKE_E_OOM;
        case CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH:
        case CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED:
        case CUDNN_STATUS_NOT_INITIALIZED:
            return YOKE_E_UNAVAILABLE;
        default:
            return CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED ? YOKE_E_UNSUPPORTED
                                                                               : YOKE_E_INTERNAL;
    }
}

const Device &device_of(const yoke_launch *launch)
{
    return *static_cast<const Device *>(launch->device);
}

// Writes a failure: "cuda:0: cudnnBackendFinalize failed with CUDNN_STATUS_NOT_SUPPORTED (3000): …".
void describe(char *text, size_t capacity, const Device &device, const CudnnFailure &failure,
              const char *tried)
{
    snprintf(text, capacity, "cuda:%d: %s%s failed with %s (%d)%s%s", device.index, failure.call,
             tried, cudnn_calls()->cudnnGetErrorString(failure.status),
             static_cast<int>(failure.status), *failure.said ? ": " : "", failure.said);
}

}  // namespace

yoke_status cudnn_check(const yoke_launch *launch, const CudnnFailure &failure, const char *what,
                        ...)
{
    if (!failure) [[likely]]
        return YOKE_OK;
    char tried[256] = " of ", said[1024], text[1200];
    va_list args;
    va_start(args, what);
    vsnprintf(tried + 4, sizeof tried - 4, what, args);
    va_end(args);
    describe(said, sizeof said, device_of(launch), failure, tried);
    snprintf(text, sizeof text, "%s: %s", op_name(launch->op), said);
    return library_failed(launch, status_of_cudnn(failure.status), failure.status, text,
                          why_lost(launch));
}

void cudnn_warn(CudnnReason reason, const char *line)
{
    static std::atomic<uint32_t> told;
    const uint32_t bit = 1u << static_cast<int>(reason);
    if (!(told.fetch_or(bit) & bit)) g_host->log(YOKE_LOG_WARN, line);
}

void cudnn_log(const Device &device, const CudnnFailure &failure)
{
    char text[1024];
    describe(text, sizeof text, device, failure, "");
    g_host->log(YOKE_LOG_WARN, text);
}

yoke_status cudnn_pass_over(const yoke_launch *launch, const CudnnFailure &failure, bool has_next)
{
    char text[1024], line[1100];
    describe(text, sizeof text, device_of(launch), failure, "");
    if (const cudaError_t lost = why_lost(launch))
        return library_failed(launch, YOKE_E_DEVICE_LOST, failure.status, text, lost);
    snprintf(line, sizeof line, "%s; %s", text, has_next ? "the next plan is used" : kOwnKernels);
    cudnn_warn(has_next ? CudnnReason::kPassedOver : CudnnReason::kFailed, line);
    return YOKE_OK;
}

}  // namespace yoke::cuda
