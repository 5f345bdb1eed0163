// powersgd_math.h: operations of PowerSGD on batches [count, rows, columns] and thin batches [count, rows, rank].
//
// In host memory, large matrices are processed some rows at a time, so an op finds the previous op's results in the
// cache. The time is then the time of memory alone. On other devices each op gets the whole batch.
#pragma once

#include "core/tensor/tensor.h"

#include <cstdint>
#include <vector>

namespace yoke {

// Returns a tensor of normal numbers from `seed`, the same on all ranks, whatever their generators are.
Tensor normal_numbers(Device &device, yoke_dtype dtype, const std::vector<int64_t> &shape,
                      uint64_t seed);

// Orthogonalises the columns of each matrix in their order, whatever their scale is. If a column is 0, or depends on
// earlier columns, the column of `fresh` replaces it; if `fresh` is null, the column becomes 0. A column that is not
// finite stays not finite.
void orthogonalize(const Tensor &matrices, const Tensor &fresh);

// Returns whether all elements are finite. Waits for the device.
bool is_finite(const yoke_tensor &tensor);

// Returns a view of the matrices with rows and columns exchanged.
Tensor transposed(const Tensor &matrices);

// Adds `matrices` to `errors`, all or, on failure, no part of them. Returns the product of the sum and `q`.
Tensor take_in(const Tensor &errors, const Tensor &matrices, const Tensor &q);

// Sets `matrices` to p by transposed(q), and subtracts the product from `errors`. On failure, `errors` stay
// unchanged.
void put_out(const Tensor &errors, const Tensor &matrices, const Tensor &p, const Tensor &q);

}  // namespace yoke
