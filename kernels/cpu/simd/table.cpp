// The kernel table of this instruction set, in the order of the op table.
#include "core/backend/ops.inc"
#include "kernels/cpu/simd/simd.h"

YOKE_SIMD_BEGIN

namespace entry {
#define YOKE_DECLARE_KERNEL(name) yoke_status name(const yoke_launch *launch);
#define YOKE_NO_KERNEL(name)
YOKE_FOR_EACH_OP(YOKE_DECLARE_KERNEL, YOKE_NO_KERNEL)
}  // namespace entry

#define YOKE_ENTRY(name) entry::name,
#define YOKE_NULL_ENTRY(name) nullptr,
static const yoke_kernel_fn kKernels[] = {YOKE_FOR_EACH_OP(YOKE_ENTRY, YOKE_NULL_ENTRY)};

#if defined(__AVX512F__)
#define YOKE_ISA_NAME "AVX-512"
#elif defined(__AVX2__)
#define YOKE_ISA_NAME "AVX2"
#elif defined(__x86_64__)
#define YOKE_ISA_NAME "SSE2"
#else
#define YOKE_ISA_NAME "baseline"
#endif

extern const CombineFn kCombine;
extern const KernelTable kTable;
const KernelTable kTable = {kKernels, YOKE_ISA_NAME, kCombine};

YOKE_SIMD_END
