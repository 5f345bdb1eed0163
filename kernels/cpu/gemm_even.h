// Products with a depth where oneDNN's kernels fail, computed with a depth greater by 1.
#pragma once

#include "kernels/cpu/gemm.h"

namespace yoke::cpu {

// Returns whether oneDNN's kernels for AMX may end in an illegal instruction (2.6): depths that are odd and more than
// a tile. Seen with 3 to 130 rows, a depth of 63 and 240 columns; never with an even depth, nor without AMX.
bool is_broken_depth(const Product &product);

// Computes a product of broken depth by calls of compute(part, done). The parts have copies of a and b, whose depth
// is greater by 1 and ends in zeros. To keep the copies small, a part has some matrices, rows and columns only. The
// cut depends on the shape only. oneDNN supports the strides.
yoke_status compute_even(const yoke_launch *launch, const Product &product, ComputeProduct compute,
                         bool *done);

}  // namespace yoke::cpu
