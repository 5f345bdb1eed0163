// indexing.h: NumPy's basic indexing, x[1, ::2, None, ...], as a chain of view ops.
#pragma once

#include "core/tensor/tensor.h"
#include "yoke/tensor.h"

namespace yoke::capi {

// A view of x's memory, recorded. Raises YOKE_E_INDEX or YOKE_E_VALUE, naming `call` and the item.
Tensor basic_index(const yoke_tensor &x, std::span<const yoke_index> items, const char *call);

}  // namespace yoke::capi
