// sort, argsort and topk along any axis: each row by one thread.
#include "kernels/common/axis_rows.h"
#include "kernels/common/index_axes.h"
#include "kernels/cpu/simd/iterate.h"
#include "kernels/cpu/simd/sort_rows.h"

YOKE_SIMD_BEGIN

constexpr int64_t kSortGrain = 4096;

// Rows of x along `axis`, and the rows of results beside them. A result that the op does not have is null.
struct SortRows : kernels::AxisRows<3> {  // x, values, indices
    int64_t taken = 1;
    int64_t size;  // bytes of an element
    bool has_values, descending;

    SortRows(const yoke_operand &x, const yoke_operand *values, const yoke_operand &indices,
             int axis, bool is_descending)
        : AxisRows<3>({&x, values ? values : &indices, &indices}, axis),
          taken(kernels::axis_length(indices, axis)),
          size(dtype_size(x.dtype)),
          has_values(values != nullptr),
          descending(is_descending)
    {
    }
};

template <class T>
static void fill_keys(kernels::sort_key_type<T> *key, const char *x, int64_t step, int64_t n,
                      bool descending)
{
    using K = kernels::sort_key_type<T>;
    const K flip = descending ? (K) ~(K)0 : (K)0;
    if (step == sizeof(T)) {
        const T *row = (const T *)x;
#pragma omp simd
        for (int64_t i = 0; i < n; i++) key[i] = (K)(kernels::sort_key(row[i]) ^ flip);
    } else {
        for (int64_t i = 0; i < n; i++)
            key[i] = (K)(kernels::sort_key(*(const T *)(x + i * step)) ^ flip);
    }
}

// Writes a row's indices, and its values if the op has values. Moves the elements themselves instead of converting
// keys back, so -0 and every NaN keep their bits.
template <class K, class I>
static void put_row(const SortRows &s, char *const *data, const I *index)
{
    for (int64_t i = 0; i < s.taken; i++) *(int64_t *)(data[2] + i * s.step[2]) = (int64_t)index[i];
    if (!data[1]) return;
    for (int64_t i = 0; i < s.taken; i++)
        *(K *)(data[1] + i * s.step[1]) = *(const K *)(data[0] + (int64_t)index[i] * s.step[0]);
}

// Sorts a row. If the op takes a sixteenth of the elements or less, keeps only these elements on a heap.
template <class T, class I>
static void sort_one(const SortRows &s, char *const *data, char *memory)
{
    using K = kernels::sort_key_type<T>;
    int64_t n = s.length;
    KeyedRow<K, I> row, spare;
    row.index = (I *)memory;
    spare.index = row.index + n;
    row.key = (K *)(spare.index + n);
    spare.key = row.key + n;
    fill_keys<T>(row.key, data[0], s.step[0], n, s.descending);
    if (s.taken <= n / 16) {
        select_row(row.key, n, spare, s.taken);
        return put_row<K>(s, data, spare.index);
    }
    put_row<K>(s, data, sort_row(row, spare, n).index);
}

template <class T, class I>
static yoke_status sort_all(const yoke_launch *launch, const SortRows &s)
{
    int64_t count = s.outer.numel, work = count * s.length;
    int64_t slots = team_size(), shares = work < 2 * kSortGrain ? 1 : min(count, team_chunks());
    int64_t share = divide_up(count, shares);
    int64_t bytes = divide_up(2 * s.length * (int64_t)(sizeof(I) + sizeof(T)), 64) * 64;
    Scratch scratch(launch);
    uint64_t room = (uint64_t)(min(shares, slots) * bytes);
    if (yoke_status status = scratch.reserve(room)) return status;
    parallel_slots(shares, slots, [&](int64_t item, int slot) {
        char *memory = static_cast<char *>(scratch.data()) + slot * bytes;
        int64_t begin = item * share, end = min(count, begin + share);
        if (begin >= end) return;
        Cursor<3> cursor(s.outer, begin);
        for (; begin < end; begin++, cursor.advance(s.outer, 0, 1)) {
            char *data[3] = {cursor.data[0], s.has_values ? cursor.data[1] : nullptr,
                             cursor.data[2]};
            sort_one<T, I>(s, data, memory);
        }
    });
    return YOKE_OK;
}

static yoke_status sort_dtype(const yoke_launch *launch, const SortRows &s)
{
    if (s.outer.numel == 0 || s.taken == 0) return YOKE_OK;
    return for_any(launch, "x", launch->operands[0].dtype, [&]<class T>() {
        if (s.length <= (int64_t)UINT32_MAX) return sort_all<T, uint32_t>(launch, s);
        return sort_all<T, uint64_t>(launch, s);
    });
}

// Sorts x along an axis. Parameters: axis, descending.
YOKE_KERNEL(sort)
{
    const yoke_operand *o = launch->operands;
    const yoke_arg *p = launch->params;
    return sort_dtype(launch, SortRows(o[0], &o[1], o[2], (int)p[0].v.i, p[1].v.i != 0));
}

YOKE_KERNEL(argsort)
{
    const yoke_operand *o = launch->operands;
    const yoke_arg *p = launch->params;
    return sort_dtype(launch, SortRows(o[0], nullptr, o[1], (int)p[0].v.i, p[1].v.i != 0));
}

// Finds the k largest or smallest elements along an axis. Parameters: k, axis, largest, sorted. The result is sorted
// even if `sorted` is false, because then any order is right.
YOKE_KERNEL(topk)
{
    const yoke_operand *o = launch->operands;
    const yoke_arg *p = launch->params;
    return sort_dtype(launch, SortRows(o[0], &o[1], o[2], (int)p[1].v.i, p[2].v.i != 0));
}

YOKE_SIMD_END
