#include "kernels/cuda/host/failures.h"

#include <atomic>
#include <cstdarg>
#include <cstdio>

#include "kernels/cuda/host/driver.h"
#include "kernels/cuda/host/relaxed.h"
#include "kernels/cuda/host/support.h"

namespace yoke::cuda {

yoke_status call_failed(const yoke_launch *launch, cudaError_t error, const char *what, ...)
{
    cudaGetLastError();
    const Device &device = *static_cast<const Device *>(launch->device);
    char tried[256];
    va_list args;
    va_start(args, what);
    vsnprintf(tried, sizeof tried, what, args);
    va_end(args);
    if (status_of(error) == YOKE_E_DEVICE_LOST) return found_loss(launch, error, tried);
    return fail(status_of(error), error, "%s: cuda:%d: %s failed with %s (%d), %s",
                op_name(launch->op), device.index, tried, cudaGetErrorName(error),
                static_cast<int>(error), cudaGetErrorString(error));
}

yoke_status found_loss(const yoke_launch *launch, cudaError_t error, const char *where)
{
    const Device &device = *static_cast<const Device *>(launch->device);
    note_loss(device, error);
    return fail(YOKE_E_DEVICE_LOST, error,
                "%s: cuda:%d: found at %s, caused by earlier work on this device: %s (%d), %s%s",
                op_name(launch->op), device.index, where, cudaGetErrorName(error),
                static_cast<int>(error), cudaGetErrorString(error), advice_for(error));
}

// Asks the stream whether it is idle, and returns CUDA's answer: an error of the context, "not ready", or success. A
// captured stream must not be asked, because this would invalidate the capture.
static cudaError_t ask_context(cudaStream_t stream)
{
    cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
    const Relaxed relaxed;
    cudaError_t error = cudaStreamIsCapturing(stream, &capturing);
    if (!error && capturing == cudaStreamCaptureStatusNone) error = cudaStreamQuery(stream);
    cudaGetLastError();  // drops "not ready" and similar, so no later launch reports it
    return error;
}

cudaError_t why_lost(const yoke_launch *launch)
{
    const cudaError_t cause = ask_context(static_cast<cudaStream_t>(launch->stream));
    return status_of(cause) == YOKE_E_DEVICE_LOST ? cause : cudaSuccess;
}

yoke_status library_failed(const yoke_launch *launch, yoke_status status, int64_t code,
                           const char *text, cudaError_t lost)
{
    note_loss(*static_cast<const Device *>(launch->device), lost);
    if (!lost) return fail(status, code, "%s", text);
    return fail(YOKE_E_DEVICE_LOST, lost,
                "%s; CUDA reports %s (%d), %s, caused by earlier work on this device%s", text,
                cudaGetErrorName(lost), static_cast<int>(lost), cudaGetErrorString(lost),
                advice_for(lost));
}

static std::atomic<bool> g_lost[kMaxDevices];

bool note_loss(const Device &device, int64_t error)
{
    return status_of(error) == YOKE_E_DEVICE_LOST && !g_lost[device.index].exchange(true);
}

bool is_lost(const Device &device)
{
    return g_lost[device.index].load(std::memory_order_relaxed);
}

// Notes a loss. Returns whether to log the failure: not after the device's loss was noted.
static bool is_news(const Device &device, int64_t error)
{
    return note_loss(device, error) || !is_lost(device);
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
    if (!is_news(device, error)) return;
    warn(device, error, what, cudaGetErrorName(error), cudaGetErrorString(error));
}

void log_failure(const Device &device, CUresult error, const char *what)
{
    if (error == CUDA_SUCCESS) [[likely]]
        return;
    if (!is_news(device, error)) return;
    const char *name = nullptr, *text = nullptr;
    driver().call.cuGetErrorName(error, &name);
    driver().call.cuGetErrorString(error, &text);
    warn(device, error, what, name ? name : "an unknown error", text ? text : "no text");
}

}  // namespace yoke::cuda
