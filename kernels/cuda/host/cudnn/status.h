// Reports of cuDNN's failures.
#pragma once

#include "kernels/cuda/host/cuda.h"
#include "kernels/cuda/host/cudnn/graph.h"

namespace yoke::cuda {

// Returns YOKE_OK for success. Else reports "conv2d: cuda:0: cudnnBackendExecute of 8 x 64 x 56 x 56 failed with
// CUDNN_STATUS_EXECUTION_FAILED (5000): …", with cuDNN's own text at the end. If the context is lost, returns
// YOKE_E_DEVICE_LOST, with CUDA's error too.
yoke_status cudnn_check(const yoke_launch *launch, const CudnnFailure &failure, const char *what,
                        ...) __attribute__((format(printf, 3, 4)));

// Reason of a warning about cuDNN.
enum class CudnnReason {
    kMissing,
    kFailed,
    kPassedOver,
    kNoEngine,
    kLessRoom,
    kNoRoom,
    // of attention
    kWidths,
    kLayout,
    kKeyCount,
    kNoAttention,
    kLimit
};
// Logs a warning if there is an alternative to cuDNN, once for each reason in a process.
void cudnn_warn(CudnnReason reason, const char *line);

// Logs a warning about a failure, at each call.
void cudnn_log(const Device &device, const CudnnFailure &failure);

// Alternative to cuDNN, for messages.
inline constexpr const char *kOwnKernels = "Yoke's own kernels are used";
// Warns of a failure, and that the next plan or Yoke's own kernels run instead. Returns YOKE_OK. If the device is
// lost, reports and returns the loss.
yoke_status cudnn_pass_over(const yoke_launch *launch, const CudnnFailure &failure,
                            bool has_next = false);

}  // namespace yoke::cuda
