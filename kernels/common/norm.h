// Normalisation: moments of a row, the affine map that follows, and the gradients of both.
//
// Contract
//  * C is the computing type, float or double. A sum has 64 parts within blocks of 4096. Parts are joined by halving,
//    blocks one after another. So the bits do not depend on the ISA, and four vectors of 16 hide the latency of an
//    addition.
//  * The variance is computed from the deviations from the mean, never as a difference of squares. So a mean far from
//    0 costs no digits.
//  * Finite values give finite statistics. If a sum of values or squares overflows, the row is computed again from
//    values multiplied by kShrink. Normal multiplies large deviations by kShrink, too. If squares vanish and eps does
//    not hide the loss, the row is computed again from values multiplied by kGrow.
#pragma once

#include "kernels/common/math.h"
#include "kernels/common/numeric.h"

YOKE_KERNELS_BEGIN

inline constexpr int kNormParts = 16;  // in each of the four groups
inline constexpr int64_t kNormBlock = 4096;

// Returns f(begin) + … + f(end - 1), for at most kNormBlock terms.
template <class C, class F>
YOKE_HD C sum_block(int64_t begin, int64_t end, const F &f)
{
    constexpr int kParts = kNormParts;
    C a[kParts] = {}, b[kParts] = {}, c[kParts] = {}, d[kParts] = {};
    int64_t i = begin;
    for (; i + 4 * kParts <= end; i += 4 * kParts) {
        YOKE_PARTS
        for (int k = 0; k < kParts; ++k) a[k] += f(i + k);
        YOKE_PARTS
        for (int k = 0; k < kParts; ++k) b[k] += f(i + kParts + k);
        YOKE_PARTS
        for (int k = 0; k < kParts; ++k) c[k] += f(i + 2 * kParts + k);
        YOKE_PARTS
        for (int k = 0; k < kParts; ++k) d[k] += f(i + 3 * kParts + k);
    }
    for (; i + kParts <= end; i += kParts) {
        YOKE_PARTS
        for (int k = 0; k < kParts; ++k) a[k] += f(i + k);
    }
    for (int64_t k = i; k < end; ++k) b[k - i] += f(k);
    YOKE_PARTS
    for (int k = 0; k < kParts; ++k) a[k] = (a[k] + b[k]) + (c[k] + d[k]);
    for (int half = kParts / 2; half > 0; half /= 2)
        for (int k = 0; k < half; ++k) a[k] += a[k + half];
    return a[0];
}

// Returns f(0) + … + f(n - 1).
template <class C, class F>
YOKE_HD C sum_of(int64_t n, const F &f)
{
    if (n <= kNormBlock) return sum_block<C>(0, n, f);
    C total = (C)0;
    for (int64_t begin = 0; begin < n; begin += kNormBlock)
        total += sum_block<C>(begin, begin + kNormBlock < n ? begin + kNormBlock : n, f);
    return total;
}

template <class C>
YOKE_HD C mean_of(const C *x, int64_t n)
{
    return sum_of<C>(n, [=](int64_t i) { return x[i]; }) / (C)n;
}

template <class C>
YOKE_HD C squared_deviations(const C *x, C mean, int64_t n)
{
    return sum_of<C>(n, [=](int64_t i) { return (x[i] - mean) * (x[i] - mean); });
}

// ---- statistics ---------------------------------------------------------------------------------

// Mean and sum of squared deviations of `count` values (T. Chan, G. Golub, R. LeVeque, 1979).
template <class C>
struct RowMoments {
    C count;
    C mean;
    C squares;

    YOKE_HD static RowMoments init() { return {(C)0, (C)0, (C)0}; }

    YOKE_HD static RowMoments of(const C *x, int64_t n)
    {
        if (n == 0) return init();
        C mean = mean_of(x, n);
        return {(C)n, mean, squared_deviations(x, mean, n)};
    }

    YOKE_HD static RowMoments combine(RowMoments a, RowMoments b)
    {
        C count = a.count + b.count;
        C share = select(count > (C)0, b.count / select(count > (C)0, count, (C)1), (C)0);
        C difference = b.mean - a.mean;
        return {count, a.mean + difference * share,
                a.squares + b.squares + difference * difference * a.count * share};
    }

    // Returns the squares divided by the count; NaN if the count is 0.
    YOKE_HD C variance() const { return squares / count; }
};

// Returns 1 / sqrt(x + eps) in two correctly rounded steps. On a device, each step takes ten instructions, so the
// result is only within 2 units in the last place.
YOKE_HD float inverse_root(float x, float eps)
{
#if defined(__CUDA_ARCH__)
    return ::rsqrtf(x + eps);
#else
    return 1.0f / __builtin_sqrtf(x + eps);
#endif
}
YOKE_HD double inverse_root(double x, double eps)
{
    return 1.0 / __builtin_sqrt(x + eps);
}

// ---- rows whose sums overflow or vanish ---------------------------------------------------------

// Power of two. If values are multiplied by it, their squares never overflow. The squares do not vanish either, if
// the sums overflowed before.
template <class C>
inline constexpr C kShrink = (C)(sizeof(C) == 4 ? 0x1p-100 : 0x1p-800);

// Returns whether a sum of squares is lost: infinite or NaN.
template <class C>
YOKE_HD bool overflowed(C squares)
{
    return !(squares < (C)kInfinity);
}

// Returns whether a variance is lost: infinite, NaN, or so small that the mean's own rounding may make up the whole
// variance.
template <class C>
YOKE_HD bool is_doubtful(C mean, C variance)
{
    constexpr C kRounding = (C)(sizeof(C) == 4 ? 0x1p-30 : 0x1p-88);  // rounding of a mean, squared
    return overflowed(variance) | (variance < mean * mean * kRounding);
}

// Inverse of kShrink: the factor for values whose squares vanish.
template <class C>
inline constexpr C kGrow = 1 / kShrink<C>;

// Returns whether variance plus eps is so small that squares may have lost digits, and eps does not hide the loss.
template <class C>
YOKE_HD bool vanished(C variance, C eps)
{
    return variance + eps < (C)(sizeof(C) == 4 ? 0x1p-100 : 0x1p-900);
}

// Returns the factor for values before they are squared: kShrink if the variance overflowed, kGrow if it vanished,
// else 1. If the mean is too large for kGrow, the factor is 1: then the deviations are 0, or their squares do not
// vanish.
template <class C>
YOKE_HD C scale_of(C mean, C variance, C eps)
{
    constexpr C kLargestMean = (C)(sizeof(C) == 4 ? 0x1p-50 : 0x1p-780);  // squared
    const bool grows = vanished(variance, eps) & (mean * mean < kLargestMean);
    return select(overflowed(variance), kShrink<C>, select(grows, kGrow<C>, (C)1));
}

// Returns `scaled` divided by its factor `scale`, a result of scale_of(), without a division.
template <class C>
YOKE_HD C unscaled(C scaled, C scale)
{
    return scaled * select(scale == (C)1, (C)1, select(scale < (C)1, kGrow<C>, kShrink<C>));
}

// Returns 1 / sqrt(variance + eps). `scaled` is the variance of the values after multiplication by scale_of(). If eps
// is negligible beside the variance, eps is left out.
template <class C>
YOKE_HD C inverse_root_of_scaled(C scaled, C scale, C eps)
{
    if (scale == 1) return inverse_root(scaled, eps);
    if (scale > 1) return kGrow<C> * inverse_root(scaled, eps * kGrow<C> * kGrow<C>);
    const C variance = scaled * kGrow<C> * kGrow<C>;
    if (!overflowed(variance)) return inverse_root(variance, eps);
    return kShrink<C> * inverse_root(scaled, (C)0);
}

// Normalisation (x - mean) rstd. If deviations are large, x - mean might overflow, and rstd might lose digits. Then x
// and mean are multiplied by kShrink, and rstd by its inverse.
template <class C>
struct Normal {
    C scale, mean, rstd;

    YOKE_HD Normal(C of_mean, C of_rstd)
    {
        bool large = of_rstd < (C)0x1p-60;
        scale = large ? kShrink<C> : (C)1;
        mean = of_mean * scale;
        rstd = of_rstd * (large ? 1 / kShrink<C> : (C)1);
    }
    YOKE_HD C operator()(C x) const { return (x * scale - mean) * rstd; }
};

// Sums for a gradient over one set of values: the sum of g, and the sum of g times the normalised x.
template <class C>
struct GradientSums {
    C g;
    C g_normal;

    YOKE_HD static GradientSums init() { return {(C)0, (C)0}; }
    YOKE_HD static GradientSums combine(GradientSums a, GradientSums b)
    {
        return {a.g + b.g, a.g_normal + b.g_normal};
    }
};

// ---- single elements ----------------------------------------------------------------------------

// Returns dx = rstd (g - mean(g) - normal mean(g normal)), where g is already multiplied by the weight.
template <class C>
YOKE_HD C norm_backward(C g, C normal, C rstd, C mean_g, C mean_g_normal)
{
    return rstd * (g - mean_g - normal * mean_g_normal);
}

YOKE_KERNELS_END
