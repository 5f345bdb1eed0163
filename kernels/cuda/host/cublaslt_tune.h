// Choice among cuBLASLt's algorithms by trial, if YOKE_CUBLASLT_AUTOTUNE is 1.
//
// Contract
//  * A plan's first product waits for the device while cuBLASLt's eight best algorithms are timed (tune.h). They
//    share a workspace as large as the largest request, so each algorithm is timed and chosen with its full
//    workspace.
//  * In a capture the plan takes cuBLASLt's first algorithm, or a stored winner. The first product outside a capture
//    then tunes the plan. The captured work stays as it is.
//  * Winners are stored in the file named by YOKE_CUBLASLT_AUTOTUNE_FILE.
#pragma once

#include "kernels/cuda/host/cublaslt_library.h"
#include "kernels/cuda/host/tune.h"

namespace yoke::cuda {

constexpr int kTuned = 8;

Tuning tuning_of(const yoke_launch *launch);
inline constexpr const char *kTunedProduct = "a matrix product";

// Reads the product's stored winner into *algo. Returns false if the file has none.
bool recall_winner(const yoke_launch *launch, const CublasLt &lt, const PlanKey &key,
                   cublasLtMatmulAlgo_t *algo);

void keep_winner(const yoke_launch *launch, const CublasLt &lt, const Plan &plan);

}  // namespace yoke::cuda
