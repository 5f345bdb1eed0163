// A product in cuBLASLt's terms.
#pragma once

#include "kernels/cuda/host/cublaslt.h"
#include "kernels/cuda/host/cublaslt_plans.h"

namespace yoke::cuda {

// Product as passed to cuBLASLt. A row-major m x n matrix is a column-major n x m matrix. So cuBLASLt computes the
// transpose, with a and b exchanged.
struct Request {
    PlanKey key = {};
    const void *a, *b;   // cuBLASLt's A is the product's b
    const void *vector;  // bias to add, or row sums to write; null for none
    void *d, *before;
    bool adds;  // D += op(A) op(B)

    Request(const yoke_launch *launch, const Gemm &gemm);

private:
    void place(int i, const Matrix &matrix, int64_t rows, int64_t columns, int64_t batch);
};

// Returns the product of `count` batches, from batch `first` on.
Gemm part_of(const Gemm &gemm, int64_t first, int64_t count);

}  // namespace yoke::cuda
