// Shares of a result's gradient for the elements of a reduction: ties of an extreme value, and factors of a product.
#pragma once

#include "kernels/common/scaled_product.h"
#include "kernels/common/vector_norm.h"

YOKE_KERNELS_BEGIN

// Returns whether a and b are equal, or both NaN.
template <class C>
YOKE_HD bool is_same(C a, C b)
{
    return (a == b) | ((a != a) & (b != b));
}

// `share` of amax's, or amin's, gradient goes to each element as large as `top`.
struct ShareOfExtreme {
    template <class C>
    YOKE_HD C operator()(C share, C x, C top) const
    {
        return select(is_same(x, top), share, (C)0);
    }
};

// Share of a gradient by magnitude, for norms of infinite order: the sign of x is the slope.
struct ShareOfMagnitude {
    template <class C>
    YOKE_HD C operator()(C share, C x, C top) const
    {
        C slope = x > 0 ? share : x < 0 ? -share : x == 0 ? (C)0 : x;
        return select(is_same(magnitude(x), top), slope, (C)0);
    }
};

// Product of the elements other than 0, and the number of zeros. Both give the product of all elements but one. With
// one 0, only the product without this 0 is not 0. With two zeros, every such product is 0.
struct Factors {
    ScaledProduct product;
    int32_t zeros;  // 2: two or more

    YOKE_HD static Factors none() { return {{1, 0}, 0}; }
    YOKE_HD Factors with(double x) const
    {
        return x == 0 ? joined({{1, 0}, 1}) : Factors{product.times(ScaledProduct::of(x)), zeros};
    }
    YOKE_HD Factors joined(Factors other) const
    {
        int32_t both = zeros + other.zeros;
        return {product.times(other.product), both > 2 ? 2 : both};
    }
    // Returns `share` times the product of all elements but x.
    YOKE_HD double others(double share, double x) const
    {
        if (zeros > (x == 0 ? 1 : 0)) return share * 0.0;
        ScaledProduct rest = x == 0 ? product : product.over(ScaledProduct::of(x));
        return rest.times(ScaledProduct::of(share)).value();
    }
};

YOKE_KERNELS_END
