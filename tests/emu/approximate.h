// Models of PTX's approximations for the emulation: the exact result, moved by as much as the PTX ISA allows, to a side
// and by an amount that hang on the argument. What relies on more than the stated error fails in a sweep.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

namespace yoke::emu {

// .ftz: a number below the normal numbers becomes 0 of equal sign.
inline float flushed(float x)
{
    return std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x;
}

// exact (1 + e), |e| <= most.
inline float moved(double exact, float argument, double most)
{
    if (!std::isfinite(exact) || exact == 0) return (float)exact;
    uint32_t bits;
    std::memcpy(&bits, &argument, sizeof bits);
    bits = (bits ^ bits >> 15) * 0x2c1b3c6du;  // neighbours differ
    const double part = (double)(int32_t)(bits ^ bits << 13) * 0x1p-31;
    return flushed((float)(exact * (1 + part * most)));
}

inline float ex2_approx_ftz(float x)
{
    return moved(std::exp2((double)flushed(x)), x, 0x1p-22);
}

inline float rcp_approx_ftz(float x)
{
    return moved(1 / (double)flushed(x), x, 0x1p-23);
}

}  // namespace yoke::emu
