// Products that keep mantissa and exponent apart, so no intermediate product leaves the range of a double.
#pragma once

#include "kernels/common/numeric.h"

YOKE_KERNELS_BEGIN

// mantissa * 2^(400 * steps). A finite mantissa that is not 0 lies between 2^-200 and 2^200.
struct ScaledProduct {
    static constexpr double kUp = 0x1p400, kDown = 0x1p-400, kMost = 0x1p200, kLeast = 0x1p-200;
    // Far beyond any dtype, and the sum of two does not overflow.
    static constexpr int32_t kMostSteps = 1 << 28;

    double mantissa;
    int32_t steps;

    YOKE_HD static ScaledProduct of(double x) { return normalized(x, 0); }

    YOKE_HD static ScaledProduct normalized(double mantissa, int32_t steps)
    {
        double size = mantissa < 0 ? -mantissa : mantissa;
        while (size > kMost && size - size == 0) {
            mantissa *= kDown;
            size *= kDown;
            ++steps;
        }
        while (size < kLeast && size != 0) {
            mantissa *= kUp;
            size *= kUp;
            --steps;
        }
        steps = steps > kMostSteps ? kMostSteps : steps < -kMostSteps ? -kMostSteps : steps;
        return {mantissa, steps};
    }

    YOKE_HD ScaledProduct times(ScaledProduct other) const
    {
        return normalized(mantissa * other.mantissa, steps + other.steps);
    }
    YOKE_HD ScaledProduct over(ScaledProduct other) const
    {
        return normalized(mantissa / other.mantissa, steps - other.steps);
    }

    // Returns the product as a double; infinity or 0 if it is out of range. Rounds once: only the last of the steps
    // down can leave the normal numbers.
    YOKE_HD double value() const
    {
        double result = mantissa;
        for (int32_t left = steps; left > 0 && result - result == 0 && result != 0; --left)
            result *= kUp;
        for (int32_t left = steps; left < 0 && result - result == 0 && result != 0; ++left)
            result *= kDown;
        return result;
    }
};

YOKE_KERNELS_END
