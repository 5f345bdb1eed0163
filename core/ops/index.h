// index.h: checks that the ops with indices and masks share.
#pragma once

#include "core/ops/args.h"

namespace yoke {

// Raises YOKE_E_TYPE unless the mask is bool.
void check_mask(const yoke_tensor &mask, const char *call);

// Raises unless argument 'value' is a number that fits x's dtype, or a tensor without axes whose dtype does.
void check_lone_value(const yoke_tensor &x, const yoke_arg &value, const char *call);

// Raises YOKE_E_VALUE unless `index` has as many axes as `within` and is nowhere longer, except along `axis` (-1: no
// exception).
void check_index_shape(const yoke_tensor &index, const yoke_tensor &within, const char *which,
                       int axis, const char *call);

}  // namespace yoke
