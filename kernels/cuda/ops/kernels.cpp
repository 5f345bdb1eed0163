// The kernels' table: for the op `add` it is yoke_cuda_add, which stands in one of this folder's .cu files. An op whose
// kernel is missing is an error of the linker. What is linked without kernels has a table of its own instead.
#include "core/backend/ops.inc"
#include "kernels/cuda/host/entries.h"

// Hidden: an undefined symbol that others may see is left to the loader.
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
