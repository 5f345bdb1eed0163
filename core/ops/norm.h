// norm.h: what the shape rules of normalisations share.
#pragma once

#include "core/ops/family.h"

namespace yoke {

// Returns the dtype of statistics for values of a dtype: float64 for float64, else float32.
yoke_dtype statistics_dtype(yoke_dtype dtype);

// Raises unless a weight, bias or statistic beside x fits: the shape, and x's dtype; or float32 beside a half, if the
// op takes it.
void check_beside(const yoke_tensor *p, const char *arg, const yoke_tensor &x, IntList shape,
                  const char *call, bool takes_f32 = false);

// States a gradient as a result, or an empty result if the gradient is not wanted.
void plan_gradient(Plan &plan, bool wanted, const yoke_tensor &like);
void plan_gradient(Plan &plan, bool wanted, IntList shape, yoke_dtype dtype);

}  // namespace yoke
