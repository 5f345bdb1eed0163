// Storage types, their computing types, and conversions between every pair of dtypes.
//
// Contract (the same bits on every compiler, ISA and device)
//  * float to float: IEEE 754 round to nearest even, one rounding, also f64 to f16 or bf16. Subnormals, infinities
//    and signed zeros are kept. NaN stays NaN; it becomes quiet if the format narrows or f16 widens. bf16 widens by a
//    shift, because bf16 is the upper half of a float.
//  * integer to float: one rounding as well. Integer to integer: modulo 2^bits, as in C and NumPy.
//  * float to integer: truncation toward zero; values outside the range saturate; NaN gives 0. C leaves these cases
//    undefined and hardware differs, so Yoke defines the results.
//  * to bool: x != 0, so NaN is true; the stored byte is 0 or 1. From bool: any byte but 0 is 1.
//
// Why integer arithmetic: it is the same everywhere, and it vectorises inside a larger loop. gcc's _Float16 does not
// below AVX512-FP16. For conversions of whole runs, span.h uses F16C.
#pragma once

#include "kernels/common/dtypes.inc"
#include "kernels/common/macros.h"

YOKE_KERNELS_BEGIN

struct f16 {
    uint16_t bits;
};

struct bf16 {
    uint16_t bits;
};

// Float of 8 bits: a sign, the exponent, the fraction. Such floats are only stored and cast. A format without
// infinity (P. Micikevicius and others, "FP8 formats for deep learning", 2022, of e4m3) has NaN as its largest
// pattern. There, values beyond the range become NaN, as in PyTorch.
template <int kExponentBits, int kFractionBits, bool kIsFinite>
struct SmallFloat {
    static constexpr int32_t kFraction = kFractionBits;
    static constexpr int32_t kBias = 128 - (1 << (kExponentBits - 1));  // float's less this one's
    static constexpr bool kFinite = kIsFinite;
    static constexpr int32_t kBeyond =
        kIsFinite ? 0x7f : 0x80 - (1 << kFractionBits);  // NaN, or infinity
    uint8_t bits;
};

#define YOKE_MAKE(name, exponent, fraction, is_finite) \
    using name = SmallFloat<exponent, fraction, is_finite>;
YOKE_MADE_TYPES(YOKE_MAKE)
#undef YOKE_MAKE

// Element of a bool tensor. Masks of 0 and 255 come as views from outside, and NumPy and PyTorch take any byte but 0
// as true. C++'s bool must not hold such a byte, so memory needs another type. The type is a struct, so code cannot
// compute with an element before loading it.
struct bool8 {
    uint8_t byte;
};

// ---- f16 and bf16 to and from float -------------------------------------------------------------

// Converts f16 to float. All integers are signed: magnitudes are below 2^31, and AVX2 compares only signed integers.
YOKE_HD float f16_to_f32(f16 h)
{
    int32_t magnitude = h.bits & 0x7fff;
    int32_t shifted = magnitude << 13;
    int32_t normal = shifted + (112 << 23);  // the exponent's bias: 15 becomes 127
    int32_t quiet = select(magnitude > 0x7c00, 0x00400000, 0);
    int32_t special = (shifted + (224 << 23)) | quiet;  // |: a NaN may have that bit set already
    // A subnormal is an integer times 2^-24; put it under the exponent of 2^-14, then take 2^-14
    // away: exact.
    float subnormal = bit_cast<float>(shifted + (113 << 23)) - 0x1p-14f;
    int32_t finite = select(magnitude < 0x0400, bit_cast<int32_t>(subnormal), normal);
    int32_t result = select(magnitude >= 0x7c00, special, finite);
    return bit_cast<float>((uint32_t)(h.bits & 0x8000u) << 16 | (uint32_t)result);
}

YOKE_HD f16 f32_to_f16(float x)
{
    uint32_t bits = bit_cast<uint32_t>(x);
    int32_t magnitude = (int32_t)(bits & 0x7fffffffu);
    // Half a unit in the last place minus one, plus the last kept bit: ties go to even, and carry
    // into the exponent.
    int32_t normal = (magnitude - (112 << 23) + 0x0fff + ((magnitude >> 13) & 1)) >> 13;
    // 0.5 has the last place of an f16 subnormal, so the adder itself rounds.
    int32_t subnormal = bit_cast<int32_t>(bit_cast<float>(magnitude) + 0.5f) - (126 << 23);
    int32_t finite = select(magnitude < (113 << 23), subnormal, normal);
    int32_t bounded = select(magnitude >= 0x477ff000, 0x7c00, finite);  // 65520 and up: infinity
    int32_t nan = 0x7e00 | ((magnitude >> 13) & 0x03ff);
    int32_t result = select(magnitude > 0x7f800000, nan, bounded);
    return f16{(uint16_t)(((bits >> 16) & 0x8000u) | (uint32_t)result)};
}

YOKE_HD float bf16_to_f32(bf16 b)
{
    return bit_cast<float>((uint32_t)b.bits << 16);
}

YOKE_HD bf16 f32_to_bf16(float x)
{
    uint32_t bits = bit_cast<uint32_t>(x);
    uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    uint32_t nan = (bits >> 16) | 0x0040u;
    return bf16{(uint16_t)select((int32_t)(bits & 0x7fffffffu) > 0x7f800000, nan, rounded)};
}

template <class Small>
YOKE_HD float small_to_f32(Small x)
{
    constexpr int32_t kLeast = (Small::kBias + 1) << 23;  // the smallest normal number
    int32_t magnitude = x.bits & 0x7f;
    int32_t shifted = magnitude << (23 - Small::kFraction);
    int32_t normal = shifted + (Small::kBias << 23);
    float subnormal = bit_cast<float>(shifted + kLeast) - bit_cast<float>(kLeast);
    int32_t finite =
        select(magnitude < (1 << Small::kFraction), bit_cast<int32_t>(subnormal), normal);
    int32_t quiet = select(magnitude > Small::kBeyond, 0x00400000, 0);
    int32_t special = Small::kFinite ? 0x7fc00000 : (shifted + (2 * Small::kBias << 23)) | quiet;
    int32_t result = select(magnitude >= Small::kBeyond, special, finite);
    return bit_cast<float>((uint32_t)(x.bits & 0x80u) << 24 | (uint32_t)result);
}

// Rounds a float to a float of 8 bits, as f32_to_f16 does. Values beyond the range become infinity, or NaN if the
// format has no infinity.
template <class Small>
YOKE_HD Small f32_to_small(float x)
{
    constexpr int kShift = 23 - Small::kFraction;
    constexpr int32_t kLastPlace = (Small::kBias + 1 + kShift) << 23;
    uint32_t bits = bit_cast<uint32_t>(x);
    int32_t magnitude = (int32_t)(bits & 0x7fffffffu);
    int32_t even = (1 << (kShift - 1)) - 1 + ((magnitude >> kShift) & 1);
    int32_t normal = (magnitude - (Small::kBias << 23) + even) >> kShift;
    int32_t subnormal =
        bit_cast<int32_t>(bit_cast<float>(magnitude) + bit_cast<float>(kLastPlace)) - kLastPlace;
    int32_t finite = select(magnitude < ((Small::kBias + 1) << 23), subnormal, normal);
    int32_t bounded = select(finite > Small::kBeyond, Small::kBeyond, finite);
    int32_t result = select(magnitude > 0x7f800000, 0x7f, bounded);
    return Small{(uint8_t)(((bits >> 24) & 0x80u) | (uint32_t)result)};
}

// Converts f64 to f32 by rounding to odd: an inexact result gets an odd last bit. A second rounding, to a narrower
// format, then gives the same as one rounding from f64.
YOKE_HD float f64_to_f32_odd(double x)
{
    float nearest = (float)x;
    double size = x < 0 ? -x : x;
    double back = nearest < 0 ? -(double)nearest : (double)nearest;
    uint32_t bits = bit_cast<uint32_t>(nearest);
    uint32_t step = (uint32_t)(back < size) - (uint32_t)(back > size);  // 0 for NaN and where exact
    return bit_cast<float>(bits + select((bits & 1u) == 0u, step, 0u));
}

// Returns a double with the same rounding to f16 or bf16 as the i64 x.
YOKE_HD double i64_to_f64_odd(int64_t x)
{
    int64_t jammed = ((x >> 16) | (int64_t)((x & 0xffff) != 0)) * 65536;
    bool small = x < ((int64_t)1 << 40) && x > -((int64_t)1 << 40);
    return (double)select(small, x, jammed);
}

// ---- computing type of each dtype ---------------------------------------------------------------

template <class T>
struct ComputeType {
    using type = T;
};
template <int E, int F, bool kIsFinite>
struct ComputeType<SmallFloat<E, F, kIsFinite>> {
    using type = float;
};
// Computing type of bool: 0 or 1 in 8 bits, because comparisons of C++'s bool seldom vectorise.
#define YOKE_COMPUTE_TYPE(stored, computed) \
    template <>                             \
    struct ComputeType<stored> {            \
        using type = computed;              \
    };
YOKE_COMPUTE_TYPES(YOKE_COMPUTE_TYPE)
#undef YOKE_COMPUTE_TYPE

// f8, f16, bf16 and f32 compute in float; f64 and the integers in themselves, bool as 0 or 1.
template <class T>
using compute_type = typename ComputeType<T>::type;

template <class T>
inline constexpr bool is_half = std::is_same_v<T, f16> || std::is_same_v<T, bf16>;

template <class T>
inline constexpr bool is_small = false;
template <int E, int F, bool kIsFinite>
inline constexpr bool is_small<SmallFloat<E, F, kIsFinite>> = true;

// True if the type is narrower than float. Such types are computed in float.
template <class T>
inline constexpr bool is_narrow = is_half<T> || is_small<T>;

template <class T>
inline constexpr bool is_float =
    is_narrow<T> || std::is_same_v<T, float> || std::is_same_v<T, double>;

// ---- conversions --------------------------------------------------------------------------------

// Converts a float to an integer: truncates toward zero, saturates, and gives 0 for NaN. Both bounds are powers of
// two or zero, hence exact in F.
template <class To, class F>
YOKE_HD To truncate_saturating(F x)
{
    constexpr int kValueBits = (int)sizeof(To) * 8 - (std::is_signed_v<To> ? 1 : 0);
    constexpr F kBeyond = (F)((uint64_t)1 << (kValueBits - 1)) * 2;
    constexpr F kLowest = std::is_signed_v<To> ? -kBeyond : (F)0;
    constexpr To kMin = std::is_signed_v<To> ? (To)((uint64_t)1 << (kValueBits % 64)) : (To)0;
    constexpr To kMax = (To)~kMin;
    bool inside = x > kLowest && x < kBeyond;
    // Through i32 for the small types: that conversion is a vector instruction everywhere.
    using Wide = std::conditional_t<(sizeof(To) < 4), int32_t, To>;
    To whole = (To)(Wide)select(inside, x, (F)0);
    To saturated = select(x >= kBeyond, kMax, whole);
    return select(x <= kLowest, kMin, saturated);
}

template <class To>
YOKE_HD To from_f32(float x)
{
    if constexpr (std::is_same_v<To, f16>)
        return f32_to_f16(x);
    else if constexpr (std::is_same_v<To, bf16>)
        return f32_to_bf16(x);
    else if constexpr (is_small<To>)
        return f32_to_small<To>(x);
    else if constexpr (std::is_same_v<To, bool8>)
        return bool8{x != 0.0f};
    else if constexpr (std::is_integral_v<To>)
        return truncate_saturating<To>(x);
    else
        return (To)x;
}

template <class To>
YOKE_HD To from_f64(double x)
{
    if constexpr (is_narrow<To>)
        return from_f32<To>(f64_to_f32_odd(x));
    else if constexpr (std::is_same_v<To, bool8>)
        return bool8{x != 0.0};
    else if constexpr (std::is_integral_v<To>)
        return truncate_saturating<To>(x);
    else
        return (To)x;
}

template <class To, class Int>
YOKE_HD To from_integer(Int x)
{
    if constexpr (std::is_same_v<To, bool8>)
        return bool8{x != 0};
    else if constexpr (!is_narrow<To>)
        return (To)x;
    else if constexpr (sizeof(Int) == 8)
        return from_f64<To>(i64_to_f64_odd((int64_t)x));
    else if constexpr (sizeof(Int) == 4)
        return from_f64<To>((double)x);
    else
        return from_f32<To>((float)x);  // 8 bits are exact in a float
}

// Converts any dtype to any other. A value of the same type stays as it is, bit for bit.
template <class To, class From>
YOKE_HD To convert(From x)
{
    if constexpr (std::is_same_v<To, From>)
        return x;
    else if constexpr (std::is_same_v<From, f16>)
        return from_f32<To>(f16_to_f32(x));
    else if constexpr (std::is_same_v<From, bf16>)
        return from_f32<To>(bf16_to_f32(x));
    else if constexpr (is_small<From>)
        return from_f32<To>(small_to_f32(x));
    else if constexpr (std::is_same_v<From, bool8>)
        return select(x.byte != 0, from_integer<To>((uint8_t)1), from_integer<To>((uint8_t)0));
    else if constexpr (std::is_same_v<From, float>)
        return from_f32<To>(x);
    else if constexpr (std::is_same_v<From, double>)
        return from_f64<To>(x);
    else
        return from_integer<To>(x);
}

// Returns a stored value in its computing type. store() does the reverse.
template <class T>
YOKE_HD compute_type<T> load(T x)
{
    return convert<compute_type<T>>(x);
}

template <class T>
YOKE_HD T store(compute_type<T> x)
{
    return convert<T>(x);
}

YOKE_KERNELS_END
