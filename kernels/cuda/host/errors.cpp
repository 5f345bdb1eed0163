// Statuses and messages for CUDA's errors, and the scope in which calls are checked.
#include <atomic>
#include <cstdarg>
#include <cstdio>

#include "kernels/common/support.h"
#include "kernels/cuda/host/driver.h"
#include "kernels/cuda/host/failures.h"

namespace yoke::cuda {

const yoke_host *g_host = nullptr;

static std::atomic<bool> g_forked{false};

void after_fork()
{
    g_forked.store(true, std::memory_order_relaxed);
}

bool is_forked()
{
    return g_forked.load(std::memory_order_relaxed);
}

yoke_status fail(yoke_status status, int64_t native_code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const yoke_status told = kernels::tell(g_host, status, native_code, format, arguments);
    va_end(arguments);
    return told;
}

// Errors by number, because older toolkits have no names for them.
constexpr int64_t kContained = 226, kTensorMemoryLeak = 721;

// Returns whether the error destroys the context: every later call then fails with the same error.
static bool is_fatal(int64_t error)
{
    switch (error) {
        case cudaErrorECCUncorrectable:
        case cudaErrorNvlinkUncorrectable:
        case kContained:
        case cudaErrorIllegalAddress:
        case cudaErrorLaunchTimeout:
        case cudaErrorContextIsDestroyed:
        case cudaErrorAssert:
        case cudaErrorHardwareStackError:
        case cudaErrorIllegalInstruction:
        case cudaErrorMisalignedAddress:
        case cudaErrorInvalidAddressSpace:
        case cudaErrorInvalidPc:
        case cudaErrorLaunchFailure:
        case kTensorMemoryLeak:
        case cudaErrorMpsClientTerminated:
        case cudaErrorExternalDevice:
        case cudaErrorUnknown:
            return true;
        default:
            return false;
    }
}

yoke_status status_of(int64_t error)
{
    if (is_fatal(error)) return YOKE_E_DEVICE_LOST;
    if (error >= cudaErrorStreamCaptureUnsupported && error <= cudaErrorStreamCaptureWrongThread)
        return YOKE_E_STATE;
    switch (error) {
        case cudaSuccess:
            return YOKE_OK;
        case cudaErrorInvalidValue:
            return YOKE_E_VALUE;
        case cudaErrorMemoryAllocation:
            return YOKE_E_OOM;
        case cudaErrorInvalidResourceHandle:
            return YOKE_E_CLOSED;
        case cudaErrorCudartUnloading:
        case cudaErrorNotReady:
            return YOKE_E_STATE;
        case cudaErrorTimeout:
            return YOKE_E_TIMEOUT;
        case cudaErrorNotSupported:
        case cudaErrorNoKernelImageForDevice:
        case cudaErrorUnsupportedPtxVersion:
            return YOKE_E_UNSUPPORTED;
        case cudaErrorInitializationError:
        case cudaErrorStubLibrary:
        case cudaErrorInsufficientDriver:
        case cudaErrorCallRequiresNewerDriver:
        case cudaErrorDevicesUnavailable:
        case cudaErrorNoDevice:
        case cudaErrorInvalidDevice:
        case cudaErrorSystemNotReady:
        case cudaErrorSystemDriverMismatch:
        case cudaErrorCompatNotSupportedOnDevice:
            return YOKE_E_UNAVAILABLE;
        default:
            return YOKE_E_INTERNAL;
    }
}

const char *advice_for(int64_t error)
{
    if (is_fatal(error))
        return "; this process has lost the device's context: restart the process, with CUDA_LAUNCH_BLOCKING=1 or under compute-sanitizer to find the faulty work, and look for an Xid in the kernel's log";
    return "";
}

yoke_status device_of(void *handle, const char *call, Device **device)
{
    if (is_forked())
        return fail(
            YOKE_E_FORKED, 0,
            "cuda: %s was called in a forked child, in which the driver does not work; start the child with spawn or exec",
            call);
    Driver &found = driver();
    Device *wanted = static_cast<Device *>(handle);
    if (wanted < found.devices || wanted >= found.devices + found.device_count)
        return fail(YOKE_E_VALUE, 0, "cuda: %s was given a handle that is not a CUDA device", call);
    *device = wanted;
    return YOKE_OK;
}

Scope::Scope(void *device, const char *call)
{
    status_ = device_of(device, call, &device_);
    if (status_) return;
    const std::atomic_ref<CUcontext> context(device_->context);
    if (!context.load(std::memory_order_acquire)) status_ = make_ready(*device_, call);
    if (!status_) enter(context.load(std::memory_order_acquire), call);
}

Scope::Scope(Device &device, CUcontext context, const char *call) : device_(&device)
{
    if (context) enter(context, call);
}

void Scope::enter(CUcontext context, const char *call)
{
    status_ = check(driver().call.cuCtxPushCurrent(context), "%s: cuCtxPushCurrent", call);
    pushed_ = status_ == YOKE_OK;
}

Scope::~Scope()
{
    CUcontext ours = nullptr;
    if (pushed_) log_failure(*device_, driver().call.cuCtxPopCurrent(&ours), "cuCtxPopCurrent");
}

static yoke_status tell(const Device &device, int64_t error, const char *name, const char *text,
                        const char *what, va_list args)
{
    char tried[256];
    vsnprintf(tried, sizeof tried, what, args);
    note_loss(device, error);
    const char *cause = is_fatal(error) ? ", caused by earlier work on this device" : "";
    return fail(status_of(error), error, "cuda:%d: %s failed with %s (%lld), %s%s%s", device.index,
                tried, name, static_cast<long long>(error), text, cause, advice_for(error));
}

yoke_status Scope::check(cudaError_t error, const char *what, ...) const
{
    if (error == cudaSuccess) [[likely]]
        return YOKE_OK;
    cudaGetLastError();  // reported here, so a later launch must not find the error again
    va_list args;
    va_start(args, what);
    const yoke_status status =
        tell(*device_, error, cudaGetErrorName(error), cudaGetErrorString(error), what, args);
    va_end(args);
    return status;
}

yoke_status Scope::check(CUresult error, const char *what, ...) const
{
    if (error == CUDA_SUCCESS) [[likely]]
        return YOKE_OK;
    const char *name = nullptr, *text = nullptr;
    driver().call.cuGetErrorName(error, &name);
    driver().call.cuGetErrorString(error, &text);
    va_list args;
    va_start(args, what);
    const yoke_status status = tell(*device_, error, name ? name : "an unknown error",
                                    text ? text : "no text", what, args);
    va_end(args);
    return status;
}

yoke_status Scope::refuse(yoke_status status, const char *text, ...) const
{
    char message[512];
    va_list args;
    va_start(args, text);
    vsnprintf(message, sizeof message, text, args);
    va_end(args);
    return fail(status, 0, "cuda:%d: %s", device_->index, message);
}

}  // namespace yoke::cuda
