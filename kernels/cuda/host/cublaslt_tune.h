// Choosing among cuBLASLt's algorithms by trying them, where YOKE_CUBLASLT_AUTOTUNE is 1.
//
// Contract
//  * A plan's first product then waits for the device while the eight algorithms that cuBLASLt thinks best are timed
//    (tune.h). They share one workspace, the largest that one of them asks for: so none is timed, or chosen, with less
//    than it wants.
//  * In a capture the plan takes cuBLASLt's first, or a winner that was kept, and is tuned by its first product outside
//    of a capture. What was captured stays as it is.
//  * Winners are kept in the file that YOKE_CUBLASLT_AUTOTUNE_FILE names.
#pragma once

#include "kernels/cuda/host/cublaslt_library.h"
#include "kernels/cuda/host/tune.h"

namespace yoke::cuda {

constexpr int kTuned = 8;

Tuning tuning_of(const yoke_launch *launch);
inline constexpr const char *kTunedProduct = "a matrix product";

// The algorithm that won before, by the file.
bool recall_winner(const yoke_launch *launch, const CublasLt &lt, const PlanKey &key,
                   cublasLtMatmulAlgo_t *algo);

void keep_winner(const yoke_launch *launch, const CublasLt &lt, const Plan &plan);

}  // namespace yoke::cuda
