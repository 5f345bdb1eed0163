// dtype.h: facts about element types, and their promotion: both made from dtypes.def.
#pragma once

#include "core/base/dtypes.inc"
#include "yoke/types.h"

#include <cstddef>
#include <string_view>

namespace yoke {

enum class DtypeClass : uint8_t { kNone, kFloat, kInteger, kBool };

struct DtypeInfo {
    const char *name;      // "float32"
    const char *brief;     // "f32"
    const char *constant;  // "YOKE_F32"
    DtypeClass kind;
    uint8_t size;      // bytes
    uint8_t exponent;  // bits of a float's exponent, and of its fraction
    uint8_t fraction;
    bool finite;  // a float without infinity: its largest pattern is NaN
    bool is_signed;
    const char *stored;  // name in safetensors, null if none
};

namespace detail {
inline constexpr DtypeInfo kDtypes[YOKE_DTYPE_COUNT] = {YOKE_DTYPE_INFOS};
inline constexpr uint8_t kPromotion[YOKE_DTYPE_COUNT][YOKE_DTYPE_COUNT] = {YOKE_DTYPE_PROMOTION};
}  // namespace detail

inline bool is_dtype(yoke_dtype dtype)
{
    return dtype > YOKE_NONE && dtype < YOKE_DTYPE_COUNT;
}
inline const DtypeInfo &info(yoke_dtype dtype)
{
    return detail::kDtypes[is_dtype(dtype) ? dtype : YOKE_NONE];
}
inline const char *name(yoke_dtype dtype)
{
    return info(dtype).name;
}
inline size_t item_size(yoke_dtype dtype)
{
    return info(dtype).size;
}
// Returns whether the dtype is float16 or bfloat16, whose sums are kept in float32.
inline bool is_half(yoke_dtype dtype)
{
    return dtype == YOKE_F16 || dtype == YOKE_BF16;
}

inline bool is_floating(yoke_dtype dtype)
{
    return info(dtype).kind == DtypeClass::kFloat;
}

// Returns the dtype of a name such as "float32" or "f32"; YOKE_NONE for an unknown name.
yoke_dtype dtype_from_name(std::string_view text);

// Raises YOKE_E_TYPE, naming call and argument, unless `dtype` is valid.
void check_dtype(yoke_dtype dtype, const char *call);

// Returns the dtype of the result of two tensors. Integers with floats give that float, f16 with bf16 gives f32, u8
// with i8 gives i32, bool gives way to all.
inline yoke_dtype promote(yoke_dtype a, yoke_dtype b)
{
    return detail::kPromotion[a][b];
}

// Returns the dtype of the result of a tensor and a script scalar of kind BOOL, INT or FLOAT. The scalar is weak: it
// changes only a dtype of a lower class.
yoke_dtype promote_scalar(yoke_dtype tensor, int32_t scalar_kind);

}  // namespace yoke
