// The kernels' table of a module that is linked without kernels, in place of kernels/cuda/ops/kernels.cpp.
#include "core/backend/ops.inc"
#include "kernels/cuda/host/entries.h"

namespace yoke::cuda {

const yoke_kernel_fn kKernels[YOKE_OP_COUNT] = {};

}  // namespace yoke::cuda
