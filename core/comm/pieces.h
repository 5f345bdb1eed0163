// pieces.h: elements of a tensor in host memory, in small pieces, so a look at all elements needs no full copy.
#pragma once

#include "core/tensor/tensor.h"

#include <string>
#include <vector>

namespace yoke {

// Cuts a tensor into views of at most 1 MiB each, and returns them in row-major order. The cuts depend only on shape
// and dtype.
std::vector<Tensor> pieces_of(const yoke_tensor &x);
std::string bytes_of(const yoke_tensor &piece, const char *call);

}  // namespace yoke
