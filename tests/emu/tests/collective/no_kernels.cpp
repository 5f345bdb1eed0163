// The table of kernels in a module with only the kernels for collectives, which are no ops.
#include "core/backend/ops.inc"
#include "kernels/cuda/host/entries.h"

namespace yoke::cuda {

const yoke_kernel_fn kKernels[YOKE_OP_COUNT] = {};

}  // namespace yoke::cuda
