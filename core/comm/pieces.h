// pieces.h: the elements of a tensor on the host, a little at a time, so that looking at all takes no copy of it.
#pragma once

#include "core/tensor/tensor.h"

#include <string>
#include <vector>

namespace yoke {

// Views of it in row-major order, of 1 MiB at most each. Where they are cut hangs on its shape and dtype alone.
std::vector<Tensor> pieces_of(const yoke_tensor &x);
std::string bytes_of(const yoke_tensor &piece, const char *call);

}  // namespace yoke
