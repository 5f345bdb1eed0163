// Search for cuBLASLt, its handles, and its errors.
#include "kernels/cuda/host/cublaslt_library.h"

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <mutex>
#include <new>

#include "core/backend/ops.inc"
#include "kernels/cuda/host/cublaslt.h"
#include "kernels/cuda/host/driver.h"
#include "kernels/cuda/host/failures.h"
#include "kernels/cuda/host/relaxed.h"

namespace yoke::cuda {

namespace {

#define YOKE_STRING_(x) #x
#define YOKE_STRING(x) YOKE_STRING_(x)
constexpr const char *kNames[] = {YOKE_CUBLASLT_CALLS(YOKE_LIBRARY_NAME)};

struct Library {
    CublasLtCalls call;
    bool is_open;
    char tried[3072];  // places tried, and the problem at each
};

Library g_library;

bool accepts(void *library, char *why, size_t capacity)
{
    if (const char *missing = find_calls(library, kNames, g_library.call)) {
        snprintf(why, capacity, "the library has no %s", missing);
        return false;
    }
    const int version = static_cast<int>(g_library.call.cublasLtGetVersion());
    if (version / 10000 == CUBLAS_VER_MAJOR) return true;
    snprintf(why, capacity, "the library is version %d.%d, but this module needs %d",
             version / 10000, version % 10000 / 100, CUBLAS_VER_MAJOR);
    return false;
}

constexpr LibraryName kLibrary = {
    "libcublasLt.so." YOKE_STRING(CUBLAS_VER_MAJOR),
    {"cu" YOKE_STRING(CUBLAS_VER_MAJOR) "/lib", "cublas/lib", ""},
    accepts,
};

void open_library()
{
    Text tried{g_library.tried, sizeof g_library.tried};
    g_library.is_open =
        find_library(kLibrary, g_host->config("YOKE_CUDA_LIB_PATH"), tried) != nullptr;
}

yoke_status need_library(const yoke_launch *launch)
{
    if (cublaslt_is_found()) return YOKE_OK;
    char message[4096];
    snprintf(
        message, sizeof message,
        "%s: matrix products on cuda need cuBLASLt %d, which cannot be loaded; tried %s. Install it ('pip install %s'), or name its folder in YOKE_CUDA_LIB_PATH",
        op_name(launch->op), CUBLAS_VER_MAJOR, g_library.tried,
        CUBLAS_VER_MAJOR >= 13 ? "nvidia-cublas"
                               : "nvidia-cublas-cu" YOKE_STRING(CUBLAS_VER_MAJOR));
    return g_host->set_error(YOKE_E_UNAVAILABLE, 0, message);
}

std::mutex g_making;
std::atomic<CublasLt *> g_devices[kMaxDevices];

yoke_status make(const yoke_launch *launch, CublasLt **out)
{
    CublasLt *made = new (std::nothrow) CublasLt;
    if (!made)
        return fail(YOKE_E_OOM, 0, "%s: no host memory for cuBLASLt's plans", op_name(launch->op));
    made->call = &g_library.call;
    const Relaxed relaxed;  // for it allocates
    const yoke_status status =
        cublaslt_check(launch, made->call->cublasLtCreate(&made->handle), "cublasLtCreate");
    if (status)
        delete made;
    else
        *out = made;
    return status;
}

yoke_status status_of_cublas(cublasStatus_t error)
{
    switch (error) {
        case CUBLAS_STATUS_SUCCESS:
            return YOKE_OK;
        case CUBLAS_STATUS_ALLOC_FAILED:
            return YOKE_E_OOM;
        case CUBLAS_STATUS_NOT_INITIALIZED:
            return YOKE_E_UNAVAILABLE;
        case CUBLAS_STATUS_ARCH_MISMATCH:
        case CUBLAS_STATUS_NOT_SUPPORTED:
            return YOKE_E_UNSUPPORTED;
        default:
            return YOKE_E_INTERNAL;
    }
}

// Reports a failure. If the device is lost, reports the loss, whatever cuBLASLt's status is.
yoke_status tell(const yoke_launch *launch, cublasStatus_t status, cudaError_t lost,
                 const char *tried)
{
    char text[640];
    snprintf(text, sizeof text, "%s: cuda:%d: %s failed with %s (%d), %s", op_name(launch->op),
             static_cast<const Device *>(launch->device)->index, tried,
             g_library.call.cublasLtGetStatusName(status), static_cast<int>(status),
             g_library.call.cublasLtGetStatusString(status));
    return library_failed(launch, status_of_cublas(status), status, text, lost);
}

}  // namespace

yoke_status cublaslt_check(const yoke_launch *launch, cublasStatus_t status, const char *what, ...)
{
    if (status == CUBLAS_STATUS_SUCCESS) [[likely]]
        return YOKE_OK;
    char tried[256];
    va_list args;
    va_start(args, what);
    vsnprintf(tried, sizeof tried, what, args);
    va_end(args);
    return tell(launch, status, why_lost(launch), tried);
}

yoke_status cublaslt_pass_over(const yoke_launch *launch, cublasStatus_t status, const char *what)
{
    if (status == CUBLAS_STATUS_SUCCESS) return YOKE_OK;
    if (const cudaError_t lost = why_lost(launch)) return tell(launch, status, lost, what);
    cublaslt_log(*static_cast<const Device *>(launch->device), status, what);
    return YOKE_OK;
}

void cublaslt_log(const Device &device, cublasStatus_t status, const char *what)
{
    if (status == CUBLAS_STATUS_SUCCESS || is_lost(device)) return;
    char line[512];
    snprintf(line, sizeof line, "cuda:%d: %s failed with %s (%d), %s", device.index, what,
             g_library.call.cublasLtGetStatusName(status), static_cast<int>(status),
             g_library.call.cublasLtGetStatusString(status));
    g_host->log(YOKE_LOG_WARN, line);
}

bool cublaslt_is_found()
{
    static std::once_flag once;
    std::call_once(once, open_library);
    return g_library.is_open;
}

yoke_status cublaslt_of(const yoke_launch *launch, CublasLt **out)
{
    std::atomic<CublasLt *> &mine = g_devices[static_cast<const Device *>(launch->device)->index];
    *out = mine.load(std::memory_order_acquire);
    if (*out) [[likely]]
        return YOKE_OK;
    if (const yoke_status status = need_library(launch)) return status;
    const std::lock_guard<std::mutex> lock(g_making);
    *out = mine.load(std::memory_order_relaxed);
    if (*out) return YOKE_OK;
    const yoke_status status = make(launch, out);
    if (!status) mine.store(*out, std::memory_order_release);
    return status;
}

void cublaslt_close(const Device &device)
{
    const CublasLt *ours = g_devices[device.index].exchange(nullptr);
    if (!ours) return;
    cublaslt_log(device, ours->call->cublasLtDestroy(ours->handle),
                 "device_close: cublasLtDestroy");
    delete ours;
}

}  // namespace yoke::cuda
