// Products of an odd depth, which copies make even.
#include "kernels/cpu/gemm_even.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/onednn.h"
#include "kernels/cpu/onednn_parts.h"

namespace yoke::cpu {

constexpr int64_t kSize = 2;          // bytes of an element
constexpr int64_t kPiece = 32 << 20;  // bytes of a copy, where a unit fits

bool is_broken_depth(const Product &product)
{
    return product.dtype == YOKE_BF16 && product.k % 2 != 0 && product.k > kAmxTile &&
           onednn_has_amx();
}

// Lines of a copy of rows x columns: `lines` dense lines of `length` elements.
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

// Returns how many matrices a copy holds: 1 if all matrices of the batch are the same.
static int64_t copies_of(const Matrix &m, int64_t batch)
{
    return m.batch_stride == 0 ? 1 : batch;
}

// Copies rows x columns of each matrix, and adds a column or a row of zeros. Returns the copy.
static Matrix copy_deeper(const Matrix &m, int64_t batch, int64_t rows, int64_t columns,
                          bool more_columns, char *to)
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
    return {to, copies > 1 ? lines * length : 0, from.by_rows ? length : 1,
            from.by_rows ? 1 : length};
}

// Sizes of a piece copied at a time: matrices, rows of a and columns of b.
struct EvenPiece {
    int64_t batch, rows, columns;

    EvenPiece(const Product &p, int64_t depth)
    {
        const int64_t line = depth * kSize;
        const auto some_of = [&](int64_t lines) {
            return std::min(lines, std::max<int64_t>(1, kPiece / (line * kAmxUnit)) * kAmxUnit);
        };
        rows = some_of(p.m);
        columns = some_of(p.n);
        batch = std::clamp<int64_t>(kPiece / (line * std::max(rows, columns)), 1, p.batch);
    }
};

// Returns a piece of a product: some matrices from `matrix` on, with some rows from `row` on and some columns from
// `column` on.
static Product piece_of(const Product &whole, const EvenPiece &piece, int64_t matrix, int64_t row,
                        int64_t column)
{
    Product part = whole;
    part.batch = std::min(piece.batch, whole.batch - matrix);
    part.m = std::min(piece.rows, whole.m - row);
    part.n = std::min(piece.columns, whole.n - column);
    const auto move = [&](Matrix &m, int64_t by_row, int64_t by_column) {
        const int64_t elements =
            matrix * m.batch_stride + by_row * m.row_stride + by_column * m.column_stride;
        m.data = static_cast<char *>(m.data) + elements * kSize;
        if (part.batch == 1) m.batch_stride = 0;
    };
    move(part.a, row, 0);
    move(part.b, 0, column);
    move(part.c, row, column);
    if (part.bias) part.bias = static_cast<const char *>(part.bias) + column * kSize;
    return part;
}

static uint64_t copy_bytes(const Matrix &m, const EvenPiece &piece, int64_t lines, int64_t depth)
{
    return aligned((uint64_t)(copies_of(m, piece.batch) * lines * depth * kSize));
}

yoke_status compute_even(const yoke_launch *launch, const Product &product, ComputeProduct compute,
                         bool *done)
{
    const int64_t depth = product.k + 1;
    const EvenPiece piece(product, depth);
    const uint64_t bytes_a = copy_bytes(product.a, piece, piece.rows, depth),
                   bytes_b = copy_bytes(product.b, piece, piece.columns, depth);
    Scratch scratch(launch);
    if (yoke_status status = scratch.reserve(bytes_a + bytes_b)) return status;
    char *a = scratch.as<char>(), *b = a + bytes_a;
    Matrix copied_a = {}, copied_b = {};
    for (int64_t matrix = 0; matrix < product.batch; matrix += piece.batch)
        for (int64_t column = 0; column < product.n; column += piece.columns)
            for (int64_t row = 0; row < product.m; row += piece.rows) {
                Product part = piece_of(product, piece, matrix, row, column);
                part.k = depth;
                if (column == 0 || piece.rows < product.m)
                    copied_a = copy_deeper(part.a, part.batch, part.m, product.k, true, a);
                if (row == 0)
                    copied_b = copy_deeper(part.b, part.batch, product.k, part.n, false, b);
                part.a = copied_a;
                part.b = copied_b;
                if (yoke_status status = compute(launch, part, done)) return status;
                if (!*done) return YOKE_OK;  // the remaining pieces fail alike
            }
    return YOKE_OK;
}

}  // namespace yoke::cpu
