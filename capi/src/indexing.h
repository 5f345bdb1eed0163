// indexing.h: NumPy's indexing, x[1, ::2, None, ..., mask, integers]: ints, slices and new axes are a chain of view
// ops; masks and integer tensors become one _index or index_put of the core.
#pragma once

#include "core/tensor/tensor.h"
#include "yoke/tensor.h"

namespace yoke::capi {

using Items = std::span<const yoke_index>;

// Returns x[items], recorded: a view of x's memory, or a copy if an item is a tensor or a bool. All of these
// functions raise YOKE_E_INDEX, YOKE_E_TYPE or YOKE_E_VALUE, naming `call` and the item.
Tensor index(const yoke_tensor &x, Items items, const char *call);

// Write x[items] = values, broadcast and cast. If an element is named twice, the last value stays.
void index_put(yoke_tensor &x, Items items, const yoke_tensor &values, const char *call);
void index_fill(yoke_tensor &x, Items items, const yoke_arg &value, const char *call);

}  // namespace yoke::capi
