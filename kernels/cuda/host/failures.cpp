#include "kernels/cuda/host/failures.h"

#include <cstdarg>
#include <cstdio>

#include "kernels/cuda/host/driver.h"
#include "kernels/cuda/host/support.h"

namespace yoke::cuda {

yoke_status call_failed(const yoke_launch *launch, cudaError_t error, const char *what, ...)
{
    cudaGetLastError();
    char tried[256];
    va_list args;
    va_start(args, what);
    vsnprintf(tried, sizeof tried, what, args);
    va_end(args);
    return fail(status_of(error), error, "%s: cuda:%d: %s failed with %s (%d), %s",
                op_name(launch->op), static_cast<const Device *>(launch->device)->index, tried,
                cudaGetErrorName(error), static_cast<int>(error), cudaGetErrorString(error));
}

static void warn(const Device &device, int error, const char *what, const char *name,
                 const char *text)
{
    char line[512];
    snprintf(line, sizeof line, "cuda:%d: %s failed with %s (%d), %s", device.index, what, name,
             error, text);
    g_host->log(YOKE_LOG_WARN, line);
}

void log_failure(const Device &device, cudaError_t error, const char *what)
{
    if (error == cudaSuccess) [[likely]]
        return;
    cudaGetLastError();
    warn(device, error, what, cudaGetErrorName(error), cudaGetErrorString(error));
}

void log_failure(const Device &device, CUresult error, const char *what)
{
    if (error == CUDA_SUCCESS) [[likely]]
        return;
    const char *name = nullptr, *text = nullptr;
    driver().call.cuGetErrorName(error, &name);
    driver().call.cuGetErrorString(error, &text);
    warn(device, error, what, name ? name : "an unknown error", text ? text : "no text");
}

}  // namespace yoke::cuda
