// Failures of CUDA calls outside Scope::check: failures in a kernel's entry, and failures that only go to the log.
//
// Contract
//  * CUDA keeps the last failure for the next query. A failure reported here is cleared in CUDA, so no later launch
//    reports it again.
#pragma once

#include "kernels/cuda/host/cuda.h"

namespace yoke::cuda {

// Reports "one_hot: cuda:0: cudaMemsetAsync of 64 bytes failed with cudaErrorMemoryAllocation (2), out of memory",
// for a call beside the launch of kernels, and returns the error's status. If the error means a loss, reports the
// loss.
yoke_status call_failed(const yoke_launch *launch, cudaError_t error, const char *what, ...)
    __attribute__((format(printf, 3, 4)));

// Reports a loss found at a later call, and returns YOKE_E_DEVICE_LOST. CUDA reports a kernel's failure at any later
// call, also at a launch: "softmax: cuda:0: found at softmax, caused by earlier work on this device: …". For errors
// that status_of counts as a lost device.
yoke_status found_loss(const yoke_launch *launch, cudaError_t error, const char *where);

// Returns the error that lost the launch's device, or success. Called when a library with its own runtime failed,
// because this module's runtime does not record its errors. A lost context fails every call of every library.
cudaError_t why_lost(const yoke_launch *launch);

// Reports the failure of such a library with the text `text`, and returns `status`. If `lost`, from why_lost, is an
// error, reports the loss, whatever the library's status is.
yoke_status library_failed(const yoke_launch *launch, yoke_status status, int64_t code,
                           const char *text, cudaError_t lost);

// Notes the device as lost if the error means a loss. Returns whether this is new: later failures on a lost device
// have the same cause, which is reported once.
bool note_loss(const Device &device, int64_t error);
bool is_lost(const Device &device);

// Logs a warning, unless the error is a success: for releases, and for steps with an alternative. A device known to
// be lost gives no warning, because the loss was already reported.
void log_failure(const Device &device, cudaError_t error, const char *what);
void log_failure(const Device &device, CUresult error, const char *what);

}  // namespace yoke::cuda
