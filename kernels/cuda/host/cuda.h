// Common declarations of the CUDA module: the core's table, failures, devices, and the context of a call.
//
// Contract
//  * CUDA is never touched before driver() has found a working driver; see driver.h.
//  * Every entry that needs a device opens a Scope first. The Scope makes the device's primary context current and
//    restores the caller's context on return. So a host program with CUDA code sees no change, and unused devices get
//    no context.
//  * Scope::check turns the error of a CUDA call into a status. failures.h does this for calls outside a Scope.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>

#include "core/backend/backend.h"

namespace yoke::cuda {

// Core's functions. The module's symbol sets the pointer, before any other entry can be called.
extern const yoke_host *g_host;

// Reports a formatted message to the core and returns `status`.
yoke_status fail(yoke_status status, int64_t native_code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Marks this process as a forked child. The child's copy of the driver is useless, so every entry that needs the
// driver fails from then on.
void after_fork();
bool is_forked();

// Usable device. Its address is the core's handle and stays valid.
struct Device {
    int32_t index;    // among the usable ones: the N of cuda:N
    CUdevice number;  // CUDA's own
    uint64_t total_memory;
    int32_t multiprocessors;
    int32_t arch;         // architecture of the compiled code: 90 is 9.0
    CUcontext context;    // null until a call first needs it; read and published as an atomic
    int32_t opens;        // device_open minus device_close
    struct Fault *fault;  // kernels' reports of wrong values; see fault.h
    uint64_t peers;       // bit n: was asked to reach CUDA's device n; see peers.h
};

// Returns the status for a CUDA error, YOKE_E_INTERNAL for errors without a status. Runtime and driver number their
// errors alike.
yoke_status status_of(int64_t error);

// Finds the usable device of a handle. Fails with YOKE_E_VALUE for invalid handles, and with YOKE_E_FORKED in a
// forked child.
yoke_status device_of(void *handle, const char *call, Device **device);

// Makes the context of an open device, if it has none. Fails with YOKE_E_CLOSED if the device is not open. A Scope
// does this first.
yoke_status make_ready(Device &device, const char *call);

// Opens a device once more for a caller that has it open. Takes no lock, which another thread may hold in the driver.
void keep_open(Device &device);

class Scope {
public:
    // `call` is the entry's name, for messages. The first Scope on a device makes its context, which costs some
    // hundred megabytes. So only used devices cost memory.
    Scope(void *device, const char *call);
    // Enters `context`, or no context if null. For steps before the device's context is known to other threads.
    Scope(Device &device, CUcontext context, const char *call);
    ~Scope();
    Scope(const Scope &) = delete;
    Scope &operator=(const Scope &) = delete;

    // Returns YOKE_OK, or the failure to enter the context, already reported to the core.
    yoke_status status() const { return status_; }
    Device &device() const { return *device_; }

    // Returns YOKE_OK for success. Else reports the tried call ("cudaMalloc of 64 bytes") and CUDA's text to the
    // core, and returns the error's status.
    yoke_status check(cudaError_t error, const char *what, ...) const
        __attribute__((format(printf, 3, 4)));
    yoke_status check(CUresult error, const char *what, ...) const
        __attribute__((format(printf, 3, 4)));
    // Reports "cuda:0: <text>" for a refusal without a CUDA call, and returns `status`.
    yoke_status refuse(yoke_status status, const char *text, ...) const
        __attribute__((format(printf, 3, 4)));

private:
    void enter(CUcontext context, const char *call);

    Device *device_ = nullptr;
    yoke_status status_ = YOKE_OK;
    bool pushed_ = false;
};

}  // namespace yoke::cuda
