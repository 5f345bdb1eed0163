// powersgd.h: gradients of matrices as products of two thin ones.
//
// Of a gradient M of n rows and m columns, Q is orthogonalised and P = M Q is reduced and orthogonalised, then Q =
// transposed(M) P is reduced, and P transposed(Q) stands for the mean of all M. What it lacks of M is added to the next
// step's M, and the next Q begins as this one ended; a column of it that is 0 begins anew, alike on all ranks, or
// nothing along it would ever pass again. Matrices of which it spares too little pass as they are, and so do the first
// steps.
//
// T. Vogels, S. P. Karimireddy, M. Jaggi, "PowerSGD: Practical low-rank gradient compression for distributed
// optimization", 2019; what is compressed and when is PyTorch's choice (powerSGD_hook.py).
#pragma once

#include "core/parallel/compression.h"

namespace yoke {

// `options` is "rank=4,start=10,rate=2", each of which may be missing. Raises YOKE_E_VALUE.
std::unique_ptr<Compression> make_powersgd(const std::string &options, Ref<Group> group);

}  // namespace yoke
