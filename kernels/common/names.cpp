#include "kernels/common/names.h"

#include "core/backend/ops.inc"
#include "kernels/common/dtypes.inc"

namespace yoke::kernels {

const char *op_name(int32_t op)
{
#define YOKE_NAME(name) #name,
    static const char *const names[] = {YOKE_FOR_EACH_OP(YOKE_NAME, YOKE_NAME)};
#undef YOKE_NAME
    return op >= 0 && op < YOKE_OP_COUNT ? names[op] : "unknown op";
}

const char *dtype_name(yoke_dtype dtype)
{
    static const char *const names[YOKE_DTYPE_COUNT] = {YOKE_DTYPE_NAMES};
    return dtype >= 0 && dtype < YOKE_DTYPE_COUNT ? names[dtype] : "an unknown dtype";
}

}  // namespace yoke::kernels
