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

// Logs a failed call as a warning, for steps with an alternative, and returns YOKE_OK. If the device is lost, reports
// and returns the loss instead.
yoke_status cublaslt_pass_over(const yoke_launch *launch, cublasStatus_t status, const char *what);
// Logs a failed call as a warning. Logs nothing for a success, and nothing if the device is lost.
void cublaslt_log(const Device &device, cublasStatus_t status, const char *what);

// Returns whether a cuBLASLt works here. The first call looks for the library.
bool cublaslt_is_found();

// Returns the state of the launch's device, made at the first call. Fails with YOKE_E_UNAVAILABLE if the library is
// missing, and with cuBLASLt's failure to make a handle.
yoke_status cublaslt_of(const yoke_launch *launch, CublasLt **out);

// Returns YOKE_OK for success, else reports "matmul: cuda:0: cublasLtMatmul of … failed with
// CUBLAS_STATUS_EXECUTION_FAILED (13), …". If the context is lost, returns YOKE_E_DEVICE_LOST, with CUDA's error too:
// cuBLASLt has no status for this.
yoke_status cublaslt_check(const yoke_launch *launch, cublasStatus_t status, const char *what, ...)
    __attribute__((format(printf, 3, 4)));

}  // namespace yoke::cuda
