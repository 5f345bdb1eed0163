// What every file of the CUDA module shares: the host's table, failures, devices, and the context
// in which a call runs.
//
// Contract
//  * CUDA is never touched before driver() has found that it can serve; see driver.h.
//  * Every entry that needs a device opens a Scope first. It makes the device's primary context
//    current and puts the caller's back on return, so that a host with CUDA of its own sees no
//    change, and no context is made on a device that nobody asked for.
//  * Every CUDA call passes Scope::check, the one place where an error becomes a status.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>

#include "core/backend/backend.h"

namespace yoke::cuda {

// Set once by the module's symbol, before any other entry can be called.
extern const yoke_host *g_host;

// Gives the host a formatted message and returns `status`.
yoke_status fail(yoke_status status, int64_t native_code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// After a fork the child's copy of the driver is useless: every entry that needs it fails at once.
void after_fork();
bool is_forked();

// A usable device. Its address is the handle that the core keeps; it is there for ever.
struct Device {
    int32_t index;    // among the usable ones: the N of cuda:N
    CUdevice number;  // CUDA's own
    uint64_t total_memory;
    int32_t multiprocessors;
    int32_t arch;         // what the code that runs there was compiled for: 90 is 9.0
    CUcontext context;    // null until a call first needs it; read and published as an atomic
    int32_t opens;        // device_open minus device_close
    struct Fault *fault;  // what kernels tell of wrong values; see fault.h
    uint64_t peers;       // bit n: was asked to reach CUDA's device n; see peers.h
};

// The status of a CUDA error; runtime and driver number their errors alike.
yoke_status status_of(int64_t error);

// Which of the usable devices a handle is; refuses what is none, and a forked child.
yoke_status device_of(void *handle, const char *call, Device **device);

// Makes the context of a device that is open and has none yet; what a Scope does first.
yoke_status make_ready(Device &device, const char *call);

class Scope {
public:
    // `call` is the entry's name, for messages. The first on a device makes its context, the price of which (some
    // hundred megabytes) only those devices cost that are used.
    Scope(void *device, const char *call);
    // For what comes before that: in a context that nobody else knows yet, or in none.
    Scope(Device &device, CUcontext context, const char *call);
    ~Scope();
    Scope(const Scope &) = delete;
    Scope &operator=(const Scope &) = delete;

    // Why the call cannot go on, or YOKE_OK; the host has been told.
    yoke_status status() const { return status_; }
    Device &device() const { return *device_; }

    // YOKE_OK, or tells the host what was tried ("cudaMalloc of 64 bytes") and what CUDA said.
    yoke_status check(cudaError_t error, const char *what, ...) const
        __attribute__((format(printf, 3, 4)));
    yoke_status check(CUresult error, const char *what, ...) const
        __attribute__((format(printf, 3, 4)));
    // For what CUDA was not asked: "cuda:0: <text>".
    yoke_status refuse(yoke_status status, const char *text, ...) const
        __attribute__((format(printf, 3, 4)));

private:
    void enter(CUcontext context, const char *call);

    Device *device_ = nullptr;
    yoke_status status_ = YOKE_OK;
    bool pushed_ = false;
};

}  // namespace yoke::cuda
