// The kernels' table of a module that is linked without kernels, in place of kernels/cuda/ops/kernels.cpp.
#include "core/backend/ops.inc"
#include "kernels/cuda/host/entries.h"
#include "kernels/cuda/ops/collective.h"

namespace yoke::cuda {

const yoke_kernel_fn kKernels[YOKE_OP_COUNT] = {};

static yoke_status refuse()
{
    return fail(YOKE_E_UNSUPPORTED, 0, "this module was linked without kernels");
}

yoke_status to_form(const yoke_launch *, Form, yoke_dtype, bool, const void *, void *, int64_t)
{
    return refuse();
}

yoke_status from_form(const yoke_launch *, Form, yoke_dtype, bool, const void *, void *, int64_t)
{
    return refuse();
}

}  // namespace yoke::cuda
