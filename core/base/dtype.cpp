#include "core/base/dtype.h"

#include "core/base/default_dtype.h"
#include "core/base/error.h"

namespace yoke {

yoke_dtype dtype_from_name(std::string_view text)
{
    for (yoke_dtype d = 1; d < YOKE_DTYPE_COUNT; ++d)
        if (text == info(d).name || text == info(d).brief) return d;
    return YOKE_NONE;
}

void check_dtype(yoke_dtype dtype, const char *call)
{
    if (!is_dtype(dtype))
        fail(YOKE_E_TYPE,
             "%s: argument 'dtype' is %d; a dtype is a number from 1 (YOKE_F64) to %d (%s)", call,
             dtype, YOKE_DTYPE_COUNT - 1, info(YOKE_DTYPE_COUNT - 1).constant);
}

yoke_dtype promote_scalar(yoke_dtype tensor, int32_t scalar_kind)
{
    switch (scalar_kind) {
        case YOKE_ARG_FLOAT:
            return is_floating(tensor) ? tensor : default_dtype();
        case YOKE_ARG_INT:
            return tensor == YOKE_BOOL ? YOKE_I64 : tensor;
        default:
            return tensor;
    }
}

}  // namespace yoke
