// Table of the kernels: the op `add` has yoke_cuda_add, from a .cu file of this folder. If the kernel of an op is
// missing, linking fails. A build without kernels has another table.
#include "core/backend/ops.inc"
#include "kernels/cuda/host/entries.h"

// Hidden: otherwise an undefined symbol would be left to the loader.
#define YOKE_DECLARE(op)                             \
    extern "C" __attribute__((visibility("hidden"))) \
    yoke_status yoke_cuda_##op(const yoke_launch *launch);
#define YOKE_NOTHING(op)
YOKE_FOR_EACH_OP(YOKE_DECLARE, YOKE_NOTHING)
#undef YOKE_DECLARE
#undef YOKE_NOTHING

namespace yoke::cuda {

#define YOKE_ENTRY(op) yoke_cuda_##op,
#define YOKE_NULL_ENTRY(op) nullptr,
const yoke_kernel_fn kKernels[YOKE_OP_COUNT] = {YOKE_FOR_EACH_OP(YOKE_ENTRY, YOKE_NULL_ENTRY)};
#undef YOKE_ENTRY
#undef YOKE_NULL_ENTRY

}  // namespace yoke::cuda
