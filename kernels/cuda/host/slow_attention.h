// Warning of an attention of 16-bit floats without tensor cores.
#pragma once

#include "kernels/cuda/host/support.h"

namespace yoke::cuda {

// Warns, once in a process, that kernels for float32 compute the launch. Names the reason and the remedy. Does nothing
// for other dtypes. The widths are those of the query and of the values.
void tell_slow_attention(const yoke_launch *launch, yoke_dtype dtype, int64_t width,
                         int64_t value_width);

}  // namespace yoke::cuda
