// prod: the product of a row, as an op of reduce.h.
#pragma once

#include "kernels/common/reduce.h"
#include "kernels/common/scaled_product.h"

YOKE_KERNELS_BEGIN

template <class T>
struct IntegerProd {
    using State = sum_type<T>;

    YOKE_HD State init() const { return (State)1; }
    YOKE_HD State reduce(State s, compute_type<T> x, int64_t) const
    {
        return Mul()(s, convert<State>(x));
    }
    YOKE_HD State combine(State a, State b) const { return Mul()(a, b); }
    YOKE_HD State project(State s, int64_t) const { return s; }
};

// Product that is correct whenever the result is in the dtype's range, even if an intermediate product is not.
template <class T>
struct FloatProd {
    using C = compute_type<T>;
    // Product, and the least magnitude of any intermediate product: a subnormal intermediate has lost digits.
    struct Part {
        C product;
        C least;
    };
    using State = ScaledProduct;
    static constexpr C kLeastNormal = sizeof(C) == 8 ? (C)0x1p-1022 : (C)0x1p-126;

    YOKE_HD State init() const { return {1, 0}; }
    YOKE_HD State combine(State a, State b) const { return a.times(b); }
    YOKE_HD double project(State s, int64_t) const { return s.value(); }

    YOKE_HD Part part_init() const { return {(C)1, (C)1}; }
    YOKE_HD Part part(Part p, C x) const { return join(p, {x, p.least}); }
    YOKE_HD Part join(Part p, Part q) const
    {
        C product = p.product * q.product, size = product < 0 ? -product : product;
        C least = select(q.least < p.least, q.least, p.least);
        return {product, select(size < least, size, least)};
    }
    YOKE_HD bool is_doubtful(Part p) const
    {
        return !(p.product - p.product == (C)0) || p.least < kLeastNormal;
    }
    YOKE_HD State state(Part p) const { return ScaledProduct::of((double)p.product); }
    template <class At>
    YOKE_HD State careful(int64_t n, const At &at) const
    {
        State s = init();
        YOKE_UNROLL
        for (int64_t i = 0; i < n; ++i) s = s.times(ScaledProduct::of((double)at(i)));
        return s;
    }
};

template <class T>
using Prod = std::conditional_t<is_float<T>, FloatProd<T>, IntegerProd<T>>;

YOKE_KERNELS_END
