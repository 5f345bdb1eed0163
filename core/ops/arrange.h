// arrange.h: parts common to ops that join tensors and ops that cut tensors.
#pragma once

#include "core/ops/family.h"

namespace yoke {

// The axis of x, counted from 0. Raises where x has none.
int existing_axis(const yoke_tensor &x, int64_t axis, const char *call);

}  // namespace yoke
