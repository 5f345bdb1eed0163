// Inverse functions: atan, asin, acos, atan2 and erfinv, for float and double; and tan.
//
// Contract: that of math.h. Largest errors in units in the last place: tan 0.6, atan 1.6, asin 0.6, acos 1.1, atan2
// 1.9, erfinv 2.1. erfinv of a double: 4.
#pragma once

#include "kernels/common/trigonometry.h"

YOKE_KERNELS_BEGIN

// ---- tan ----------------------------------------------------------------------------------------

// Returns tan x as a quotient of the polynomials of trigonometry.h, in double.
YOKE_HD float tan(float x)
{
    QuarterTurns t = reduce_quarter_turns(x);
    double z = t.r * t.r;
    double s = ((-0x1.994e7f47d5b33p-13 * z + 0x1.11075fd20113ap-7) * z - 0x1.55554598bb513p-3) * z;
    double c =
        ((0x1.9a024fc944ae5p-16 * z - 0x1.6c0c8becdbfa7p-10) * z + 0x1.55554ab538841p-5) * z - 0.5;
    double sine = s * t.r + t.r, cosine = c * z + 1.0;
    bool odd = (t.q & 1u) != 0u;
    float y = (float)(select(odd, -cosine, sine) / select(odd, sine, cosine));
    return bit_cast<float>(bit_cast<uint32_t>(y) ^ (bit_cast<uint32_t>(x) & 0x80000000u));
}

// ---- inverse tangent ----------------------------------------------------------------------------

// Returns atan t for 0 <= t <= 1, as t + t^3 p(t^2), minimax to 2^-26 and right at 1.
YOKE_HD float atan_of_unit(float t)
{
    float z = t * t;
    float p = -0x1.d496a4p-10f;
    p = p * z + 0x1.64c1cep-7f;
    p = p * z - 0x1.fdfc1cp-6f;
    p = p * z + 0x1.da5ed4p-5f;
    p = p * z - 0x1.58155ep-4f;
    p = p * z + 0x1.c08f64p-4f;
    p = p * z - 0x1.2420b6p-3f;
    p = p * z + 0x1.9991e6p-3f;
    p = p * z - 0x1.55553ep-2f;
    return t + t * (z * p);
}

// Returns pi / 2 - angle.
YOKE_HD float quarter_turn_less(float angle)
{
    return 0x1.921fb6p+0f - (angle + 0x1.777a5cp-25f);
}

YOKE_HD float atan(float x)
{
    float size = absolute(x);
    bool beyond = size > 1.0f;
    float angle = atan_of_unit(select(beyond, 1.0f / size, size));
    return with_sign_of(select(beyond, quarter_turn_less(angle), angle), x);
}

// Returns the angle of the point (y, x) from the axis of y.
YOKE_HD float atan2(float x, float y)
{
    float a = absolute(x), b = absolute(y);
    bool steep = a > b;
    float most = select(steep, a, b), least = select(steep, b, a);
    // Two zeros lie on the axis, two infinities on the diagonal.
    float slope = select(most == 0.0f, 0.0f, select(least == kInfinity, 1.0f, least / most));
    float angle = atan_of_unit(slope);
    bool behind = bit_cast<uint32_t>(y) >> 31 != 0u;
    // The angle begins at 0, pi / 2 or pi, in two parts.
    float from = select(steep, 0x1.921fb6p+0f, select(behind, 0x1.921fb6p+1f, 0.0f));
    float rest = select(steep, 0x1.777a5cp-25f, select(behind, 0x1.777a5cp-24f, 0.0f));
    angle = from - (select(steep != behind, angle, -angle) + rest);
    float sum = x + y;
    bool is_nan = a != a || b != b;
    return select(is_nan, sum, with_sign_of(angle, x));
}

// ---- inverse sine and cosine --------------------------------------------------------------------

// Returns asin(t) / t - 1 for t^2 = z <= 1/4, minimax to 2^-31.
YOKE_HD float asin_rest(float z)
{
    float p = 0x1.34cf36p-5f;
    p = p * z + 0x1.d5129ep-7f;
    p = p * z + 0x1.04d366p-5f;
    p = p * z + 0x1.6ca75p-5f;
    p = p * z + 0x1.3338acp-4f;
    p = p * z + 0x1.55554cp-3f;
    return p * z;
}

// Half of the angle whose cosine is |x| >= 1/2, as a sine; or |x| itself below. `z` is the square.
struct ArcReduction {
    float s, z;
    bool beyond;
};

YOKE_HD ArcReduction arc_reduce(float x)
{
    float size = absolute(x);
    bool beyond = size > 0.5f;
    float z = select(beyond, 0.5f * (1.0f - size), x * x);
    return {select(beyond, kernels::sqrt(z), size), z, beyond};
}

// Returns asin x. Beyond 1/2, the difference of pi / 2 and twice the angle is in double, because digits cancel.
YOKE_HD float asin(float x)
{
    ArcReduction r = arc_reduce(x);
    float rest = asin_rest(r.z);
    double s = __builtin_sqrt((double)r.z);
    float large = (float)(0x1.921fb54442d18p+0 - 2.0 * (s + s * (double)rest));
    return with_sign_of(select(r.beyond, large, r.s + r.s * rest), x);
}

YOKE_HD float acos(float x)
{
    ArcReduction r = arc_reduce(x);
    float angle = r.s + r.s * asin_rest(r.z);
    float small = 2.0f * angle;
    float large = 0x1.921fb6p+1f - (small + 0x1.777a5cp-24f);
    float middle = quarter_turn_less(with_sign_of(angle, x));
    return select(r.beyond, select(x < 0.0f, large, small), middle);
}

// ---- inverse of erf -----------------------------------------------------------------------------

// Returns erfinv(x) / x, with w = -log(1 - x^2) up to 16, minimax to 2^-24.7: for w below 5 in w, beyond in
// sqrt(w) - 3.
YOKE_HD float erfinv_slope(float w)
{
    float s = kernels::sqrt(w) - 3.0f;
    float p = -0x1.821dccp-28f;
    p = p * w + 0x1.459fdap-23f;
    p = p * w - 0x1.696794p-20f;
    p = p * w + 0x1.ea04acp-21f;
    p = p * w + 0x1.be8ed8p-15f;
    p = p * w - 0x1.294632p-13f;
    p = p * w - 0x1.303f64p-9f;
    p = p * w + 0x1.7a3b6ep-7f;
    p = p * w + 0x1.db2a98p-3f;
    p = p * w + 0x1.c5bf88p-1f;
    float q = 0x1.120916p-13f;
    q = q * s - 0x1.4bd816p-12f;
    q = q * s - 0x1.5a6eaap-14f;
    q = q * s + 0x1.8754c2p-10f;
    q = q * s - 0x1.d571a2p-9f;
    q = q * s + 0x1.748dc8p-8f;
    q = q * s - 0x1.f4c52p-8f;
    q = q * s + 0x1.35814ep-7f;
    q = q * s + 0x1.006dcap+0f;
    q = q * s + 0x1.6a9efcp+1f;
    return select(w < 5.0f, p, q);
}

// Returns the inverse of erf: infinite at -1 and 1, NaN beyond.
YOKE_HD float erfinv(float x)
{
    float size = absolute(x);
    float w = -kernels::log((1.0f - size) * (1.0f + size));
    return select(size == 1.0f, with_sign_of(kInfinity, x), x * erfinv_slope(w));
}

// Two steps of Halley's method on erfc, of which 1 - |x| loses no digits, after the polynomial for float.
YOKE_HD double erfinv(double x)
{
    double size = x < 0 ? -x : x;
    if (!(size < 1)) return size == 1 ? x * (double)kInfinity : __builtin_nan("");
    if (size < 1e-8) return x * 0x1.c5bf891b4ef6bp-1;
    double w = -::log((1 - size) * (1 + size));
    double y = w < 16 ? size * (double)erfinv_slope((float)w)
                      : ::sqrt(w - 0.5 * ::log(3.14159265358979324 * w));
    for (int step = 0; step < 3; ++step) {
        double error = size < 0.5 ? ::erf(y) - size : (1 - size) - ::erfc(y);
        double u = error * 0x1.c5bf891b4ef6bp-1 * ::exp(y * y);
        y -= u / (1 + u * y);
    }
    return x < 0 ? -y : y;
}

// ---- double: the C library ----------------------------------------------------------------------

YOKE_HD double tan(double x)
{
    return ::tan(x);
}
YOKE_HD double atan(double x)
{
    return ::atan(x);
}
YOKE_HD double atan2(double x, double y)
{
    return ::atan2(x, y);
}
YOKE_HD double asin(double x)
{
    return ::asin(x);
}
YOKE_HD double acos(double x)
{
    return ::acos(x);
}

YOKE_KERNELS_END
