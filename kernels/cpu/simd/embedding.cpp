// embedding and its gradient. The gradient is computed by rows of the table. A counting sort orders positions by
// their row and preserves the order within a row. Then each row adds up its positions. Two threads never write the
// same row, and the order of additions is the order of the index.
#include <cstring>

#include "kernels/cpu/simd/indices.h"
#include "kernels/cpu/simd/norm_rows.h"

YOKE_SIMD_BEGIN

constexpr int64_t kEmbeddingColumns =
    128;  // columns at a time, accumulated in registers and a near cache
constexpr int64_t kEmbeddingBlock = 64;  // additions in sequence before the sum joins the total

// Entries of the index as a list, in row-major order.
struct Entries {
    Loop<1> loop;
    bool wide;  // int64

    explicit Entries(const yoke_operand &index) : wide(index.dtype == YOKE_I64)
    {
        plan_ordered<1>(loop, {&index}, 0, index.ndim);
    }

    int64_t count() const { return loop.numel; }
    static int64_t read(const char *at, bool wide)
    {
        return wide ? *(const int64_t *)at : *(const int32_t *)at;
    }
};

// Returns the failure for entry `i`: "embedding: index[2, 0] is 70; ...".
static yoke_status out_of_range(const yoke_operand &index, int64_t i, int64_t value, int64_t count)
{
    char at[160];
    kernels::write_place(index.shape, index.ndim, i, at, sizeof(at));
    if (count == 0)
        return fail(YOKE_E_INDEX, "embedding: index%s is %lld, but weight has no rows", at,
                    (long long)value);
    return fail(YOKE_E_INDEX, "embedding: index%s is %lld; weight has %lld rows: use 0 to %lld", at,
                (long long)value, (long long)count, (long long)count - 1);
}

// Calls f(entry, value) for each entry in order, up to the first entry that names no row. Returns the failure of this
// entry or of the index's dtype, else YOKE_OK.
template <class F>
static yoke_status for_entries(const yoke_launch *launch, const yoke_operand &index, int64_t count,
                               const F &f)
{
    if (index.dtype != YOKE_I64 && index.dtype != YOKE_I32)
        return bad_dtype(launch, "index", index.dtype);
    Entries entries(index);
    int64_t i = 0, bad = -1, found = 0;
    walk<1>(entries.loop, 0, entries.count(),
            [&](char *const *data, const int64_t *stride, int64_t n) {
                for (int64_t k = 0; k < n && bad < 0; k++, i++) {
                    int64_t value = Entries::read(data[0] + k * stride[0], entries.wide);
                    if (value < 0 || value >= count)
                        bad = i, found = value;
                    else
                        f(i, value);
                }
            });
    return bad < 0 ? (yoke_status)YOKE_OK : out_of_range(index, bad, found, count);
}

YOKE_KERNEL(embedding)
{
    const yoke_operand &index = launch->operands[0], &weight = launch->operands[1];
    const yoke_operand &out = launch->operands[2];
    int64_t width = weight.shape[1], size = dtype_size(weight.dtype);
    if (yoke_status status = for_entries(launch, index, weight.shape[0], [](int64_t, int64_t) {}))
        return status;
    Entries entries(index);
    int64_t row_step = weight.strides[0] * size, step = weight.strides[1] * size;
    return for_size(launch, "weight", size, [&]<class T>() {
        parallel_shares(
            entries.count(), max(1, kGrain / max(1, width)), [&](int64_t begin, int64_t end) {
                Cursor<1> cursor(entries.loop, begin);
                T *to = data_of<T>(out) + begin * width;
                for (int64_t i = begin; i < end; i++, to += width) {
                    const char *from = data_of<char>(weight) +
                                       Entries::read(cursor.data[0], entries.wide) * row_step;
                    cursor.advance(entries.loop, 0, 1);
                    if (step == (int64_t)sizeof(T)) {
                        memcpy(to, from, (size_t)width * sizeof(T));
                        continue;
                    }
                    for (int64_t j = 0; j < width; j++) to[j] = *(const T *)(from + j * step);
                }
            });
        return (yoke_status)YOKE_OK;
    });
}

// Sorted list of entries, and the begin of each row's entries in the list.
struct Buckets {
    int64_t *start;   // rows + 1
    int64_t *sorted;  // entries, by row, then in the index's order
};

static yoke_status sort_entries(const yoke_launch *launch, const yoke_operand &index, int64_t rows,
                                int64_t padding, Buckets &buckets)
{
    int64_t *start = buckets.start;
    memset(start, 0, (size_t)(rows + 2) * sizeof(int64_t));
    yoke_status status = for_entries(launch, index, rows, [=](int64_t, int64_t row) {
        if (row != padding) start[row + 2]++;
    });
    if (status) return status;
    for (int64_t row = 0; row < rows; row++) start[row + 2] += start[row + 1];
    // start[row + 1] is where the row's next entry goes, and in the end where the row ends.
    return for_entries(launch, index, rows, [=](int64_t i, int64_t row) {
        if (row != padding) buckets.sorted[start[row + 1]++] = i;
    });
}

// Computes a row of the gradient: the sum of `count` rows of grad, by tiles of columns.
template <class T>
static void add_row(const Loop<1> &places, const int64_t *entries, int64_t count, int64_t step,
                    int64_t width, T *to)
{
    using C = compute_type<T>;
    for (int64_t first = 0; first < width; first += kEmbeddingColumns) {
        int64_t n = min(kEmbeddingColumns, width - first);
        double total[kEmbeddingColumns] = {};
        for (int64_t begin = 0; begin < count; begin += kEmbeddingBlock) {
            C block[kEmbeddingColumns] = {};
            for (int64_t k = begin; k < min(count, begin + kEmbeddingBlock); k++) {
                const char *at = Cursor<1>(places, entries[k]).data[0] + first * step;
                if (step == (int64_t)sizeof(T)) {
                    const T *g = (const T *)at;
#pragma omp simd
                    for (int64_t j = 0; j < n; j++) block[j] += load<T>(g[j]);
                } else {
                    for (int64_t j = 0; j < n; j++)
                        block[j] += load<T>(*(const T *)(at + j * step));
                }
            }
            for (int64_t j = 0; j < n; j++) total[j] += (double)block[j];
        }
        for (int64_t j = 0; j < n; j++) to[first + j] = convert<T>(total[j]);
    }
}

// Returns the first row at or after share number `share` of `shares` equal shares of work. A row and an entry count
// as a unit each.
static int64_t cut(const int64_t *start, int64_t rows, int64_t share, int64_t shares)
{
    int64_t goal = (rows + start[rows]) / shares * share, low = 0, high = rows;
    if (share == shares) return rows;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (start[middle] + middle < goal)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

YOKE_KERNEL(_embedding_backward)
{
    const yoke_operand &grad = launch->operands[0], &index = launch->operands[1];
    const yoke_operand &out = launch->operands[2];
    int64_t rows = launch->params[0].v.i, width = out.shape[1], entries = index.numel;
    int64_t padding = launch->params[1].kind == YOKE_ARG_NONE ? -1 : launch->params[1].v.i;
    Scratch scratch(launch);
    if (yoke_status status = scratch.reserve((uint64_t)(rows + 2 + entries) * sizeof(int64_t)))
        return status;
    Buckets buckets{static_cast<int64_t *>(scratch.data()), nullptr};
    buckets.sorted = buckets.start + rows + 2;
    if (yoke_status status = sort_entries(launch, index, rows, padding, buckets)) return status;
    Loop<1> places;
    plan_ordered<1>(places, {&grad}, 0, grad.ndim - 1);
    int64_t step = grad.strides[grad.ndim - 1] * dtype_size(grad.dtype);
    int64_t shares = (entries + rows) * width < 2 * kGrain ? 1 : team_chunks();
    return for_float(launch, "grad", grad.dtype, [&]<class T>() {
        parallel_items(shares, [&](int64_t share) {
            int64_t end = cut(buckets.start, rows, share + 1, shares);
            for (int64_t row = cut(buckets.start, rows, share, shares); row < end; row++) {
                int64_t begin = buckets.start[row];
                add_row<T>(places, buckets.sorted + begin, buckets.start[row + 1] - begin, step,
                           width, data_of<T>(out) + row * width);
            }
        });
        return (yoke_status)YOKE_OK;
    });
}

YOKE_SIMD_END
