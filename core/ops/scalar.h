// scalar.h: how a script's number reaches a kernel: as the raw bits of an element.
#pragma once

#include "yoke/types.h"

namespace yoke {

// The bits of a script scalar in `dtype`, in the low bytes; floating dtypes are rounded once, to nearest and even, on the
// host. Promotion sees to it that a float meets a floating dtype or bool.
uint64_t scalar_bits(const yoke_arg &value, yoke_dtype dtype);

}  // namespace yoke
