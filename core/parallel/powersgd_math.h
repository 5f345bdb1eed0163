// powersgd_math.h: what PowerSGD computes of its matrices: batches [count, rows, columns], and thin ones [count, rows,
// rank].
//
// On the host large matrices are taken some rows at a time, so that what one op leaves in the cache the next one finds
// there: time is that of memory alone. Elsewhere each op has the whole batch.
#pragma once

#include "core/tensor/tensor.h"

#include <cstdint>
#include <vector>

namespace yoke {

// Alike on all ranks, whatever their generators are.
Tensor normal_numbers(Device &device, yoke_dtype dtype, const std::vector<int64_t> &shape,
                      uint64_t seed);

// The columns of each matrix, one after the other, whatever their scale is. One that is 0, or that those before it make
// up, becomes that of `fresh`, and 0 where that is null; one that is not finite stays so.
void orthogonalize(const Tensor &matrices, const Tensor &fresh);

// Waits for the device.
bool is_finite(const yoke_tensor &tensor);

// A view.
Tensor transposed(const Tensor &matrices);

// `errors` get `matrices` added, all or none where it fails; gives what that is by `q`.
Tensor take_in(const Tensor &errors, const Tensor &matrices, const Tensor &q);

// `matrices` become p by transposed(q), and `errors` lose as much, all or none where it fails.
void put_out(const Tensor &errors, const Tensor &matrices, const Tensor &p, const Tensor &q);

}  // namespace yoke
