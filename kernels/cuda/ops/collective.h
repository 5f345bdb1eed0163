// Elements in the form in which NCCL reduces them, where that is not their own.
//
// Contract
//  * Keys: unsigned integers that sort as floats do, for NCCL's min and max let go of NaN. A NaN has the key that wins;
//    it comes back as the quiet NaN. -0 is below 0. Those of 16-bit floats have 32 bits, for NCCL has none of 16.
//  * Wide: 16-bit floats as f32, so that sums are formed in f32; they are rounded once on their way back.
//  * Work goes to the launch's stream. `launch` needs no operands.
#pragma once

#include "kernels/common/combination.h"
#include "kernels/cuda/host/support.h"

namespace yoke::cuda {

enum class Form { kOwn, kKeys, kWide };

// Bytes of an element in a form.
inline int64_t bytes_in_form(Form form, yoke_dtype dtype)
{
    const int64_t own = kernels::dtype_bytes(dtype);
    return form != Form::kOwn && own == 2 ? 4 : own;
}

// `smallest`: the smallest key is to win, as NaN does.
yoke_status to_form(const yoke_launch *launch, Form form, yoke_dtype dtype, bool smallest,
                    const void *in, void *out, int64_t count);
yoke_status from_form(const yoke_launch *launch, Form form, yoke_dtype dtype, bool smallest,
                      const void *in, void *out, int64_t count);

}  // namespace yoke::cuda
