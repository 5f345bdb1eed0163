// Products with a depth where oneDNN's kernels fail, computed with a depth greater by 1.
#pragma once

#include "kernels/cpu/gemm.h"

namespace yoke::cpu {

// Whether oneDNN's kernels for AMX may end in an illegal instruction (2.6): depths that are odd and more than a tile.
// Seen with 3 to 130 rows, a depth of 63 and 240 columns; never with an even depth, nor without AMX.
bool is_broken_depth(const Product &product);

// compute(product, done) for a product of broken depth, whose strides oneDNN takes: with copies of a and b that end in
// zeros, of so many matrices, rows and columns at a time as keep them small. The cut follows from the shape alone.
yoke_status compute_even(const yoke_launch *launch, const Product &product, ComputeProduct compute,
                         bool *done);

}  // namespace yoke::cpu
