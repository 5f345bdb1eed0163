// Plan of cuBLASLt: the key of a product, and the descriptors and the algorithm chosen for this key.
//
// Contract
//  * A key has no padding: it is hashed and compared as bytes.
#pragma once

#include <cublasLt.h>

#include <cstdint>

namespace yoke::cuda {

// Key of a product, in cuBLASLt's terms: column-major, D = op(A) op(B).
struct PlanKey {
    int64_t rows, columns, inner, batch;
    int64_t leading[3],
        step[3];  // A, B, D: leading dimensions, and steps from matrix to matrix of a batch
    int32_t dtype, epilogue;
    int32_t transposed[2];  // A, B
    int8_t alignment[6];    // A, B, D, bias, second output of the epilogue: powers of two, to 8
    int8_t tf32;
    int8_t wide;       // 1: D is float32, though A and B are halves
    int8_t untried;    // 1: of a deterministic launch, which takes no plan chosen by its time
    int8_t unused[7];  // zeros, because keys are compared as bytes
};

struct Plan {
    PlanKey key;
    uint64_t used;  // clock of the last use, for eviction; 0: free
    cublasLtMatmulDescOpaque_t product;
    cublasLtMatrixLayoutOpaque_t a, b, d;
    cublasLtMatmulAlgo_t algo;
    uint64_t workspace;  // bytes
    int64_t exists;      // 0: cuBLASLt has no algorithm for this
    int64_t untuned;     // 1: tuned at the next product outside a capture
};

}  // namespace yoke::cuda
