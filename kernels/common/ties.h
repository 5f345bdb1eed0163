// How a result's gradient is shared among its elements, where a reduction looks at all of them: ties of an extreme
// value, and factors of a product.
#pragma once

#include "kernels/common/vector_norm.h"

YOKE_KERNELS_BEGIN

// Equal, or NaN both.
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

// The same by magnitude, for norms of infinite order: the sign of x is its slope.
struct ShareOfMagnitude {
    template <class C>
    YOKE_HD C operator()(C share, C x, C top) const
    {
        C slope = x > 0 ? share : x < 0 ? -share : x == 0 ? (C)0 : x;
        return select(is_same(magnitude(x), top), slope, (C)0);
    }
};

// The product of all elements but one, x: from the product of those that are not 0, and the number of those that are.
// With one 0 it is not 0 for that alone, with two for none.
YOKE_HD double product_of_others(double product, int64_t zeros, double x)
{
    if (x == 0) return zeros == 1 ? product : 0.0;
    return zeros ? 0.0 : product / x;
}

YOKE_KERNELS_END
