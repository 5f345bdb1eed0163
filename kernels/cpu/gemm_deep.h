// Products so deep that a single float32 sum over the whole depth would stop growing.
#pragma once

#include "kernels/cpu/gemm.h"

namespace yoke::cpu {

// Returns whether a product of float32 is to be cut along its depth. oneDNN (2.6) adds a product by a vector term by
// term: a sum of ones stops at 2^24. Products of matrices are added in blocks, so cuts are far apart.
bool is_too_deep(const Product &product);

// Runs compute(part, done) for parts of a product that is too deep, and adds each part to the result of the earlier
// parts. oneDNN supports the strides. The cut depends on the shape only.
yoke_status compute_deep(const yoke_launch *launch, const Product &product, ComputeProduct compute,
                         bool *done);

}  // namespace yoke::cpu
