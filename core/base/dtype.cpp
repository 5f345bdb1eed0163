#include "core/base/dtype.h"

#include "core/base/error.h"

namespace yoke
{

namespace
{

constexpr auto f64 = YOKE_F64, f32 = YOKE_F32, f16 = YOKE_F16, bf = YOKE_BF16, i64 = YOKE_I64, i32 = YOKE_I32,
               i8 = YOKE_I8, u8 = YOKE_U8, bo = YOKE_BOOL;

// Row and column in the order of the dtype numbers.
constexpr int8_t kPromotion[YOKE_DTYPE_COUNT][YOKE_DTYPE_COUNT] = {
    {},
    {0, f64, f64, f64, f64, f64, f64, f64, f64, f64}, // f64
    {0, f64, f32, f32, f32, f32, f32, f32, f32, f32}, // f32
    {0, f64, f32, f16, f32, f16, f16, f16, f16, f16}, // f16
    {0, f64, f32, f32, bf, bf, bf, bf, bf, bf},       // bf16
    {0, f64, f32, f16, bf, i64, i64, i64, i64, i64},  // i64
    {0, f64, f32, f16, bf, i64, i32, i32, i32, i32},  // i32
    {0, f64, f32, f16, bf, i64, i32, i8, i32, i8},    // i8
    {0, f64, f32, f16, bf, i64, i32, i32, u8, u8},    // u8
    {0, f64, f32, f16, bf, i64, i32, i8, u8, bo},     // bool
};

} // namespace

yoke_dtype dtype_from_name(std::string_view text)
{
    for (yoke_dtype d = 1; d < YOKE_DTYPE_COUNT; ++d)
        if (text == info(d).name || text == info(d).brief)
            return d;
    return YOKE_NONE;
}

void check_dtype(yoke_dtype dtype, const char *call)
{
    if (!is_dtype(dtype))
        fail(YOKE_E_TYPE, "%s: argument 'dtype' is %d; a dtype is a number from 1 (YOKE_F64) to %d (YOKE_BOOL)", call,
             dtype, YOKE_DTYPE_COUNT - 1);
}

yoke_dtype promote(yoke_dtype a, yoke_dtype b)
{
    return kPromotion[a][b];
}

yoke_dtype promote_scalar(yoke_dtype tensor, int32_t scalar_kind)
{
    switch (scalar_kind) {
    case YOKE_ARG_FLOAT:
        return is_floating(tensor) ? tensor : YOKE_F32;
    case YOKE_ARG_INT:
        return tensor == YOKE_BOOL ? YOKE_I64 : tensor;
    default:
        return tensor;
    }
}

} // namespace yoke
