// powersgd.h: gradients of matrices as products of two thin matrices.
//
// For a gradient M of n rows and m columns, Q is orthogonalised. P = M Q is reduced and orthogonalised, then Q =
// transposed(M) P is reduced, and P transposed(Q) stands for the mean of all M. The error, M minus this product, is
// added to the next step's M, and the next Q begins with this Q. A column of Q that is 0 begins anew, alike on all
// ranks, or no part along the column would ever pass again. A matrix with too little saving is sent uncompressed, and
// so are all matrices of the first steps.
//
// T. Vogels, S. P. Karimireddy, M. Jaggi, "PowerSGD: Practical low-rank gradient compression for distributed
// optimization", 2019; the choice of matrices and steps is PyTorch's (powerSGD_hook.py).
#pragma once

#include "core/parallel/compression.h"

namespace yoke {

// Makes the compression. `options` is "rank=4,start=10,rate=2"; each part may be missing. Raises YOKE_E_VALUE for an
// unknown or invalid part.
std::unique_ptr<Compression> make_powersgd(const std::string &options, Ref<Group> group);

}  // namespace yoke
