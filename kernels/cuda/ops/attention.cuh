// Common parts of attention's forward and backward kernels: the operands of a launch as heads, tiles of rows in
// shared memory, and products of tiles.
//
// A block of 16 x 16 threads computes a tile of kSide x kSide scores (64 x 64; for f64 32 x 32). Thread (y, x) has
// rows y * kEach + i and columns x + 16 * j. Sums over widths go in chunks, so any width fits in shared memory.
#pragma once

#include "kernels/common/attention.h"
#include "kernels/common/attention_call.h"
#include "kernels/cuda/ops/draw.cuh"
#include "kernels/cuda/ops/formats.cuh"
#include "kernels/cuda/ops/walk.cuh"

YOKE_CUDA_BEGIN

using kernels::plan_ordered;

constexpr int kAcross = 16;  // threads along a row of a tile
constexpr int kAttentionThreads = kAcross * kAcross;

// Sizes of tiles of C, the computing type. Shared memory holds packs of 16 bytes.
template <class C>
struct AttentionTile {
    static constexpr int kPack = 16 / (int)sizeof(C);
    static constexpr int kEach = sizeof(C) == 8 ? 2 : 4;  // rows, and columns, of a thread
    static constexpr int kSide = kAcross * kEach;
    static constexpr int kChunk = 8;  // packs of a row that are in shared memory at once
    static constexpr int kChunkStep = kChunk + 1;      // an odd step spreads rows over the banks
    static constexpr int kColumns = 2;                 // packs of a thread in a row of the result
    static constexpr int kSlice = kAcross * kColumns;  // packs of a row of the result in a block
    static constexpr int kDepth = kSide / 2;           // rows that meet a tile of scores at once
    static constexpr int kScoreStep = kSide + 1;
    static constexpr int kRoom = 2 * kSide * kChunkStep;  // packs
    static_assert(kRoom >= kDepth * kSlice, "the room serves both kinds of product");
};

// ---- operands -------------------------------------------------------------------------------------------------------

using kernels::AttentionSizes;

// Last parameters of both ops, as kernels take them.
template <class C>
struct AttentionParams {
    bool causal;
    C scale;
    bool drops;
    C factor;  // factor of elements kept by dropout
    kernels::Keep keep;
    Draw draw;

    explicit AttentionParams(const yoke_launch *launch)
        : AttentionParams(launch, kernels::AttentionParams(launch->params))
    {
    }

private:
    AttentionParams(const yoke_launch *launch, const kernels::AttentionParams &p)
        : causal(p.causal),
          scale((C)p.scale),
          drops(p.dropout > 0),
          factor(kernels::dropout_scale<C>(p.dropout)),
          keep(kernels::Keep::dropping(p.dropout)),
          draw(launch, p.draw)
    {
    }
};

// Layout of a matrix of each head, with steps in elements.
struct AttentionRows {
    int64_t row_step, column_step;
    int dtype, size;
    bool packed;  // so that rows can be read in packs

    // Reads the layout of operand number `which` in the loop over heads. A pack has `pack` elements.
    template <int N>
    AttentionRows(const yoke_operand &o, const Loop<N> &heads, int which, int pack)
        : row_step(0), column_step(0), dtype(o.dtype), size(0), packed(false)
    {
        if (!is_present(o)) return;
        size = (int)dtype_size(o.dtype);
        const int64_t bytes = pack * size;
        row_step = o.shape[o.ndim - 2] != 1 ? o.strides[o.ndim - 2] : 0;
        column_step = o.shape[o.ndim - 1] != 1 ? o.strides[o.ndim - 1] : 0;
        packed = column_step == 1 && row_step * size % bytes == 0 && is_aligned(o.data, bytes);
        for (int axis = 0; axis < heads.ndim; axis++)
            packed = packed && heads.stride[axis][which] % bytes == 0;
    }
};

// Matrix of a head.
template <class In>
struct HeadRows {
    const char *data;
    int64_t rows, columns;
    AttentionRows step;

    __device__ auto at(int64_t row, int64_t column) const
    {
        const int64_t i = row * step.row_step + column * step.column_step;
        return value_at<In>(data + i * step.size, step.dtype, step.size);
    }

    // Returns N elements of a row, from `column` on, as values. Elements beyond the matrix are 0.
    template <int N, class C>
    __device__ Pack<C, N> pack(int64_t row, int64_t column) const
    {
        Pack<C, N> result = {};
        if (row >= rows || column >= columns) return result;
        if (step.packed && column + N <= columns) {
            Stored<In, N> stored;
            stored.load(data + row * step.row_step * step.size, step.size, column, N / 2);
            stored.unpack(step.dtype, result.at);
            return result;
        }
        YOKE_UNROLL
        for (int i = 0; i < N; i++)
            if (column + i < columns) result.at[i] = at(row, column + i);
        return result;
    }
};

// Mask's terms for scores: numbers of the operands' dtype, or 0 and -infinity for a bool. Without a mask, scores are
// unchanged.
template <class In>
struct HeadMask {
    using C = typename In::Value;
    const char *data;
    bool is_bool;
    AttentionRows step;

    __device__ C at(int64_t query, int64_t key) const
    {
        const int64_t i = query * step.row_step + key * step.column_step;
        if (is_bool) return load(((const bool8 *)data)[i]) ? (C)0 : -(C)kernels::kInfinity;
        return value_at<In>(data + i * step.size, step.dtype, step.size);
    }
};

// ---- tiles ----------------------------------------------------------------------------------------------------------

// Loads kSide rows from `first` on, times `scale`, into room from `at` on. Of each row, loads kChunk packs, from pack
// `chunk` on.
template <class C, class In, class Room>
__device__ inline void load_chunk(const HeadRows<In> &rows, int64_t first, int64_t chunk, C scale,
                                  Room &room, int at)
{
    using Tile = AttentionTile<C>;
    for (int i = (int)threadIdx.x; i < Tile::kSide * Tile::kChunk; i += kAttentionThreads) {
        const int row = i / Tile::kChunk, pack = i % Tile::kChunk;
        Pack<C, Tile::kPack> loaded =
            rows.template pack<Tile::kPack, C>(first + row, (chunk + pack) * (int64_t)Tile::kPack);
        YOKE_UNROLL
        for (int k = 0; k < Tile::kPack; k++) loaded.at[k] *= scale;
        room[at + row * Tile::kChunkStep + pack] = loaded;
    }
}

template <class C>
using Scores = C[AttentionTile<C>::kEach][AttentionTile<C>::kEach];

template <class C, class Tile>
__device__ inline void store_scores(const Scores<C> &scores, Tile &tile)
{
    using Size = AttentionTile<C>;
    const int y = (int)threadIdx.x / kAcross, x = (int)threadIdx.x % kAcross;
    YOKE_UNROLL
    for (int i = 0; i < Size::kEach; i++) {
        YOKE_UNROLL
        for (int j = 0; j < Size::kEach; j++)
            tile[(y * Size::kEach + i) * Size::kScoreStep + x + j * kAcross] = scores[i][j];
    }
}

// Computes scores[i][j] = row y * kEach + i of a (times scale) . row x + 16 * j of b. Rows count from first_a and
// first_b. The room is free for other use only behind the next barrier.
template <class C, class A, class B, class Room>
__device__ inline void multiply_rows(const HeadRows<A> &a, int64_t first_a, C scale,
                                     const HeadRows<B> &b, int64_t first_b, Room &room,
                                     Scores<C> &scores)
{
    using Tile = AttentionTile<C>;
    constexpr int kEach = Tile::kEach, kStep = Tile::kChunkStep, kOther = Tile::kSide * kStep;
    const int y = (int)threadIdx.x / kAcross, x = (int)threadIdx.x % kAcross;
    YOKE_UNROLL
    for (int i = 0; i < kEach * kEach; i++) scores[i / kEach][i % kEach] = (C)0;
    const int64_t packs = divide_up(a.columns, Tile::kPack);
    for (int64_t chunk = 0; chunk < packs; chunk += Tile::kChunk) {
        __syncthreads();
        load_chunk<C>(a, first_a, chunk, scale, room, 0);
        load_chunk<C>(b, first_b, chunk, (C)1, room, kOther);
        __syncthreads();
        const int filled = (int)min(Tile::kChunk, packs - chunk);
        for (int d = 0; d < filled; d++) {
            Pack<C, Tile::kPack> of_a[kEach];
            YOKE_UNROLL
            for (int i = 0; i < kEach; i++) of_a[i] = room[(y * kEach + i) * kStep + d];
            YOKE_UNROLL
            for (int j = 0; j < kEach; j++) {
                const Pack<C, Tile::kPack> of_b = room[kOther + (x + j * kAcross) * kStep + d];
                YOKE_UNROLL
                for (int i = 0; i < kEach; i++) {
                    YOKE_UNROLL
                    for (int k = 0; k < Tile::kPack; k++)
                        scores[i][j] += of_a[i].at[k] * of_b.at[k];
                }
            }
        }
    }
}

// A slice of kSlice packs of columns of a tile of results: those of thread (y, x) are packs x + 16 * j.
template <class C>
struct ResultSlice {
    using Tile = AttentionTile<C>;
    Pack<C, Tile::kPack> at[Tile::kEach][Tile::kColumns];

    __device__ void clear()
    {
        YOKE_UNROLL
        for (int i = 0; i < Tile::kEach * Tile::kColumns; i++)
            at[i / Tile::kColumns][i % Tile::kColumns] = {};
    }

    __device__ void scale_row(int i, C factor)
    {
        YOKE_UNROLL
        for (int j = 0; j < Tile::kColumns; j++) {
            YOKE_UNROLL
            for (int k = 0; k < Tile::kPack; k++) at[i][j].at[k] *= factor;
        }
    }

    // Adds tile times m. The tile's rows are y * kEach + i; its columns are the rows of m from `first` on. The
    // columns of m are taken from `column` on. Only `count` columns of the tile count. The tile was written before
    // the last barrier, or by the caller itself. If `asks`, rows of m with infinite or NaN elements are marked in
    // `strays`, and a weight of 0 adds 0 for them.
    template <class In, class Room, class Weights, class Strays>
    __device__ void add_product(const Weights &tile, const HeadRows<In> &m, int64_t first,
                                int64_t column, int count, Room &room, Strays &strays, bool asks)
    {
        const int y = (int)threadIdx.x / kAcross, x = (int)threadIdx.x % kAcross;
        for (int depth = 0; depth < count; depth += Tile::kDepth) {
            __syncthreads();
            for (int i = (int)threadIdx.x; i < Tile::kDepth * Tile::kSlice;
                 i += kAttentionThreads) {
                const Pack<C, Tile::kPack> loaded = m.template pack<Tile::kPack, C>(
                    first + depth + i / Tile::kSlice,
                    column + i % Tile::kSlice * (int64_t)Tile::kPack);
                room[i] = loaded;
                if (asks) mark_stray(loaded, i, strays);
            }
            __syncthreads();
            const int filled = count - depth < Tile::kDepth ? count - depth : Tile::kDepth;
            for (int r = 0; r < filled; r++) {
                C weight[Tile::kEach];
                YOKE_UNROLL
                for (int i = 0; i < Tile::kEach; i++)
                    weight[i] = tile[(y * Tile::kEach + i) * Tile::kScoreStep + depth + r];
                YOKE_UNROLL
                for (int j = 0; j < Tile::kColumns; j++) {
                    if (column + j * kAcross * Tile::kPack >= m.columns) break;
                    const Pack<C, Tile::kPack> value = room[r * Tile::kSlice + x + j * kAcross];
                    if (asks && strays[r]) {
                        add_stray(weight, value, j);
                        continue;
                    }
                    YOKE_UNROLL
                    for (int i = 0; i < Tile::kEach; i++) {
                        YOKE_UNROLL
                        for (int k = 0; k < Tile::kPack; k++)
                            at[i][j].at[k] += weight[i] * value.at[k];
                    }
                }
            }
        }
    }

    // Stores the rows y * kEach + i of the tile, times factor[i], to a matrix of `rows` rows and `columns` columns at
    // `data`. The tile begins at row `first` and at `column`. Elements outside the matrix are not stored.
    template <class In>
    __device__ void store_rows(char *data, const AttentionRows &step, int64_t first, int64_t rows,
                               int64_t column, int64_t columns, const C *factor) const
    {
        const int y = (int)threadIdx.x / kAcross, x = (int)threadIdx.x % kAcross;
        YOKE_UNROLL
        for (int i = 0; i < Tile::kEach; i++) {
            const int64_t row = first + y * Tile::kEach + i;
            if (row >= rows) break;
            YOKE_UNROLL
            for (int j = 0; j < Tile::kColumns; j++) {
                const int64_t begin = column + (x + j * kAcross) * (int64_t)Tile::kPack;
                store_some<In>(data + row * step.row_step * step.size, step, begin, columns,
                               at[i][j], factor[i]);
            }
        }
    }

private:
    // Marks in `strays` whether the row of a pack has an infinite or NaN element. A warp loads the packs of a single
    // row.
    template <class Strays>
    __device__ static void mark_stray(const Pack<C, Tile::kPack> &loaded, int i, Strays &strays)
    {
        static_assert(Tile::kSlice == kWarp);
        bool found = false;
        YOKE_UNROLL
        for (int k = 0; k < Tile::kPack; k++) found |= kernels::is_stray(loaded.at[k]);
        found = __any_sync(kWholeWarp, found);
        if (i % Tile::kSlice == 0) strays[i / Tile::kSlice] = found;
    }

    __device__ void add_stray(const C (&weight)[Tile::kEach], const Pack<C, Tile::kPack> &value,
                              int j)
    {
        YOKE_UNROLL
        for (int i = 0; i < Tile::kEach; i++) {
            YOKE_UNROLL
            for (int k = 0; k < Tile::kPack; k++)
                if (weight[i] != (C)0) at[i][j].at[k] += weight[i] * value.at[k];
        }
    }

    template <class In>
    __device__ static void store_some(char *row, const AttentionRows &step, int64_t begin,
                                      int64_t columns, const Pack<C, Tile::kPack> &values, C factor)
    {
        if (begin >= columns) return;
        C scaled[Tile::kPack];
        YOKE_UNROLL
        for (int k = 0; k < Tile::kPack; k++) scaled[k] = values.at[k] * factor;
        if (step.packed && begin + Tile::kPack <= columns)
            return put_run<In>(row, step.dtype, begin, Tile::kPack / 2, scaled);
        YOKE_UNROLL
        for (int k = 0; k < Tile::kPack; k++)
            if (begin + k < columns)
                put_one<In>(step.dtype, row + (begin + k) * step.column_step * step.size,
                            scaled[k]);
    }
};

// ---- dropout --------------------------------------------------------------------------------------------------------

// Returns a bit for each of four queries. Bit l is whether dropout keeps the pair of `key` and query `query` / 4 * 4
// + l.
template <class C>
__device__ inline unsigned kept_bits(const AttentionParams<C> &params, const AttentionSizes &sizes,
                                     int64_t head, int64_t key, int64_t query)
{
    bool kept[kernels::Keep::kDraws];
    const int64_t first =
        kernels::attention_draw(head, key, query / 4 * 4, sizes.keys, sizes.queries);
    const uint64_t counter = params.draw.first() + (uint64_t)(first / kernels::Keep::kDraws);
    params.keep(kernels::random_block(params.draw.seed, counter), kept);
    unsigned bits = 0;
    YOKE_UNROLL
    for (int k = 0; k < kernels::Keep::kDraws; k++) bits |= (unsigned)kept[k] << k;
    return bits;
}

YOKE_CUDA_END
