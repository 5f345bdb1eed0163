// Tiles of pixels for poolings of packs: a block holds in shared memory what the windows of its tile share.
//
// A tile is a square of the written tensor's pixels, of some packs of channels. Windows at its pixels lie in
// `rows` by `columns` pixels of the tensor that is read.
#pragma once

#include "kernels/cuda/ops/pool.cuh"

YOKE_CUDA_BEGIN

constexpr int kTileLanes = 8;             // packs side by side: a line of the cache
constexpr int kTileWindows = 128;         // windows that a tile of a gradient may need
constexpr int64_t kTileBytes = 48 << 10;  // shared memory that a block has on every device

template <class T>
using PoolPack = Pack<T, kPackLength<T>>;
template <class T>
using PlacePack = Pack<uint8_t, kPackLength<T>>;

struct PoolTile {
    int lane_bits,
        side_bits;  // binary logarithms of the packs side by side, and of the pixels of a side
    int64_t rows, columns;
    int64_t images, down, across, chunks;  // tiles along the height, the width and the channels
    Divisor of_columns, of_down, of_across, of_chunks;

    // Makes tiles of 2^bits by 2^bits pixels over [n, height, width] pixels with `packs` packs each.
    PoolTile(int64_t n, int64_t packs, int64_t height, int64_t width, int bits)
        : lane_bits(0), side_bits(bits), rows(0), columns(0), images(n)
    {
        while ((2 << lane_bits) <= min(packs, kTileLanes)) lane_bits++;
        down = divide_up(height, side());
        across = divide_up(width, side());
        chunks = divide_up(packs, lanes());
    }
    YOKE_HD int lanes() const { return 1 << lane_bits; }
    YOKE_HD int side() const { return 1 << side_bits; }
    YOKE_HD int64_t pixels() const { return rows * columns; }
    int64_t blocks() const { return images * down * across * chunks; }
    // Sets the pixels that are read, and returns whether they are at most `most`, and blocks few enough for a grid.
    bool reads(int64_t high, int64_t wide, int64_t most)
    {
        rows = high, columns = wide;
        if (high > most || wide > most || pixels() > most || blocks() >= (int64_t)1 << 31)
            return false;
        of_columns = Divisor(columns), of_down = Divisor(down);
        of_across = Divisor(across), of_chunks = Divisor(chunks);
        return true;
    }
    __device__ int place(int row, int column, int lane) const
    {
        return ((row * (int)columns + column) << lane_bits) + lane;
    }
};

// A thread of a tile: its packs, and the tile's first pixel.
struct PoolMember {
    int lane, member, members;  // pack; number among the threads of the pack, and their number
    int64_t n, c, y, x;
    bool there;  // the pack has channels

    __device__ PoolMember(const PoolJob &p, const PoolTile &tile)
        : lane((int)threadIdx.x & (tile.lanes() - 1)),
          member((int)threadIdx.x >> tile.lane_bits),
          members((int)blockDim.x >> tile.lane_bits)
    {
        const unsigned plane = tile.of_chunks.divide(blockIdx.x),
                       line = tile.of_across.divide(plane), image = tile.of_down.divide(line);
        const unsigned chunk = blockIdx.x - plane * (unsigned)tile.chunks;
        c = ((chunk << tile.lane_bits) + lane) * p.pack;
        x = (int64_t)(plane - line * (unsigned)tile.across) << tile.side_bits;
        y = (int64_t)(line - image * (unsigned)tile.down) << tile.side_bits;
        n = image;
        there = c < p.c;
    }
    // Returns the position of the tile's pixel number e.
    __device__ PoolIndex pixel(const PoolTile &tile, int e) const
    {
        return {n, c, y + (e >> tile.side_bits), x + (e & (tile.side() - 1))};
    }
};

// The pixels of an image from (y, x) on, of which some may lie outside.
struct PoolView {
    int64_t y, height, x, width;
};

// Loads the tile's pixels of an image into `held`. Pixels outside of the image are never used.
template <int V, class T, class Held>
__device__ inline void hold_tile(const T *image, const PoolSteps &steps, const PoolView &view,
                                 const PoolTile &tile, const PoolMember &me, Held &held)
{
    constexpr int kAtOnce = 4;
    const int count = (int)tile.pixels();
    if (!me.there) return;
    for (int e = me.member; e < count; e += kAtOnce * me.members) {
        Pack<T, V> packs[kAtOnce] = {};
        YOKE_UNROLL
        for (int u = 0; u < kAtOnce; u++) {
            const unsigned pixel = (unsigned)(e + u * me.members),
                           row = tile.of_columns.divide(pixel);
            const int64_t y = view.y + row, x = view.x + (pixel - row * (unsigned)tile.columns);
            if (y >= 0 && y < view.height && x >= 0 && x < view.width)
                packs[u] = load_pack<V>(image + y * steps.y + x * steps.x);
        }
        YOKE_UNROLL
        for (int u = 0; u < kAtOnce; u++) {
            const int pixel = e + u * me.members;
            if (pixel < count) held[(pixel << tile.lane_bits) + me.lane] = packs[u];
        }
    }
}

YOKE_CUDA_END
