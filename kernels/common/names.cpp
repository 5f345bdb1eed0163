#include "kernels/common/names.h"

#include "core/backend/ops.inc"

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
    static const char *const names[YOKE_DTYPE_COUNT] = {
        "none",  "float64", "float32", "float16", "bfloat16",    "int64",
        "int32", "int8",    "uint8",   "bool",    "float8_e4m3", "float8_e5m2"};
    return dtype >= 0 && dtype < YOKE_DTYPE_COUNT ? names[dtype] : "an unknown dtype";
}

}  // namespace yoke::kernels
