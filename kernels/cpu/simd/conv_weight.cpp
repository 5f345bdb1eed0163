// The gradient of convolution by weight: products of matrices over positions.
#include "kernels/cpu/simd/conv.h"
#include "kernels/cpu/simd/tile.h"

YOKE_SIMD_BEGIN

constexpr int64_t kTileRows = 96, kTileBytes = 1024;  // kTileRows is a multiple of every kRows
constexpr int64_t kPositions = 128;                   // gathered at once
constexpr int64_t kLeastPositions = 512;              // least positions of a part

// Cut of a group's gradient into tiles of output channels by terms, and of positions into parts. Sizes of memory are
// in elements.
template <class C>
struct WeightTiling {
    int64_t rows, columns, depth;         // sizes of a tile
    int64_t channels, terms, positions;   // the first two for a group, the last for all groups
    int64_t down, across, parts, length;  // length is of a part, in positions
    int64_t room;

    WeightTiling(const Conv &c, const Sweep &s)
    {
        channels = c.o / c.groups;
        terms = s.terms();
        positions = s.rows();
        rows = min(kTileRows, round_up(channels, kRows));
        columns = min(kTileBytes / (int64_t)sizeof(C), round_up(terms, kWidth<C>));
        depth = min(kPositions, positions);
        down = divide_up(channels, rows);
        across = divide_up(terms, columns);
        parts = position_parts(positions, c.groups * down * across, kLeastPositions);
        length = divide_up(positions, parts);
        room = depth * (rows + columns) + columns + rows * columns;
    }
};

// Gathers the next positions of a tile, in panels: elements of the result's gradient, and their terms. Zeros fill up
// whole rows and columns of the innermost kernel.
template <class C>
static void gather_positions(const Conv &c, const Sweep &s, const WeightTiling<C> &tiling,
                             int64_t group, int64_t row, int64_t column, int64_t first, int64_t n,
                             C *grads, C *terms)
{
    const int64_t rows = min(tiling.rows, tiling.channels - row),
                  columns = min(tiling.columns, tiling.terms - column);
    C *line = terms + tiling.depth * tiling.columns;
    Pixel pixel = sweep_position(s, first);
    for (int64_t i = columns; i < tiling.columns; i++) line[i] = (C)0;
    for (int64_t p = 0; p < n; p++, grads += tiling.rows, go_on(s, pixel)) {
        for (int64_t i = rows; i < tiling.rows; i++) grads[i] = (C)0;
        take_run(c.dtype, c.out, (first + p) * c.o + group * tiling.channels + row, rows, grads);
        gather_terms(s, c.dtype, pixel, group, column, column + columns, line);
        for (int64_t j = 0; j < columns; j += kWidth<C>)
            __builtin_memcpy(terms + j * tiling.depth + p * kWidth<C>, line + j,
                             sizeof(C) * kWidth<C>);
    }
}

// Computes a tile over one part of the positions, into `sums` of the whole weight, [out, height, width, in / groups].
template <class C>
static void compute_tile(const Conv &c, const Sweep &s, const WeightTiling<C> &tiling,
                         int64_t index, C *sums, C *room)
{
    const int64_t part = index % tiling.parts, place = index / tiling.parts,
                  group = place / (tiling.down * tiling.across),
                  row = place / tiling.across % tiling.down * tiling.rows,
                  column = place % tiling.across * tiling.columns,
                  rows = min(tiling.rows, tiling.channels - row),
                  columns = min(tiling.columns, tiling.terms - column),
                  last = min(tiling.positions, (part + 1) * tiling.length);
    C *grads = room, *terms = grads + tiling.depth * tiling.rows,
      *result = terms + (tiling.depth + 1) * tiling.columns;
    for (int64_t i = 0; i < tiling.rows * tiling.columns; i++) result[i] = (C)0;
    for (int64_t p = part * tiling.length; p < last; p += tiling.depth) {
        const int64_t n = min(tiling.depth, last - p);
        gather_positions(c, s, tiling, group, row, column, p, n, grads, terms);
        for (int64_t j = 0; j < columns; j += kWidth<C>)
            for (int64_t i = 0; i < rows; i += kRows)
                tile<Panel::kByColumn, true, true>(grads + i, tiling.rows, terms + j * tiling.depth,
                                                   kWidth<C>, n, result + i * tiling.columns + j,
                                                   tiling.columns);
    }
    sums += ((part * c.groups + group) * tiling.channels + row) * tiling.terms + column;
    for (int64_t i = 0; i < rows; i++)
        __builtin_memcpy(sums + i * tiling.terms, result + i * tiling.columns,
                         sizeof(C) * (size_t)columns);
}

// Writes the gradient of an output channel, rounded: reads sums as [taps, in / groups], writes [in / groups, taps].
template <class C>
static void write_channel(const Conv &c, const C *sums, int64_t depth, int64_t at)
{
    const int64_t taps = c.kh * c.kw;
    C line[kMostElements];
    int64_t n = 0;
    for (int64_t channel = 0; channel < depth; channel++)
        for (int64_t tap = 0; tap < taps; tap++) {
            line[n++] = sums[tap * depth + channel];
            if (n < kMostElements) continue;
            give_run(c.dtype, line, n, c.weight, at);
            at += n, n = 0;
        }
    give_run(c.dtype, line, n, c.weight, at);
}

template <class C>
yoke_status weight_tiles(const yoke_launch *launch, const Conv &c)
{
    const Sweep s = kernels::forward_sweep(c);
    const WeightTiling<C> tiling(c, s);
    const int64_t slots = team_size(), size = c.o * tiling.terms;
    Scratch scratch(launch);
    const int64_t total = tiling.parts * size + slots * tiling.room;
    if (yoke_status status = scratch.reserve((uint64_t)total * sizeof(C))) return status;
    C *sums = scratch.as<C>(), *rooms = sums + tiling.parts * size;
    const int64_t work = tiling.rows * tiling.columns * max(1, tiling.length);
    parallel_shares(c.groups * tiling.down * tiling.across * tiling.parts, max(1, kGrain / work),
                    slots, [&](int64_t begin, int64_t end, int slot) {
                        for (; begin < end; begin++)
                            compute_tile(c, s, tiling, begin, sums, rooms + slot * tiling.room);
                    });
    add_parts(sums, tiling.parts, size);
    parallel_shares(c.o, max(1, kGrain / tiling.terms), [&](int64_t begin, int64_t end) {
        for (; begin < end; begin++)
            write_channel(c, sums + begin * tiling.terms, s.depth, begin * tiling.terms);
    });
    return YOKE_OK;
}

template yoke_status weight_tiles<float>(const yoke_launch *, const Conv &);
template yoke_status weight_tiles<double>(const yoke_launch *, const Conv &);

YOKE_SIMD_END
