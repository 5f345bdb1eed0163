// The kernels' table of a module that is linked without kernels, in place of kernels/cuda/kernels.cpp.
#include "core/backend/ops.inc"
#include "kernels/cuda/entries.h"

namespace yoke::cuda {

const yoke_kernel_fn kKernels[YOKE_OP_COUNT] = {};

}  // namespace yoke::cuda
