// The table of kernels of a module that has those of collectives alone, which no op is.
#include "core/backend/ops.inc"
#include "kernels/cuda/host/entries.h"

namespace yoke::cuda {

const yoke_kernel_fn kKernels[YOKE_OP_COUNT] = {};

}  // namespace yoke::cuda
