#include "core/ops/scalar.h"

#include "core/base/dtype.h"
#include "core/base/error.h"
#include "core/ops/args.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

namespace yoke {

namespace {

// float32 on the way to a half: cut off, with an odd last bit where something was lost, so that the second rounding
// sees on which side of the middle the value lies.
uint32_t float_bits_to_odd(double value)
{
    const auto single = static_cast<float>(value);
    const auto bits = std::bit_cast<uint32_t>(single);
    const auto back = static_cast<double>(single);
    if (back == value || value != value) return bits;
    return (bits - (std::abs(back) > std::abs(value))) | 1;
}

uint16_t bfloat_bits(double value)
{
    const uint32_t bits = float_bits_to_odd(value);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return static_cast<uint16_t>((bits >> 16) | 0x40);  // keep NaN a NaN
    return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

uint16_t half_bits(double value)
{
    const uint32_t bits = float_bits_to_odd(value), magnitude = bits & 0x7fffffff;
    const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
    uint32_t half;
    if (magnitude > 0x7f800000)
        half = 0x7e00;  // NaN
    else if (magnitude >= 0x477ff000)
        half = 0x7c00;  // 65520 and more: infinity
    else if (magnitude < 0x38800000)
        // Below 2^-14 a half counts steps of 2^-24, which are the last place of a float from 0.5 on.
        half = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000;
    else
        half = (magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13;
    return static_cast<uint16_t>(sign | half);
}

// float8_e5m2 is the upper half of a half: the same, with 2 bits of fraction.
uint8_t e5m2_bits(double value)
{
    const uint32_t bits = float_bits_to_odd(value), magnitude = bits & 0x7fffffff;
    uint32_t small;
    if (magnitude > 0x7f800000)
        small = 0x7f;  // NaN
    else if (magnitude >= 0x47700000)
        small = 0x7c;  // 61440 and more: infinity
    else if (magnitude < 0x38800000)
        small = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 128.0f) - 0x43000000;
    else
        small = (magnitude - 0x38000000 + 0xfffff + (magnitude >> 21 & 1)) >> 21;
    return static_cast<uint8_t>((bits >> 24 & 0x80) | small);
}

uint8_t e4m3_bits(double value)
{
    const uint32_t bits = float_bits_to_odd(value), magnitude = bits & 0x7fffffff;
    uint32_t small;
    if (magnitude > 0x43e80000)
        small = 0x7f;  // beyond 464, which still rounds to 448
    else if (magnitude < 0x3c800000)
        small = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 16384.0f) - 0x46800000;
    else
        small = (magnitude - 0x3c000000 + 0x7ffff + (magnitude >> 20 & 1)) >> 20;
    return static_cast<uint8_t>((bits >> 24 & 0x80) | small);
}

template <class T>
uint64_t bits_of(T value)
{
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    return bits;
}

struct Bounds {
    int64_t low, high;
};

Bounds bounds_of(yoke_dtype dtype)
{
    switch (dtype) {
        case YOKE_I64:
            return {INT64_MIN, INT64_MAX};
        case YOKE_I32:
            return {INT32_MIN, INT32_MAX};
        case YOKE_I8:
            return {INT8_MIN, INT8_MAX};
        default:
            return {0, UINT8_MAX};
    }
}

// The smallest magnitude that rounds to infinity, or to NaN where there is none: half a unit above the largest finite
// value.
double overflow_of(yoke_dtype dtype)
{
    switch (dtype) {
        case YOKE_F16:
            return 65520.0;
        case YOKE_BF16:
            return 0x1.ffp127;
        case YOKE_F8_E4M3:
            return std::nextafter(464.0, 465.0);  // 464 itself rounds to 448, which is even
        case YOKE_F8_E5M2:
            return 61440.0;
        default:
            return 0x1.ffffffp127;
    }
}

}  // namespace

bool scalar_fits(const yoke_arg &value, yoke_dtype dtype)
{
    if (dtype == YOKE_BOOL || dtype == YOKE_F64) return true;
    const double f = scalar_f64(value);
    if (is_floating(dtype)) return !std::isfinite(f) || std::abs(f) < overflow_of(dtype);
    const Bounds bounds = bounds_of(dtype);
    if (value.kind != YOKE_ARG_FLOAT) return value.v.i >= bounds.low && value.v.i <= bounds.high;
    // Both ends are exact here: 2^63 as a double is one above the largest int64.
    return std::trunc(f) >= static_cast<double>(bounds.low) &&
           std::trunc(f) < static_cast<double>(bounds.high) + (dtype == YOKE_I64 ? 0 : 1);
}

std::string text_of(const yoke_arg &value)
{
    char text[32];
    const auto end = value.kind == YOKE_ARG_FLOAT ? std::to_chars(text, text + 32, value.v.f)
                                                  : std::to_chars(text, text + 32, value.v.i);
    return {text, end.ptr};
}

void check_scalar_fits(const yoke_arg &value, yoke_dtype dtype, const char *call, const char *arg)
{
    if (is_floating(dtype) || scalar_fits(value, dtype)) return;
    const Bounds bounds = bounds_of(dtype);
    fail(
        YOKE_E_VALUE,
        "%s: argument '%s' is %s, which does not fit into %s (%lld to %lld); use another number, or a tensor of a wider dtype",
        call, arg, text_of(value).c_str(), name(dtype), static_cast<long long>(bounds.low),
        static_cast<long long>(bounds.high));
}

uint64_t scalar_bits(const yoke_arg &value, yoke_dtype dtype)
{
    const double f = scalar_f64(value);
    const int64_t i = value.kind == YOKE_ARG_FLOAT ? 0 : value.v.i;
    switch (dtype) {
        case YOKE_F64:
            return bits_of(f);
        case YOKE_F32:
            return bits_of(static_cast<float>(f));
        case YOKE_F16:
            return half_bits(f);
        case YOKE_BF16:
            return bfloat_bits(f);
        case YOKE_I64:
            return bits_of(i);
        case YOKE_I32:
            return bits_of(static_cast<int32_t>(i));
        case YOKE_I8:
        case YOKE_U8:
            return bits_of(static_cast<uint8_t>(i));
        case YOKE_BOOL:
            return bits_of(static_cast<uint8_t>(f != 0));
        case YOKE_F8_E4M3:
            return bits_of(e4m3_bits(f));
        case YOKE_F8_E5M2:
            return bits_of(e5m2_bits(f));
        default:
            fail(YOKE_E_INTERNAL, "the shape rule gave no dtype for a script scalar");
    }
}

}  // namespace yoke
