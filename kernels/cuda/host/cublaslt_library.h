// cuBLASLt as found: its functions, and the state kept for each device.
#pragma once

#include <atomic>

#include "kernels/cuda/host/cublaslt_plans.h"
#include "kernels/cuda/host/library.h"
#include "kernels/cuda/host/support.h"

namespace yoke::cuda {

#define YOKE_CUBLASLT_CALLS(CALL)               \
    CALL(cublasLtGetVersion)                    \
    CALL(cublasLtGetStatusName)                 \
    CALL(cublasLtGetStatusString)               \
    CALL(cublasLtCreate)                        \
    CALL(cublasLtDestroy)                       \
    CALL(cublasLtMatrixLayoutInit_internal)     \
    CALL(cublasLtMatrixLayoutSetAttribute)      \
    CALL(cublasLtMatmulDescInit_internal)       \
    CALL(cublasLtMatmulDescSetAttribute)        \
    CALL(cublasLtMatmulPreferenceInit_internal) \
    CALL(cublasLtMatmulPreferenceSetAttribute)  \
    CALL(cublasLtMatmulAlgoGetHeuristic)        \
    CALL(cublasLtMatmulAlgoCheck)               \
    CALL(cublasLtMatmul)

struct CublasLtCalls {
    YOKE_CUBLASLT_CALLS(YOKE_LIBRARY_MEMBER)
};

struct CublasLt {
    const CublasLtCalls *call = nullptr;
    cublasLtHandle_t handle = nullptr;
    std::atomic<bool> is_tried{};  // a product was made with the handle
    PlanCache plans;
};

// Log a warning, unless the status is a success. For steps with an alternative. During a launch, a lost device gives
// no warning: pass_over returns the loss instead.
yoke_status cublaslt_pass_over(const yoke_launch *launch, cublasStatus_t status, const char *what);
void cublaslt_log(const Device &device, cublasStatus_t status, const char *what);

// Whether there is such a library here; looks for it at the first call.
bool cublaslt_is_found();

// Returns the state of the launch's device, made at the first call.
yoke_status cublaslt_of(const yoke_launch *launch, CublasLt **out);

// "matmul: cuda:0: cublasLtMatmul of … failed with CUBLAS_STATUS_EXECUTION_FAILED (13), …". YOKE_OK for success.
// YOKE_E_DEVICE_LOST, with CUDA's error too, where the context is lost: of that cuBLASLt has no status.
yoke_status cublaslt_check(const yoke_launch *launch, cublasStatus_t status, const char *what, ...)
    __attribute__((format(printf, 3, 4)));

}  // namespace yoke::cuda
