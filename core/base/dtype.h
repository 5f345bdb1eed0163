// dtype.h: facts about element types, and the one promotion table.
#pragma once

#include "yoke/types.h"

#include <cstddef>
#include <string_view>

namespace yoke {

struct DtypeInfo {
    const char *name;   // "float32"
    const char *brief;  // "f32"
    uint8_t size;       // bytes
    bool floating;
    bool integral;  // i64 i32 i8 u8; bool is neither
};

namespace detail {
inline constexpr DtypeInfo kDtypes[YOKE_DTYPE_COUNT] = {
    {"none", "none", 0, false, false},       {"float64", "f64", 8, true, false},
    {"float32", "f32", 4, true, false},      {"float16", "f16", 2, true, false},
    {"bfloat16", "bf16", 2, true, false},    {"int64", "i64", 8, false, true},
    {"int32", "i32", 4, false, true},        {"int8", "i8", 1, false, true},
    {"uint8", "u8", 1, false, true},         {"bool", "bool", 1, false, false},
    {"float8_e4m3", "e4m3", 1, true, false}, {"float8_e5m2", "e5m2", 1, true, false},
};
}  // namespace detail

namespace detail::promotion {
constexpr int8_t f64 = YOKE_F64, f32 = YOKE_F32, f16 = YOKE_F16, bf = YOKE_BF16, i64 = YOKE_I64,
                 i32 = YOKE_I32, i8 = YOKE_I8, u8 = YOKE_U8, bo = YOKE_BOOL, e4 = YOKE_F8_E4M3,
                 e5 = YOKE_F8_E5M2;

// Row and column in the order of the dtype numbers.
inline constexpr int8_t kTable[YOKE_DTYPE_COUNT][YOKE_DTYPE_COUNT] = {
    {},
    {0, f64, f64, f64, f64, f64, f64, f64, f64, f64, f64, f64},  // f64
    {0, f64, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32},  // f32
    {0, f64, f32, f16, f32, f16, f16, f16, f16, f16, f16, f16},  // f16
    {0, f64, f32, f32, bf, bf, bf, bf, bf, bf, bf, bf},          // bf16
    {0, f64, f32, f16, bf, i64, i64, i64, i64, i64, e4, e5},     // i64
    {0, f64, f32, f16, bf, i64, i32, i32, i32, i32, e4, e5},     // i32
    {0, f64, f32, f16, bf, i64, i32, i8, i32, i8, e4, e5},       // i8
    {0, f64, f32, f16, bf, i64, i32, i32, u8, u8, e4, e5},       // u8
    {0, f64, f32, f16, bf, i64, i32, i8, u8, bo, e4, e5},        // bool
    {0, f64, f32, f16, bf, e4, e4, e4, e4, e4, e4, f32},         // e4m3
    {0, f64, f32, f16, bf, e5, e5, e5, e5, e5, f32, e5},         // e5m2
};
}  // namespace detail::promotion

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
inline bool is_floating(yoke_dtype dtype)
{
    return info(dtype).floating;
}

// YOKE_NONE if there is no dtype of that name; takes "float32" and "f32".
yoke_dtype dtype_from_name(std::string_view text);

// Raises YOKE_E_TYPE that names call and argument unless `dtype` is one.
void check_dtype(yoke_dtype dtype, const char *call);

// The dtype of the result of two tensors. Integers with floats give that float, f16 with bf16 gives f32, u8 with i8
// gives i32, bool gives way to all.
inline yoke_dtype promote(yoke_dtype a, yoke_dtype b)
{
    return detail::promotion::kTable[a][b];
}

// The same for a tensor and a script scalar of kind BOOL, INT or FLOAT: the scalar is weak.
yoke_dtype promote_scalar(yoke_dtype tensor, int32_t scalar_kind);

}  // namespace yoke
