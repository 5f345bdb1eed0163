// Products so deep that one float32 sum over all of the depth would stop growing.
#pragma once

#include "kernels/cpu/gemm.h"

namespace yoke::cpu {

// Says whether a product of float32 is to be cut along its depth. oneDNN (2.6) adds up a product by a vector term by
// term: at 2^24 ones it stands still. Those of matrices it adds in blocks, and cuts are far apart.
bool is_too_deep(const Product &product);

// Runs compute(part, done) for parts of a product that is too deep, whose strides oneDNN takes; each is added to the
// result of those before it. The cut follows from the shape alone.
yoke_status compute_deep(const yoke_launch *launch, const Product &product, ComputeProduct compute,
                         bool *done);

}  // namespace yoke::cpu
