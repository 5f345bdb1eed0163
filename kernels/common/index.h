// Arithmetic of indexing, masks and triangles for an element: its place, and whether the op keeps the element.
//
// Contract
//  * A functor takes and gives stored values. Elements are moved, never computed with.
//  * The kernel checks an index (is_inside) before it resolves the index. Only then does it access memory.
#pragma once

#include "kernels/common/numeric.h"

YOKE_KERNELS_BEGIN

// Returns whether `index` names one of `length` positions. With `wraps`, negative indices count from the end.
YOKE_HD bool is_inside(int64_t index, int64_t length, bool wraps)
{
    return index >= select(wraps, -length, (int64_t)0) && index < length;
}

// Returns the position named by an index inside of the axis. A negative index counts from the end.
YOKE_HD int64_t resolved(int64_t index, int64_t length)
{
    return index + select(index < 0, length, (int64_t)0);
}

// Choice of `value` where a mask is true, else of x.
template <class T>
struct MaskedFill {
    T value;
    template <class M>
    YOKE_HD T operator()(T x, M mask) const
    {
        return load<M>(mask) ? value : x;
    }
};

// Returns whether x is not 0. NaN is not 0; -0.0 is 0.
template <class T>
YOKE_HD bool is_nonzero(T x)
{
    return load<T>(x) != compute_type<T>(0);
}

// Columns [first, last) kept by a triangle in a row of `columns` columns.
struct Kept {
    int64_t first, last;
};

YOKE_HD int64_t clamp_column(int64_t column, int64_t columns)
{
    return select(column < 0, (int64_t)0, select(column > columns, columns, column));
}

// Columns up to the diagonal, including the diagonal.
struct LowerTriangle {
    YOKE_HD Kept operator()(int64_t row, int64_t columns, int64_t diagonal) const
    {
        return {0, clamp_column(row + diagonal + 1, columns)};
    }
};

// Columns from the diagonal on.
struct UpperTriangle {
    YOKE_HD Kept operator()(int64_t row, int64_t columns, int64_t diagonal) const
    {
        return {clamp_column(row + diagonal, columns), columns};
    }
};

YOKE_KERNELS_END
