// Failures of CUDA's calls that pass no Scope::check: those of a kernel's entry, and those that only the log is
// left to hear of.
//
// Contract
//  * CUDA keeps the last failure for whoever asks next. Whatever is told here is forgotten there, so that no later
//    launch is blamed for it.
#pragma once

#include "kernels/cuda/host/cuda.h"

namespace yoke::cuda {

// "one_hot: cuda:0: cudaMemsetAsync of 64 bytes failed with cudaErrorMemoryAllocation (2), out of memory", for a call
// that is made beside the launch of kernels.
yoke_status call_failed(const yoke_launch *launch, cudaError_t error, const char *what, ...)
    __attribute__((format(printf, 3, 4)));

// CUDA tells a kernel's failure at whatever call comes next, a launch among them: "softmax: cuda:0: found at softmax,
// caused by earlier work on this device: …", for the errors that status_of counts as a lost device.
yoke_status found_loss(const yoke_launch *launch, cudaError_t error, const char *where);

// By what the launch's device was lost, or success: asked when a library failed that brings a runtime of its own, of
// whose errors ours keeps none. A lost context fails every call of anybody.
cudaError_t why_lost(const yoke_launch *launch);

// The failure of such a library that `text` tells; where the device is lost, that, whatever the library calls it.
yoke_status library_failed(const yoke_launch *launch, yoke_status status, int64_t code,
                           const char *text, cudaError_t lost);

// Notes the device as lost where that is what the error means. Whether it was not known before: what fails on a lost
// device fails by the loss, which is told once.
bool note_loss(const Device &device, int64_t error);
bool is_lost(const Device &device);

// One line of warning, unless it is a success: where something is given back, or where there is a way on without it.
// Of a device that is known to be lost there is none: that was told when it was found.
void log_failure(const Device &device, cudaError_t error, const char *what);
void log_failure(const Device &device, CUresult error, const char *what);

}  // namespace yoke::cuda
