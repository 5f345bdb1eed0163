// Forms of elements for NCCL's reductions, if NCCL cannot reduce the elements themselves.
//
// Contract
//  * Keys: unsigned integers in the order of floats, because NCCL's min and max drop NaN. A NaN has the winning key
//    and comes back as the quiet NaN. -0 is below 0. Keys of 16-bit floats have 32 bits, because NCCL has no type of
//    16.
//  * Wide: 16-bit floats as f32, so sums are formed in f32. They are rounded once on the way back.
//  * Work goes to the launch's stream. `launch` needs no operands.
#pragma once

#include "kernels/common/combination.h"
#include "kernels/cuda/host/support.h"

namespace yoke::cuda {

enum class Form { kOwn, kKeys, kWide };

// Returns the bytes of an element in a form.
inline int64_t bytes_in_form(Form form, yoke_dtype dtype)
{
    const int64_t own = kernels::dtype_bytes(dtype);
    return form != Form::kOwn && own == 2 ? 4 : own;
}

// Converts `count` elements to a form. `smallest` is for a minimum: the smallest key wins, and NaN has the smallest
// key. Fails for a dtype without the form.
yoke_status to_form(const yoke_launch *launch, Form form, yoke_dtype dtype, bool smallest,
                    const void *in, void *out, int64_t count);
// Converts `count` elements back from a form.
yoke_status from_form(const yoke_launch *launch, Form form, yoke_dtype dtype, bool smallest,
                      const void *in, void *out, int64_t count);

}  // namespace yoke::cuda
