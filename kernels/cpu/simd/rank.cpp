// Ranks of elements along an axis: the place of the k-th smallest, and the longest run of equal neighbours.
#include "kernels/common/axis_rows.h"
#include "kernels/common/sort_key.h"
#include "kernels/cpu/simd/iterate.h"

YOKE_SIMD_BEGIN

constexpr int64_t kRankGrain = 4096;

// Keeps the keys whose digit at `shift` is that of the k-th smallest of n keys. Returns how many there are; k becomes
// the rank among them.
template <class K>
static int64_t keep_digit(K *key, int64_t n, int shift, int64_t &k)
{
    int64_t counts[256] = {};
    for (int64_t i = 0; i < n; i++) counts[(key[i] >> shift) & 255]++;
    int digit = 0;
    while (k > counts[digit]) k -= counts[digit++];
    if (counts[digit] == n) return n;
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i++) {
        key[kept] = key[i];
        kept += ((key[i] >> shift) & 255) == (K)digit;
    }
    return kept;
}

// Returns the k-th smallest of n keys; changes their memory.
template <class K>
static K kth_key(K *key, int64_t n, int64_t k)
{
    for (int shift = 8 * ((int)sizeof(K) - 1); shift >= 0 && n > 1; shift -= 8)
        n = keep_digit(key, n, shift, k);
    return key[0];
}

// Returns the index of the k-th smallest element of a row, of equal ones the first. If nan_wins, a NaN is the smallest.
template <class T>
static int64_t kth_of_row(const char *x, int64_t step, int64_t n, int64_t k, bool nan_wins,
                          kernels::sort_key_type<T> *key)
{
    using K = kernels::sort_key_type<T>;
    constexpr K kNan = (K) ~(K)0;
    if (step == (int64_t)sizeof(T)) {
        const T *row = (const T *)x;
#pragma omp simd
        for (int64_t i = 0; i < n; i++) key[i] = kernels::sort_key(row[i]);
    } else {
        for (int64_t i = 0; i < n; i++) key[i] = kernels::sort_key(*(const T *)(x + i * step));
    }
    int found_nan = 0;
    for (int64_t i = 0; i < n; i++) found_nan |= key[i] == kNan;
    const K wanted = is_float<T> && nan_wins && found_nan ? kNan : kth_key(key, n, k);
    int64_t i = 0;
    while (kernels::sort_key(*(const T *)(x + i * step)) != wanted) i++;
    return i;
}

// Calls f(row, memory) for every row, by the team. Each thread has `bytes` of memory.
template <int N, class F>
static yoke_status each_row(const yoke_launch *launch, const kernels::AxisRows<N> &rows,
                            int64_t bytes, const F &f)
{
    const int64_t count = rows.outer.numel, slots = team_size();
    const int64_t shares = count * rows.length < 2 * kRankGrain ? 1 : min(count, team_chunks());
    const int64_t share = divide_up(count, shares), room = divide_up(bytes, 64) * 64;
    Scratch scratch(launch);
    if (yoke_status status = scratch.reserve((uint64_t)(min(shares, slots) * room))) return status;
    parallel_slots(shares, slots, [&](int64_t item, int slot) {
        int64_t begin = item * share, end = min(count, begin + share);
        if (begin >= end) return;
        Cursor<N> cursor(rows.outer, begin);
        for (; begin < end; begin++, cursor.advance(rows.outer, 0, 1))
            f(cursor.data, static_cast<char *>(scratch.data()) + slot * room);
    });
    return YOKE_OK;
}

// Parameters: k from 1 on, axis, nan_wins.
YOKE_KERNEL(_kth_place)
{
    const yoke_operand &x = launch->operands[0], &out = launch->operands[1];
    const yoke_arg *p = launch->params;
    if (out.numel == 0) return YOKE_OK;
    const kernels::AxisRows<2> rows({&x, &out}, (int)p[1].v.i);
    return for_any(launch, "x", x.dtype, [&]<class T>() {
        using K = kernels::sort_key_type<T>;
        return each_row<2>(
            launch, rows, rows.length * (int64_t)sizeof(K), [&](char *const *data, char *memory) {
                *(int64_t *)data[1] = kth_of_row<T>(data[0], rows.step[0], rows.length, p[0].v.i,
                                                    p[2].v.i != 0, (K *)memory);
            });
    });
}

// Takes the middle element of a vector, or its first NaN.
YOKE_KERNEL(_median)
{
    const yoke_operand &x = launch->operands[0], &out = launch->operands[1];
    const int64_t n = x.numel, step = x.strides[0] * dtype_size(x.dtype);
    Scratch scratch(launch);
    if (yoke_status status = scratch.reserve((uint64_t)(n * dtype_size(x.dtype)))) return status;
    return for_any(launch, "x", x.dtype, [&]<class T>() {
        using K = kernels::sort_key_type<T>;
        const char *data = data_of<char>(x);
        const int64_t place = kth_of_row<T>(data, step, n, (n + 1) / 2, true, (K *)scratch.data());
        *data_of<T>(out) = *(const T *)(data + place * step);
        return (yoke_status)YOKE_OK;
    });
}

template <class T>
static int64_t longest_run(const char *x, int64_t step, int64_t n)
{
    int64_t begin = 0, longest = 0, end = 0;
    for (int64_t i = 1; i <= n; i++) {
        if (i < n &&
            load<T>(*(const T *)(x + i * step)) == load<T>(*(const T *)(x + (i - 1) * step)))
            continue;
        if (i - begin > longest) {
            longest = i - begin;
            end = i - 1;
        }
        begin = i;
    }
    return end;
}

YOKE_KERNEL(_longest_run)
{
    const yoke_operand &x = launch->operands[0], &out = launch->operands[1];
    if (out.numel == 0) return YOKE_OK;
    const kernels::AxisRows<2> rows({&x, &out}, (int)launch->params[0].v.i);
    return for_any(launch, "x", x.dtype, [&]<class T>() {
        return each_row<2>(launch, rows, 0, [&](char *const *data, char *) {
            *(int64_t *)data[1] = longest_run<T>(data[0], rows.step[0], rows.length);
        });
    });
}

YOKE_SIMD_END
