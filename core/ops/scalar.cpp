#include "core/ops/scalar.h"

#include "core/base/dtype.h"
#include "core/base/error.h"
#include "core/ops/args.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

namespace yoke {

namespace {

// Rounds to float32 on the way to a narrow float: cuts off, and sets the last bit if digits were lost. So the second
// rounding sees on which side of the middle the value lies.
uint32_t float_bits_to_odd(double value)
{
    const auto single = static_cast<float>(value);
    const auto bits = std::bit_cast<uint32_t>(single);
    const auto back = static_cast<double>(single);
    if (back == value || value != value) return bits;
    return (bits - (std::abs(back) > std::abs(value))) | 1;
}

// Returns the bits beyond the largest value of a narrow float: infinity, or NaN if the dtype has no infinity.
uint32_t beyond(const DtypeInfo &to)
{
    const uint32_t all = (1u << (to.exponent + to.fraction)) - 1,
                   fraction = (1u << to.fraction) - 1;
    return to.finite ? all : all - fraction;
}

// Rounds a float32's magnitude to even in a narrow float; returns the bits, up to the bits of beyond().
uint32_t narrow_magnitude(uint32_t magnitude, const DtypeInfo &to)
{
    const int shift = 23 - to.fraction;
    const uint32_t bias = 128 - (1u << (to.exponent - 1));  // float32's less the other's
    if (bias && magnitude < (bias + 1) << 23) {
        // A subnormal counts steps equal to the last place of this float, so the addition rounds.
        const uint32_t last_place = (bias + 1 + static_cast<uint32_t>(shift)) << 23;
        return std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) +
                                       std::bit_cast<float>(last_place)) -
               last_place;
    }
    const uint32_t half = (1u << (shift - 1)) - 1 + (magnitude >> shift & 1);
    return std::min((magnitude - (bias << 23) + half) >> shift, beyond(to));
}

uint64_t narrow_bits(double value, const DtypeInfo &to)
{
    const uint32_t bits = float_bits_to_odd(value), magnitude = bits & 0x7fffffff;
    const uint32_t sign = bits >> 31 << (to.exponent + to.fraction);
    if (magnitude <= 0x7f800000) return sign | narrow_magnitude(magnitude, to);
    // NaN: quiet in 16 bits, all ones in 8 bits, as in kernels.
    const uint32_t all = (1u << (to.exponent + to.fraction)) - 1;
    return sign | (to.size == 1 ? all : beyond(to) | 1u << (to.fraction - 1));
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

Bounds bounds_of(const DtypeInfo &integer)
{
    const int bits = 8 * integer.size - (integer.is_signed ? 1 : 0);  // bits of the largest number
    const auto high = static_cast<int64_t>(~uint64_t{0} >> (64 - bits));
    return {integer.is_signed ? -high - 1 : 0, high};
}

// Returns whether a number rounds to a finite number of the dtype.
bool stays_finite(double value, const DtypeInfo &to)
{
    if (to.size == 8) return true;
    if (to.size == 4) return std::isfinite(static_cast<float>(value));
    return narrow_magnitude(float_bits_to_odd(std::abs(value)), to) < beyond(to);
}

}  // namespace

bool scalar_fits(const yoke_arg &value, yoke_dtype dtype)
{
    if (dtype == YOKE_BOOL) return true;
    const double f = scalar_f64(value);
    if (is_floating(dtype)) return !std::isfinite(f) || stays_finite(f, info(dtype));
    const Bounds bounds = bounds_of(info(dtype));
    if (value.kind != YOKE_ARG_FLOAT) return value.v.i >= bounds.low && value.v.i <= bounds.high;
    // Both ends are exact here: 2^63 as a double is one above the largest int64.
    return std::trunc(f) >= static_cast<double>(bounds.low) &&
           std::trunc(f) < static_cast<double>(bounds.high) + (bounds.high == INT64_MAX ? 0 : 1);
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
    const Bounds bounds = bounds_of(info(dtype));
    fail(
        YOKE_E_VALUE,
        "%s: argument '%s' is %s, which does not fit into %s (%lld to %lld); use another number, or a tensor of a wider dtype",
        call, arg, text_of(value).c_str(), name(dtype), static_cast<long long>(bounds.low),
        static_cast<long long>(bounds.high));
}

uint64_t scalar_bits(const yoke_arg &value, yoke_dtype dtype)
{
    const double f = scalar_f64(value);
    const DtypeInfo &to = info(dtype);
    switch (to.kind) {
        case DtypeClass::kFloat:
            return to.size == 8   ? bits_of(f)
                   : to.size == 4 ? bits_of(static_cast<float>(f))
                                  : narrow_bits(f, to);
        case DtypeClass::kInteger: {
            const int64_t i = value.kind == YOKE_ARG_FLOAT ? static_cast<int64_t>(f) : value.v.i;
            return static_cast<uint64_t>(i) & (~uint64_t{0} >> (64 - 8 * to.size));
        }
        case DtypeClass::kBool:
            return bits_of(static_cast<uint8_t>(f != 0));
        default:
            fail(YOKE_E_INTERNAL, "the shape rule gave no dtype for a script scalar");
    }
}

}  // namespace yoke
