// Blocked matrix products (K. Goto, R. van de Geijn, "Anatomy of high-performance matrix multiplication", 2008): tiles
// of the result, for which panels of a and b are packed, and a kernel that keeps a few rows of two vectors in
// registers.
#include "kernels/cpu/simd/multiply.h"

#include <cstdlib>

#include "kernels/cpu/simd/run.h"
#include "kernels/cpu/simd/tile.h"

YOKE_SIMD_BEGIN

constexpr int64_t kTileRows = 96, kDepth = 256;  // kTileRows is a multiple of every kRows
constexpr int64_t kTileBytes = 1024;             // length of a row of the result's tile
constexpr int64_t kStackBytes = 24576;           // composed ops call products on stacks of 64 KiB

// Accumulator type of a dtype. Integers wrap, so unsigned integers of at least 32 bits give the right low bits.
template <class T>
using Accumulator = std::conditional_t<is_float<T>, compute_type<T>,
                                       std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>>;

template <class C, class T>
static C widen(T x)
{
    return (C)load<T>(x);
}

template <class T, class C>
static T narrow(C x)
{
    if constexpr (std::is_same_v<T, bool8>)
        return convert<T>(x);
    else
        return store<T>((compute_type<T>)x);
}

template <class C, class T>
static void widen_all(const T *from, int64_t n, C *to)
{
    if constexpr (is_float<T>)
        convert_run(from, n, to);
    else
        for (int64_t i = 0; i < n; i++) to[i] = widen<C>(from[i]);
}

// Packs `columns` rows of a (or columns of b) of length `depth` into panels of kColumns, element after element.
// Missing columns are 0. If either axis is dense, elements are converted in runs along this axis.
template <int64_t kColumns, class C, class T>
static void pack(const T *from, int64_t column_stride, int64_t stride, int64_t columns,
                 int64_t depth, C *to)
{
    for (; columns > 0;
         columns -= kColumns, from += kColumns * column_stride, to += kColumns * depth) {
        if (column_stride == 1 && columns >= kColumns) {
            for (int64_t p = 0; p < depth; p++)
                widen_all(from + p * stride, kColumns, to + p * kColumns);
            continue;
        }
        for (int64_t column = 0; column < kColumns; column++) {
            const T *line = from + column * column_stride;
            C run[kDepth];
            if (column >= columns)
                for (int64_t p = 0; p < depth; p++) run[p] = (C)0;
            else if (stride == 1)
                widen_all(line, depth, run);
            else
                for (int64_t p = 0; p < depth; p++) run[p] = widen<C>(line[p * stride]);
            for (int64_t p = 0; p < depth; p++) to[p * kColumns + column] = run[p];
        }
    }
}

// Cut of a product into tiles, with the memory of a tile.
template <class C>
struct Tiling {
    int64_t rows, columns, depth;         // sizes of a tile, rounded up to whole panels
    int64_t down, across;                 // tiles
    int64_t a_size, b_size, result_size;  // elements

    explicit Tiling(const Product &p)
    {
        constexpr int64_t width = kWidth<C>, widest = kTileBytes / (int64_t)sizeof(C);
        rows = min(kTileRows, divide_up(p.m, kRows) * kRows);
        columns = min(widest, divide_up(p.n, width) * width);
        depth = min(kDepth, p.k);
        down = divide_up(p.m, rows);
        across = divide_up(p.n, columns);
        a_size = rows * depth;
        b_size = depth * columns;
        result_size = rows * columns;
    }

    int64_t bytes() const { return (a_size + b_size + result_size) * (int64_t)sizeof(C); }
};

template <class T, class C>
static void write_row(const C *from, int64_t n, T *to, int64_t stride)
{
    if (is_float<T> && stride == 1) {
        if constexpr (is_float<T>) convert_run(from, n, to);
        return;
    }
    for (int64_t j = 0; j < n; j++) to[j * stride] = narrow<T>(from[j]);
}

template <class T, class C>
static void write_tile(const Product &product, C *tile, int64_t stride, T *c, const T *bias,
                       int64_t rows, int64_t columns)
{
    const Matrix &m = product.c;
    for (int64_t i = 0; i < rows; i++, tile += stride) {
        for (int64_t j = 0; bias && j < columns; j++) tile[j] += widen<C>(bias[j]);
        write_row(tile, columns, c + i * m.row_stride, m.column_stride);
    }
}

// Computes a whole tile of the result. Partial sums stay in the tile until all of k is added.
template <class T, class C>
static void compute_tile(const Product &product, const Tiling<C> &tiling, int64_t index, C *room)
{
    int64_t batch = index / (tiling.down * tiling.across);
    int64_t row = index / tiling.across % tiling.down * tiling.rows;
    int64_t column = index % tiling.across * tiling.columns;
    int64_t rows = min(tiling.rows, product.m - row),
            columns = min(tiling.columns, product.n - column);
    const Matrix &ma = product.a, &mb = product.b, &mc = product.c;
    const T *a = (const T *)ma.data + batch * ma.batch_stride + row * ma.row_stride;
    const T *b = (const T *)mb.data + batch * mb.batch_stride + column * mb.column_stride;
    T *c = (T *)mc.data + batch * mc.batch_stride + row * mc.row_stride + column * mc.column_stride;
    C *packed_a = room, *packed_b = room + tiling.a_size, *result = packed_b + tiling.b_size;
    for (int64_t i = 0; i < tiling.result_size; i++) result[i] = (C)0;
    for (int64_t p = 0; p < product.k; p += tiling.depth) {
        int64_t depth = min(tiling.depth, product.k - p);
        pack<kRows>(a + p * ma.column_stride, ma.row_stride, ma.column_stride, rows, depth,
                    packed_a);
        pack<kWidth<C>>(b + p * mb.row_stride, mb.column_stride, mb.row_stride, columns, depth,
                        packed_b);
        for (int64_t j = 0; j < columns; j += kWidth<C>)
            for (int64_t i = 0; i < rows; i += kRows)
                tile<Panel::kByColumn, true, true>(packed_a + i * depth, kRows,
                                                   packed_b + j * depth, kWidth<C>, depth,
                                                   result + i * tiling.columns + j, tiling.columns);
    }
    const T *bias = (const T *)product.bias;
    write_tile<T>(product, result, tiling.columns, c, bias ? bias + column : nullptr, rows,
                  columns);
}

template <class T>
static yoke_status multiply_as(const yoke_launch *launch, const Product &product)
{
    using C = Accumulator<T>;
    Tiling<C> tiling(product);
    int64_t tiles = product.batch * tiling.down * tiling.across;
    int64_t work = product.m * product.n * max(1, product.k) / (tiling.down * tiling.across);
    int failures = 0;
    parallel_range(tiles, max(1, kGrain / max(1, work)), [&](int64_t begin, int64_t end) {
        alignas(64) char stack[kStackBytes];
        bool fits = tiling.bytes() <= kStackBytes;
        C *room = (C *)(fits ? stack : malloc((size_t)tiling.bytes()));
        if (!room) return __atomic_store_n(&failures, 1, __ATOMIC_RELAXED);
        for (; begin < end; begin++) compute_tile<T>(product, tiling, begin, room);
        if (!fits) free(room);
    });
    if (failures)
        return fail(YOKE_E_OOM, "%s: no host memory for tiles of %lld bytes", op_name(launch->op),
                    (long long)tiling.bytes());
    return YOKE_OK;
}

yoke_status multiply(const yoke_launch *launch, const Product &product)
{
    return for_any(launch, "x", product.dtype,
                   [&]<class T>() { return multiply_as<T>(launch, product); });
}

YOKE_SIMD_END
