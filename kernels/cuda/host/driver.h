// driver.h: NVIDIA's driver library, found and examined once, before the CUDA runtime is touched.
//
// The runtime would report a missing, old or broken driver by a single number. Here each case has a reason and a
// remedy. The library is looked up first among the process's loaded libraries, then in the folders of
// YOKE_CUDA_LIB_PATH, then by the system's loader. It is never unloaded.
#pragma once

#include "kernels/cuda/host/cuda.h"

namespace yoke::cuda {

// Driver calls made by the module itself. Each is looked up under the name that cuda.h's macros give
// (cuCtxPushCurrent is cuCtxPushCurrent_v2).
#define YOKE_CUDA_DRIVER_CALLS(CALL)    \
    CALL(cuInit)                        \
    CALL(cuDriverGetVersion)            \
    CALL(cuGetErrorName)                \
    CALL(cuGetErrorString)              \
    CALL(cuDeviceGetCount)              \
    CALL(cuDeviceGet)                   \
    CALL(cuDeviceGetName)               \
    CALL(cuDeviceGetAttribute)          \
    CALL(cuDeviceTotalMem)              \
    CALL(cuDevicePrimaryCtxRetain)      \
    CALL(cuDevicePrimaryCtxRelease)     \
    CALL(cuCtxPushCurrent)              \
    CALL(cuCtxPopCurrent)               \
    CALL(cuMemGetAllocationGranularity) \
    CALL(cuMemAddressReserve)           \
    CALL(cuMemAddressFree)              \
    CALL(cuMemCreate)                   \
    CALL(cuMemRelease)                  \
    CALL(cuMemMap)                      \
    CALL(cuMemUnmap)                    \
    CALL(cuMemSetAccess)

struct DriverCalls {
#define YOKE_CUDA_MEMBER(call) decltype(&::call) call;
    YOKE_CUDA_DRIVER_CALLS(YOKE_CUDA_MEMBER)
#undef YOKE_CUDA_MEMBER
};

constexpr int kMaxDevices = 64;

// Result of the examination; it never changes afterwards.
struct Driver {
    DriverCalls call;
    int32_t version;       // CUDA version of the driver, from cuDriverGetVersion: 13000
    int32_t device_count;  // usable ones
    Device devices[kMaxDevices];
    // Reason that there are no devices, else "". `broken` marks a driver that is present but fails, which a user must
    // learn, unlike on a machine without a GPU.
    char reason[1024];
    yoke_status broken;
    int64_t native_code;
};

// Returns the driver, examined at the first call.
Driver &driver();

// Returns the remedy for an error at the driver's start, a clause for use after a semicolon. Unknown errors have a
// remedy too.
const char *remedy_of(int64_t error);

// Returns the remedy for an error that lost the context, from its semicolon on; "" for other errors.
const char *advice_for(int64_t error);

}  // namespace yoke::cuda
