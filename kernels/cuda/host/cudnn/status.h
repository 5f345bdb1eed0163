// Reports of cuDNN's failures.
#pragma once

#include "kernels/cuda/host/cuda.h"
#include "kernels/cuda/host/cudnn/graph.h"

namespace yoke::cuda {

// "conv2d: cuda:0: cudnnBackendExecute of 8 x 64 x 56 x 56 failed with CUDNN_STATUS_EXECUTION_FAILED (5000): …", what
// follows being cuDNN's own account. YOKE_OK for success. YOKE_E_DEVICE_LOST, with CUDA's error too, where the context
// is lost.
yoke_status cudnn_check(const yoke_launch *launch, const CudnnFailure &failure, const char *what,
                        ...) __attribute__((format(printf, 3, 4)));

// Logs a warning if there is an alternative to cuDNN, once for each of these reasons in a process.
enum class CudnnReason { kMissing, kFailed, kPassedOver, kNoEngine, kLessRoom, kNoRoom };
void cudnn_warn(CudnnReason reason, const char *line);

// A line of warning of a failure, each time.
void cudnn_log(const Device &device, const CudnnFailure &failure);

// Logs that the next plan, or Yoke's own kernels, run instead. Returns YOKE_OK, unless the device is lost.
inline constexpr const char *kOwnKernels = "Yoke's own kernels are used";
yoke_status cudnn_pass_over(const yoke_launch *launch, const CudnnFailure &failure,
                            bool has_next = false);

}  // namespace yoke::cuda
