// Products of an odd depth, which copies make even.
#include "kernels/cpu/gemm_even.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/onednn.h"
#include "kernels/cpu/onednn_parts.h"

namespace yoke::cpu {

constexpr int64_t kSize = 2;          // bytes of an element
constexpr int64_t kTile = 32;         // of depth that AMX takes at once
constexpr int64_t kRowsUnit = 64;     // what Cut takes for a unit of rows
constexpr int64_t kPiece = 32 << 20;  // bytes of a's copy

bool is_broken_depth(const Product &product)
{
    return product.dtype == YOKE_BF16 && product.k % 2 != 0 && product.k > kTile &&
           onednn_has_amx();
}

// What a copy of rows x columns is made of: `lines`, each dense, of so many elements.
struct Lines {
    int64_t lines, length, step;
    bool by_rows;

    Lines(const Matrix &m, int64_t rows, int64_t columns) : by_rows(m.column_stride == 1)
    {
        lines = by_rows ? rows : columns;
        length = by_rows ? columns : rows;
        step = by_rows ? m.row_stride : m.column_stride;
    }
};

// How many matrices a copy holds: one where all of the batch are the same.
static int64_t copies_of(const Matrix &m, int64_t batch)
{
    return m.batch_stride == 0 ? 1 : batch;
}

// Copies rows x columns of each matrix and makes `m` the copies. They have one column more, or one row more, of zeros.
static void copy_deeper(Matrix &m, int64_t batch, int64_t rows, int64_t columns, bool more_columns,
                        char *to)
{
    const Lines from(m, rows, columns);
    const bool longer = from.by_rows == more_columns;  // each line, rather than their number
    const int64_t lines = from.lines + (longer ? 0 : 1), length = from.length + (longer ? 1 : 0);
    const char *data = static_cast<const char *>(m.data);
    const int64_t copies = copies_of(m, batch), share = std::max<int64_t>(1, (1 << 15) / length);
    const int64_t shares = (lines + share - 1) / share;
    run_parts(copies * shares, INT32_MAX, [&](int64_t part, int) {
        const int64_t matrix = part / shares, begin = part % shares * share;
        for (int64_t line = begin; line < std::min(lines, begin + share); line++) {
            const int64_t given = line < from.lines ? from.length * kSize : 0;
            char *target = to + (matrix * lines + line) * length * kSize;
            memcpy(target, data + (matrix * m.batch_stride + line * from.step) * kSize,
                   (size_t)given);
            memset(target + given, 0, (size_t)(length * kSize - given));
        }
    });
    m = {to, copies > 1 ? lines * length : 0, from.by_rows ? length : 1, from.by_rows ? 1 : length};
}

yoke_status compute_even(const yoke_launch *launch, const Product &product, ComputeProduct compute,
                         bool *done)
{
    const int64_t batch = product.batch, depth = product.k + 1;
    const int64_t row_bytes = copies_of(product.a, batch) * depth * kSize;
    const int64_t rows =
        std::min(product.m, std::max<int64_t>(1, kPiece / (row_bytes * kRowsUnit)) * kRowsUnit);
    const int64_t bytes_a = (rows * row_bytes + 63) / 64 * 64,
                  bytes_b = copies_of(product.b, batch) * depth * product.n * kSize;
    Scratch scratch(launch);
    if (yoke_status status = scratch.reserve((uint64_t)(bytes_a + bytes_b))) return status;
    Product deeper = product;
    deeper.k = depth;
    copy_deeper(deeper.b, batch, product.k, product.n, false, scratch.as<char>() + bytes_a);
    const auto row_of = [](const Matrix &m, int64_t row) {
        return static_cast<char *>(m.data) + row * m.row_stride * kSize;
    };
    for (int64_t row = 0; row < product.m; row += rows) {
        deeper.m = std::min(rows, product.m - row);
        deeper.a = product.a;
        deeper.a.data = row_of(product.a, row);
        deeper.c.data = row_of(product.c, row);
        copy_deeper(deeper.a, batch, deeper.m, product.k, true, scratch.as<char>());
        if (yoke_status status = compute(launch, deeper, done)) return status;
        if (!*done) return YOKE_OK;  // and neither are the rest
    }
    return YOKE_OK;
}

}  // namespace yoke::cpu
