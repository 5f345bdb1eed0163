#include "kernels/cuda/host/cudnn_status.h"

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

}  // namespace

yoke_status cudnn_check(const yoke_launch *launch, const CudnnFailure &failure, const char *what,
                        ...)
{
    if (!failure) [[likely]]
        return YOKE_OK;
    char tried[256], text[1024];
    va_list args;
    va_start(args, what);
    vsnprintf(tried, sizeof tried, what, args);
    va_end(args);
    snprintf(text, sizeof text, "%s: cuda:%d: %s of %s failed with %s (%d)%s%s",
             op_name(launch->op), static_cast<const Device *>(launch->device)->index, failure.call,
             tried, cudnn_calls()->cudnnGetErrorString(failure.status),
             static_cast<int>(failure.status), *failure.said ? ": " : "", failure.said);
    return library_failed(launch, status_of_cudnn(failure.status), failure.status, text,
                          why_lost(launch));
}

}  // namespace yoke::cuda
