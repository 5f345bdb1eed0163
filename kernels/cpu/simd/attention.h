// Common parts of attention's forward and backward kernels: the operands of a launch as heads, blocks of rows in the
// computing type, and masks.
#pragma once

#include "kernels/common/attention.h"
#include "kernels/common/attention_call.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/simd/iterate.h"
#include "kernels/cpu/simd/run.h"
#include "kernels/cpu/simd/tile.h"

YOKE_SIMD_BEGIN

// Queries or keys taken together: a multiple of every kWidth.
constexpr int64_t kKeyBlock = 64;
// Below this many multiplications a call stays in its thread.
constexpr double kAttentionGrain = 1 << 17;

using kernels::AttentionParams;
using kernels::AttentionSizes;

// Returns head `head` of an operand. The operand's leading axes broadcast to the leading axes of `query`.
inline Matrix head_of(const yoke_operand &o, const yoke_operand &query, int64_t head)
{
    char *data = data_of<char>(o);
    for (int axis = query.ndim - 3; axis >= 0; axis--) {
        int own = axis - (query.ndim - o.ndim);
        int64_t at = head % query.shape[axis];
        head /= query.shape[axis];
        if (own >= 0 && o.shape[own] != 1) data += at * o.strides[own] * dtype_size(o.dtype);
    }
    bool rows = o.shape[o.ndim - 2] != 1, columns = o.shape[o.ndim - 1] != 1;
    return {data, 0, rows ? o.strides[o.ndim - 2] : 0, columns ? o.strides[o.ndim - 1] : 0};
}

// Loads rows [first, first + count) of `m`, each padded with zeros to `padded` elements. Writes rows of zeros up to
// `rows` rows.
template <class T, class C>
inline void load_rows(const Matrix &m, int64_t first, int64_t count, int64_t rows, int64_t columns,
                      int64_t padded, C *to)
{
    for (int64_t r = 0; r < rows; r++, to += padded) {
        int64_t filled = r < count ? columns : 0;
        const T *from = (const T *)m.data + (first + r) * m.row_stride;
        if (r >= count) {
        } else if (m.column_stride == 1) {
            convert_run(from, columns, to);
        } else {
            for (int64_t d = 0; d < columns; d++) to[d] = load<T>(from[d * m.column_stride]);
        }
        for (int64_t d = filled; d < padded; d++) to[d] = (C)0;
    }
}

template <class T, class C>
inline void store_row(const Matrix &m, int64_t row, const C *from, int64_t columns)
{
    T *to = (T *)m.data + row * m.row_stride;
    if (m.column_stride == 1)
        convert_run(from, columns, to);
    else
        for (int64_t d = 0; d < columns; d++) to[d * m.column_stride] = store<T>(from[d]);
}

template <class C>
using Four [[gnu::vector_size(4 * sizeof(C)), gnu::aligned(sizeof(C)), gnu::may_alias]] = C;

// Transposes a square of 4 x 4 elements, times `scale`, by shuffles.
template <class C>
YOKE_HD void transpose_square(const C *from, int64_t from_step, C scale, C *to, int64_t to_step)
{
    using V = Four<C>;
    V a = *(const V *)from * scale, b = *(const V *)(from + from_step) * scale;
    V c = *(const V *)(from + 2 * from_step) * scale,
      d = *(const V *)(from + 3 * from_step) * scale;
    V ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5),
      ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    V cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5),
      cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    *(V *)to = __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5);
    *(V *)(to + to_step) = __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7);
    *(V *)(to + 2 * to_step) = __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);
    *(V *)(to + 3 * to_step) = __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);
}

// Sets to[column][row] = from[row][column] * scale.
template <class C>
inline void transpose_block(const C *from, int64_t from_step, int64_t rows, int64_t columns,
                            C scale, C *to, int64_t to_step)
{
    int64_t whole_rows = rows & ~(int64_t)3, whole_columns = columns & ~(int64_t)3;
    for (int64_t d = 0; d < whole_columns; d += 4)
        for (int64_t r = 0; r < whole_rows; r += 4)
            transpose_square(from + r * from_step + d, from_step, scale, to + d * to_step + r,
                             to_step);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t d = r < whole_rows ? whole_columns : 0; d < columns; d++)
            to[d * to_step + r] = from[r * from_step + d] * scale;
}

// Divides a block of memory into parts. Without memory, it only counts.
template <class C>
struct Dealer {
    C *base;
    int64_t dealt = 0;

    C *take(int64_t elements)
    {
        C *part = base ? base + dealt : nullptr;
        dealt += round_up(elements, 16);
        return part;
    }
};

// ---- masks ------------------------------------------------------------------------------------------------------

// Returns the mask's term for a score: 0 or -infinity for a bool.
template <class C, class M>
inline C mask_term(M value)
{
    if constexpr (std::is_same_v<M, bool8>)
        return load<M>(value) ? (C)0 : -(C)kernels::kInfinity;
    else
        return load<M>(value);
}

// Adds the mask at row r and column l to scores[r * row_step + l]. Steps are in elements.
template <class C, class M>
inline void add_mask_as(const M *mask, int64_t row_stride, int64_t column_stride, C *scores,
                        int64_t row_step, int64_t rows, int64_t columns)
{
    for (int64_t r = 0; r < rows; r++, mask += row_stride, scores += row_step)
        for (int64_t l = 0; l < columns; l++)
            scores[l] = kernels::attention_masked(scores[l], mask_term<C>(mask[l * column_stride]));
}

// ---- infinite and NaN elements ------------------------------------------------------------------------------------
//
// Products of tiles leave out such elements. They are added afterwards, only where a weight is not 0.

// Returns whether a launch can forbid pairs. If not, NaN passes normally through the products.
inline bool forbids_pairs(const yoke_operand &mask, const AttentionParams &params)
{
    return is_present(mask) || params.causal;
}

// Sets elements that are not finite to 0, and returns whether there was such an element.
template <class C>
inline bool clear_strays(C *x, int64_t n)
{
    int found = 0;
#pragma omp simd reduction(| : found)
    for (int64_t i = 0; i < n; i++) found |= (int)kernels::is_stray(x[i]);
    if (found)
        for (int64_t i = 0; i < n; i++) x[i] = kernels::is_stray(x[i]) ? (C)0 : x[i];
    return found != 0;
}

// The weights that rows of a matrix meet: `count` of a row, `step` apart.
template <class C>
struct StrayWeights {
    const C *weights;
    int64_t row, step, count;
};

// Adds weight number i of row r, times the element of m at row first + r and column d, to sums[i * step + d *
// across]. Takes only elements that are not finite, with weights other than 0.
template <class T, class C>
inline void add_strays(const Matrix &m, int64_t first, int64_t rows, int64_t columns,
                       const StrayWeights<C> &weights, C *sums, int64_t step, int64_t across)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t d = 0; d < columns; d++) {
            const C x =
                load<T>(((const T *)m.data)[(first + r) * m.row_stride + d * m.column_stride]);
            if (!kernels::is_stray(x)) continue;
            for (int64_t i = 0; i < weights.count; i++) {
                const C weight = weights.weights[r * weights.row + i * weights.step];
                if (weight != (C)0) sums[i * step + d * across] += weight * x;
            }
        }
}

// Calls f.operator()<M>() with the element type of a mask: bool8, or T, the type of the scores' operands.
template <class T, class F>
inline void for_mask(const yoke_operand &mask, const F &f)
{
    if (mask.dtype == YOKE_BOOL)
        f.template operator()<bool8>();
    else
        f.template operator()<T>();
}

// Dropout's factors for `queries` (at most kKeyBlock) from `query` on, and a single key: 0, or the factor that
// preserves the mean.
template <class C>
struct AttentionDropout {
    kernels::Keep keep;
    C factor;
    kernels::DrawPlace place;

    explicit AttentionDropout(const AttentionParams &p)
        : keep(kernels::Keep::dropping(p.dropout)),
          factor(kernels::dropout_scale<C>(p.dropout)),
          place(p.draw)
    {
    }

    void draw(const AttentionSizes &s, int64_t head, int64_t key, int64_t query, int64_t queries,
              C *factors) const
    {
        bool kept[kKeyBlock];
        int64_t first = kernels::attention_draw(head, key, query, s.keys, s.queries);
        const uint64_t counter = place.offset + (uint64_t)(first / kernels::Keep::kDraws);
        kernels::random_fill<bool>(keep, place.seed, counter, 0, queries, kept);
        for (int64_t i = 0; i < queries; i++) factors[i] = kept[i] ? factor : (C)0;
    }
};

// Calls f(slot, begin, end) for equal shares of `items`, by the team. Slots are as in parallel_slots. An item's
// result does not depend on the cut.
template <class F>
inline void share_items(int64_t items, int64_t shares, int64_t slots, const F &f)
{
    parallel_slots(shares, slots, [&](int64_t share, int slot) {
        f(slot, items * share / shares, items * (share + 1) / shares);
    });
}

inline int64_t shares_of(const AttentionSizes &sizes, int64_t items)
{
    return sizes.products() < 2 * kAttentionGrain ? 1 : max(1, min(team_chunks(), items));
}

YOKE_SIMD_END
