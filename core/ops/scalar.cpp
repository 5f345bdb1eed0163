#include "core/ops/scalar.h"

#include "core/base/error.h"
#include "core/ops/args.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace yoke {

namespace {

// float32 on the way to a half: cut off, with an odd last bit where something was lost, so that the second rounding sees
// on which side of the middle the value lies.
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

template <class T>
uint64_t bits_of(T value)
{
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    return bits;
}

}  // namespace

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
        default:
            fail(YOKE_E_INTERNAL, "the shape rule gave no dtype for a script scalar");
    }
}

}  // namespace yoke
