// _count_nonzero and _nonzero: the number of elements other than 0, and their places.
//
// Elements are counted by chunks of a fixed length in row-major order. The count before a chunk is the chunk's place
// in the result.
#include "kernels/cpu/simd/indices.h"

YOKE_SIMD_BEGIN

constexpr int64_t kChunk = 16384;

static Loop<1> all_axes(const yoke_operand &x)
{
    Loop<1> loop;
    kernels::plan_every_axis(loop, x);
    return loop;
}

// Counts the elements of each chunk i that are not 0 into counts[i]. Returns the sum of all counts.
template <class T>
static int64_t count_chunks(const Loop<1> &loop, int64_t *counts)
{
    int64_t chunks = divide_up(loop.numel, kChunk), total = 0;
    auto count = [&](int64_t i) {
        int64_t found = 0;
        walk<1>(loop, i * kChunk, min(loop.numel, (i + 1) * kChunk),
                [&](char *const *data, const int64_t *stride, int64_t n) {
                    const T *x = (const T *)data[0];
                    int64_t here = 0;
                    if (stride[0] == sizeof(T)) {
#pragma omp simd reduction(+ : here)
                        for (int64_t k = 0; k < n; k++) here += kernels::is_nonzero(x[k]);
                    } else {
                        for (int64_t k = 0; k < n; k++)
                            here += kernels::is_nonzero(*(const T *)(data[0] + k * stride[0]));
                    }
                    found += here;
                });
        counts[i] = found;
    };
    if (loop.numel < 2 * kGrain)
        for (int64_t i = 0; i < chunks; i++) count(i);
    else
        parallel_items(chunks, count);
    for (int64_t i = 0; i < chunks; i++) total += counts[i];
    return total;
}

YOKE_KERNEL(_count_nonzero)
{
    const yoke_operand &x = launch->operands[0], &out = launch->operands[1];
    int64_t &total = *data_of<int64_t>(out);
    total = 0;
    if (x.numel == 0) return YOKE_OK;
    Scratch counts(launch);
    uint64_t bytes = (uint64_t)divide_up(x.numel, kChunk) * sizeof(int64_t);
    if (yoke_status status = counts.reserve(bytes)) return status;
    return for_any(launch, "x", x.dtype, [&]<class T>() {
        total = count_chunks<T>(all_axes(x), static_cast<int64_t *>(counts.data()));
        return (yoke_status)YOKE_OK;
    });
}

// Writes the coordinates of a chunk's elements other than 0, from row `row` of the result on.
template <class T>
static void write_chunk(const Loop<1> &loop, const yoke_operand &out, int64_t begin, int64_t end,
                        int64_t row)
{
    Cursor<1> cursor(loop, begin);
    int ndim = (int)out.shape[1];
    while (begin < end) {
        int64_t n = min(loop.shape[0] - cursor.at[0], end - begin);
        for (int64_t k = 0; k < n; k++) {
            if (!kernels::is_nonzero(*(const T *)(cursor.data[0] + k * loop.stride[0][0])))
                continue;
            int64_t *place = data_of<int64_t>(out) + row++ * out.strides[0];
            for (int axis = 0; axis < ndim; axis++)
                place[axis * out.strides[1]] =
                    cursor.at[ndim - 1 - axis] + (axis == ndim - 1 ? k : 0);
        }
        cursor.advance(loop, 0, n);
        begin += n;
    }
}

YOKE_KERNEL(_nonzero)
{
    const yoke_operand &x = launch->operands[0], &out = launch->operands[1];
    const Loop<1> loop = all_axes(x);
    int64_t chunks = divide_up(x.numel, kChunk);
    Scratch scratch(launch);
    if (yoke_status status = scratch.reserve((uint64_t)max(chunks, 1) * sizeof(int64_t)))
        return status;
    int64_t *rows = static_cast<int64_t *>(scratch.data());
    return for_any(launch, "x", x.dtype, [&]<class T>() {
        int64_t found = count_chunks<T>(loop, rows), row = 0;
        if (found != out.shape[0])
            return fail(
                YOKE_E_STATE,
                "nonzero: x changed while its elements were counted (%lld are not 0, but there were %lld a moment ago); another thread writes to x",
                (long long)found, (long long)out.shape[0]);
        for (int64_t i = 0; i < chunks; i++) {
            int64_t here = rows[i];
            rows[i] = row;
            row += here;
        }
        auto write = [&](int64_t i) {
            write_chunk<T>(loop, out, i * kChunk, min(x.numel, (i + 1) * kChunk), rows[i]);
        };
        if (x.numel < 2 * kGrain)
            for (int64_t i = 0; i < chunks; i++) write(i);
        else
            parallel_items(chunks, write);
        return (yoke_status)YOKE_OK;
    });
}

YOKE_SIMD_END
