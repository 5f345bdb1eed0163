// The innermost kernel of every matrix product of our own: kRows rows of two vectors, held in registers while columns
// of a meet rows of b.
#pragma once

#include "kernels/cpu/simd/simd.h"

YOKE_SIMD_BEGIN

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64, kRows = 8;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32, kRows = 6;
#else
constexpr int kVectorBytes = 16, kRows = 4;
#endif

template <class C>
using Vector [[gnu::vector_size(kVectorBytes), gnu::aligned(sizeof(C)), gnu::may_alias]] = C;

template <class C>
constexpr int64_t kWidth = 2 * kVectorBytes / (int64_t)sizeof(C);  // columns of a tile

inline int64_t round_up(int64_t n, int64_t multiple)
{
    return divide_up(n, multiple) * multiple;
}

// Layout of a panel of kRows rows of a in memory: row by row, or column by column.
enum class Panel { kByRow, kByColumn };

// Computes kRows x kWidth of c = (kAdd ? c : 0) + a b over `depth`. a's rows (or columns) are a_step apart. With
// kApart, c is added at the end: then a sum over many calls is a sum of sums. Such a sum still grows if single
// products would be too small to change it.
template <Panel kPanel, bool kAdd, bool kApart = false, class C>
YOKE_HD void tile(const C *a, int64_t a_step, const C *b, int64_t b_step, int64_t depth, C *c,
                  int64_t c_step)
{
    using V = Vector<C>;
    V low[kRows], high[kRows];
    const int64_t half = kWidth<C> / 2;
#pragma GCC unroll 8
    for (int i = 0; i < kRows; i++) {
        low[i] = kAdd && !kApart ? *(const V *)(c + i * c_step) : V{};
        high[i] = kAdd && !kApart ? *(const V *)(c + i * c_step + half) : V{};
    }
    for (int64_t p = 0; p < depth; p++) {
        V left = *(const V *)b, right = *(const V *)(b + half);
#pragma GCC unroll 8
        for (int i = 0; i < kRows; i++) {
            C value = kPanel == Panel::kByRow ? a[i * a_step + p] : a[i];
            low[i] += value * left;
            high[i] += value * right;
        }
        if (kPanel == Panel::kByColumn) a += a_step;
        b += b_step;
    }
#pragma GCC unroll 8
    for (int i = 0; i < kRows; i++) {
        if (kAdd && kApart) low[i] += *(const V *)(c + i * c_step);
        if (kAdd && kApart) high[i] += *(const V *)(c + i * c_step + half);
        *(V *)(c + i * c_step) = low[i];
        *(V *)(c + i * c_step + half) = high[i];
    }
}

// Computes kRows rows of c = (kAdd ? c : 0) + a b. The rows are `columns` wide, a multiple of kWidth.
template <Panel kPanel, bool kAdd, class C>
inline void tile_row(const C *a, int64_t a_step, const C *b, int64_t b_step, int64_t depth, C *c,
                     int64_t c_step, int64_t columns)
{
    for (int64_t j = 0; j < columns; j += kWidth<C>)
        tile<kPanel, kAdd>(a, a_step, b + j, b_step, depth, c + j, c_step);
}

YOKE_SIMD_END
