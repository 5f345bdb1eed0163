// driver.h: NVIDIA's driver library, found and examined once, before the CUDA runtime is touched.
//
// The runtime would report a missing, old or broken driver by one number; here each has its reason
// and remedy. The library is looked up where the process has one already, then in the folders of
// YOKE_CUDA_LIB_PATH, then where the system's loader looks. It is never unloaded.
#pragma once

#include "kernels/cuda/host/cuda.h"

namespace yoke::cuda {

// What the module calls of the driver by itself, each looked up under the name to which cuda.h's
// macros turn it (cuCtxPushCurrent is cuCtxPushCurrent_v2).
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

// What came of the examination; never changes afterwards.
struct Driver {
    DriverCalls call;
    int32_t version;       // of CUDA that it speaks, as cuDriverGetVersion has it: 13000
    int32_t device_count;  // usable ones
    Device devices[kMaxDevices];
    // Why there are none, "" if there are. `broken` tells a driver that is there and fails, which a
    // user wants to know, from a machine that simply has no GPU.
    char reason[1024];
    yoke_status broken;
    int64_t native_code;
};

// Examines the driver at the first call; the same for all later ones.
Driver &driver();

// What to do about an error of cuInit or of counting devices: a clause for behind a semicolon.
const char *remedy_of(int64_t error);

// What to do about an error that has lost the context, from its semicolon on; "" for any other.
const char *advice_for(int64_t error);

}  // namespace yoke::cuda
