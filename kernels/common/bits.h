// Bitwise functions of integers; elementwise.h tells the contract.
#pragma once

#include "kernels/common/numeric.h"

YOKE_KERNELS_BEGIN

struct BitAnd {
    template <class T>
    YOKE_HD T operator()(T a, T b) const
    {
        return (T)(a & b);
    }
};

struct BitOr {
    template <class T>
    YOKE_HD T operator()(T a, T b) const
    {
        return (T)(a | b);
    }
};

struct BitXor {
    template <class T>
    YOKE_HD T operator()(T a, T b) const
    {
        return (T)(a ^ b);
    }
};

struct BitNot {
    template <class T>
    YOKE_HD T operator()(T x) const
    {
        return (T)~x;
    }
};

// Shift up. Places below 0, or beyond the width, leave nothing.
struct ShiftUp {
    template <class T>
    YOKE_HD T operator()(T x, T places) const
    {
        using U = std::make_unsigned_t<T>;
        constexpr U kWidth = sizeof(T) * 8;
        U count = (U)places;
        using Wide = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
        U moved = (U)((Wide)(U)x << select(count < kWidth, count, (U)0));
        return (T)select(count < kWidth, moved, (U)0);
    }
};

// Shift down. The sign fills the places; places below 0, or beyond the width, leave the sign alone.
struct ShiftDown {
    template <class T>
    YOKE_HD T operator()(T x, T places) const
    {
        using U = std::make_unsigned_t<T>;
        constexpr U kWidth = sizeof(T) * 8;
        U count = (U)places;
        T sign = (T)(std::is_signed_v<T> && x < (T)0 ? -1 : 0);
        T moved = (T)(x >> select(count < kWidth, count, (U)0));
        return select(count < kWidth, moved, sign);
    }
};

YOKE_KERNELS_END
