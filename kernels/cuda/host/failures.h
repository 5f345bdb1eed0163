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

// One line of warning, unless it is a success: where something is given back, or where there is a way on without it.
void log_failure(const Device &device, cudaError_t error, const char *what);
void log_failure(const Device &device, CUresult error, const char *what);

}  // namespace yoke::cuda
