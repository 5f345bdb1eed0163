// The state that batch_norm and group_norm make of a plane's values.
#pragma once

#include "kernels/common/moments.h"
#include "kernels/common/norm.h"

YOKE_KERNELS_BEGIN

// The count, mean and squared deviations of a plane's values of C.
template <class C>
struct PlaneState {
    MomentsState<C> moments;

    YOKE_HD static PlaneState init() { return {Moments<C>().init()}; }
    YOKE_HD static PlaneState combine(const PlaneState &a, const PlaneState &b)
    {
        return {Moments<C>().combine(a.moments, b.moments)};
    }
    YOKE_HD C mean() const { return (C)moments.mean; }
    YOKE_HD C variance() const { return (C)Moments<C>().variance(moments, 0); }
    // Returns 1 / sqrt(variance + eps). If the variance or its sum with eps is out of C's range, the deviation is
    // used instead. eps may be 0.
    YOKE_HD C rstd(C eps) const
    {
        const C held = variance();
        if (!overflowed(held) & (held + eps > (C)0x1p-100)) return inverse_root(held, eps);
        const double a = Moments<C>().deviation(moments, 0), b = __builtin_sqrt((double)eps);
        const double more = select(a < b, b, a), ratio = select(a < b, a, b) / more;
        return (C)(1.0 / (more * __builtin_sqrt(1 + ratio * ratio)));
    }
};

YOKE_KERNELS_END
