// arrange.h: parts common to ops that join tensors and ops that cut tensors.
#pragma once

#include "core/ops/family.h"

namespace yoke {

// Returns the axis of x, counted from 0. Raises YOKE_E_VALUE if x has no axes, and YOKE_E_INDEX for an axis out of
// range.
int existing_axis(const yoke_tensor &x, int64_t axis, const char *call);

}  // namespace yoke
