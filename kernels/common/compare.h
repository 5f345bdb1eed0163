// Comparisons, logic and choice: functors that give bool; elementwise.h tells the contract.
#pragma once

#include "kernels/common/numeric.h"

YOKE_KERNELS_BEGIN

struct Equal {
    template <class T>
    YOKE_HD bool operator()(T a, T b) const
    {
        return a == b;
    }
};

struct NotEqual {
    template <class T>
    YOKE_HD bool operator()(T a, T b) const
    {
        return a != b;
    }
};

struct Less {
    template <class T>
    YOKE_HD bool operator()(T a, T b) const
    {
        return a < b;
    }
};

struct LessEqual {
    template <class T>
    YOKE_HD bool operator()(T a, T b) const
    {
        return a <= b;
    }
};

struct Greater {
    template <class T>
    YOKE_HD bool operator()(T a, T b) const
    {
        return a > b;
    }
};

struct GreaterEqual {
    template <class T>
    YOKE_HD bool operator()(T a, T b) const
    {
        return a >= b;
    }
};

// Logical and. NaN counts as true, because NaN is not 0.
struct LogicalAnd {
    template <class T>
    YOKE_HD bool operator()(T a, T b) const
    {
        return a != (T)0 && b != (T)0;
    }
};

struct LogicalOr {
    template <class T>
    YOKE_HD bool operator()(T a, T b) const
    {
        return a != (T)0 || b != (T)0;
    }
};

struct LogicalXor {
    template <class T>
    YOKE_HD bool operator()(T a, T b) const
    {
        return (a != (T)0) != (b != (T)0);
    }
};

struct LogicalNot {
    template <class T>
    YOKE_HD bool operator()(T x) const
    {
        return x == (T)0;
    }
};

struct IsNan {
    template <class T>
    YOKE_HD bool operator()(T x) const
    {
        return x != x;
    }
};

// Test for an infinity: equal to itself, but its difference from itself is NaN.
struct IsInf {
    template <class T>
    YOKE_HD bool operator()(T x) const
    {
        return (x == x) & (x - x != (T)0);
    }
};

// Test for a finite number. Infinity minus infinity is NaN, so x - x is 0 only for a finite x.
struct IsFinite {
    template <class T>
    YOKE_HD bool operator()(T x) const
    {
        return x - x == (T)0;
    }
};

YOKE_KERNELS_END
