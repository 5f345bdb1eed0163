// Tiles of pixels for poolings of packs: a block holds in shared memory what the windows of its tile share.
//
// A tile is a square of the written tensor's pixels, of some packs of channels. Windows at its pixels lie in
// `rows` by `columns` pixels of the tensor that is read.
#pragma once

#include "kernels/cuda/ops/formats.cuh"
#include "kernels/cuda/ops/pool.cuh"

YOKE_CUDA_BEGIN

constexpr int kTileLanes = 8;             // packs side by side: a line of the cache
constexpr int kTileWindows = 128;         // windows that a tile of a gradient may need
constexpr int64_t kTileBytes = 48 << 10;  // shared memory that a block has on every device

// Packs as they are moved: by words.
template <class T>
using PoolPack = WordPack<T, kPackLength<T>>;
template <class T>
using PlacePack = WordPack<uint8_t, kPackLength<T>>;

template <class T, int V>
__device__ inline Pack<T, V> from_words(const WordPack<T, V> &words)
{
    Pack<T, V> pack;
    memcpy(&pack, &words, sizeof pack);
    return pack;
}

// Height or width, in numbers of 32 bits.
struct TileAxis {
    int in, out, kernel, stride, padding, dilation;
    Divisor of_stride, of_dilation;

    static constexpr int64_t kLargest = (int64_t)1 << 15;

    explicit TileAxis(const PoolAxis &a)
        : in((int)a.in),
          out((int)a.out),
          kernel((int)a.kernel),
          stride((int)a.stride),
          padding((int)a.padding),
          dilation((int)a.dilation)
    {
        if (fits(a)) of_stride = Divisor(stride), of_dilation = Divisor(dilation);
    }
    static bool fits(const PoolAxis &a)
    {
        return max(max(a.in, a.out), max(a.kernel, a.stride)) < kLargest && a.dilation < kLargest;
    }
    // Return the taps [begin, end) that meet no padding, of a window whose first tap stands at `first`.
    __device__ int tap_begin(int first) const
    {
        int tap = 0;
        while (first + tap * dilation < 0) tap++;
        return tap;
    }
    __device__ int tap_end(int first) const
    {
        int tap = kernel;
        while (tap > 0 && first + (tap - 1) * dilation >= in) tap--;
        return tap;
    }
    // Return the windows [begin, end) that may hold position i.
    __device__ int window_begin(int i) const
    {
        const int first = i + padding - (kernel - 1) * dilation;
        return first > 0 ? (int)of_stride.divide((unsigned)(first + stride - 1)) : 0;
    }
    __device__ int window_end(int i) const
    {
        return (int)min((int64_t)out, (int64_t)of_stride.divide((unsigned)(i + padding)) + 1);
    }
    // Returns the tap of window o that stands at position i, or -1 if the position lies between taps.
    __device__ int tap_at(int o, int i) const
    {
        const int from = i + padding - o * stride;
        if (dilation == 1) return from;
        const int tap = (int)of_dilation.divide((unsigned)from);
        return tap * dilation == from ? tap : -1;
    }
};

struct PoolTile {
    TileAxis y, x;
    int lane_bits,
        side_bits;  // binary logarithms of the packs side by side, and of the pixels of a side
    int rows, columns;
    int64_t images, down, across, chunks;  // tiles along the height, the width and the channels
    Divisor of_columns, of_down, of_across, of_chunks;

    // Makes tiles of 2^bits by 2^bits pixels over [n, height, width] pixels with `packs` packs each.
    PoolTile(const kernels::Pool &p, int64_t packs, int64_t height, int64_t width, int bits)
        : y(p.y), x(p.x), lane_bits(0), side_bits(bits), rows(0), columns(0), images(p.n)
    {
        while ((2 << lane_bits) <= min(packs, kTileLanes)) lane_bits++;
        down = divide_up(height, side());
        across = divide_up(width, side());
        chunks = divide_up(packs, lanes());
    }
    YOKE_HD int lanes() const { return 1 << lane_bits; }
    YOKE_HD int side() const { return 1 << side_bits; }
    YOKE_HD int pixels() const { return rows * columns; }
    // Returns the pixels that a block of so many threads takes, `at_once` by each thread: no fewer than there are.
    YOKE_HD int taken(int threads, int at_once) const
    {
        const int turn = (threads >> lane_bits) * at_once;
        return (pixels() + turn - 1) / turn * turn;
    }
    int64_t blocks() const { return images * down * across * chunks; }
    // Sets the pixels that are read. Returns whether they are at most `most`, blocks few enough for a grid, and an
    // image small enough for numbers of 32 bits.
    bool reads(const kernels::Pool &p, int64_t high, int64_t wide, int64_t most)
    {
        constexpr int64_t kEnd = (int64_t)1 << 31;
        if (high > most || wide > most || high * wide > most || blocks() >= kEnd) return false;
        if (!TileAxis::fits(p.y) || !TileAxis::fits(p.x)) return false;
        if (max(p.y.in * p.x.in, p.y.out * p.x.out) >= kEnd / p.c) return false;
        rows = (int)high, columns = (int)wide;
        of_columns = Divisor(columns), of_down = Divisor(down);
        of_across = Divisor(across), of_chunks = Divisor(chunks);
        return true;
    }
    __device__ int place(int row, int column, int lane) const
    {
        return ((row * columns + column) << lane_bits) + lane;
    }
};

// A thread of a tile: its packs, and the tile's first pixel.
struct PoolMember {
    int lane, member, members;  // pack; number among the threads of the pack, and their number
    int64_t n, c;
    int y, x;
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
        x = (int)((plane - line * (unsigned)tile.across) << tile.side_bits);
        y = (int)((line - image * (unsigned)tile.down) << tile.side_bits);
        n = image;
        there = c < p.c;
    }
    // Calls f(y, x) for the thread's pixels of the tile that are below (y_end, x_end), column by column: what f needs
    // of a column is the same for all of its pixels. begin(x) makes this.
    template <class Begin, class F>
    __device__ void each_pixel(const PoolTile &tile, int y_end, int x_end, const Begin &begin,
                               const F &f) const
    {
        int bits = tile.side_bits;  // of the threads side by side
        while ((1 << bits) > members) bits--;
        const int last_y = min_of(y_end, y + tile.side()), last_x = min_of(x_end, x + tile.side());
        for (int at_x = x + (member & ((1 << bits) - 1)); at_x < last_x; at_x += 1 << bits) {
            const auto column = begin(at_x);
            for (int at_y = y + (member >> bits); at_y < last_y; at_y += members >> bits)
                f(at_y, at_x, column);
        }
    }

private:
    __device__ static int min_of(int a, int b) { return a < b ? a : b; }
};

// The pixels of an image from (y, x) on, of which some may lie outside, and distances in elements.
struct PoolView {
    int y, height, x, width, row, column;
};

// Takes the tile's pixels of an image, kAtOnce of the thread's at a time: load(u, inside, offset) for each, then
// keep(u, place) for each. No window looks outside of the image; if kWhole, no pixel is outside. Shared memory has room
// for `room` pixels.
template <int kAtOnce, bool kWhole, class Load, class Keep>
__device__ inline void hold_pixels(const PoolView &view, const PoolTile &tile, const PoolMember &me,
                                   int room, const Load &load, const Keep &keep)
{
    // From a pixel of the thread to its next: so many rows and columns on, and a row more behind the last column.
    const int down = (int)tile.of_columns.divide((unsigned)me.members),
              across = me.members - down * tile.columns;
    int y = view.y + (int)tile.of_columns.divide((unsigned)me.member),
        column = me.member - (y - view.y) * tile.columns;
    const int count = me.there ? tile.pixels() : 0;
    for (int e = me.member; e < count; e += kAtOnce * me.members) {
        YOKE_UNROLL
        for (int u = 0; u < kAtOnce; u++) {
            const int x = view.x + column;
            const bool inside =
                kWhole ? e + u * me.members < count
                       : (unsigned)y < (unsigned)view.height && (unsigned)x < (unsigned)view.width;
            load(u, inside, y * view.row + x * view.column);
            y += down, column += across;
            if (column >= tile.columns) column -= tile.columns, y++;
        }
        YOKE_UNROLL
        for (int u = 0; u < kAtOnce; u++) {
            const int pixel = e + u * me.members;
            if (pixel < room) keep(u, (pixel << tile.lane_bits) + me.lane);
        }
    }
}

template <int kAtOnce, class Load, class Keep>
__device__ inline void hold_tile(const PoolView &view, const PoolTile &tile, const PoolMember &me,
                                 int room, const Load &load, const Keep &keep)
{
    if (view.y >= 0 && view.x >= 0 && view.y + tile.rows <= view.height &&
        view.x + tile.columns <= view.width)
        hold_pixels<kAtOnce, true>(view, tile, me, room, load, keep);
    else
        hold_pixels<kAtOnce, false>(view, tile, me, room, load, keep);
}

// Loads a pack inside of an image; 0 outside.
template <int V, class T>
__device__ inline WordPack<T, V> load_at(const T *image, bool inside, int offset)
{
    if (!inside) return {};
    return load_pack<kWords<T, V>>(as_words<T, V>(image + offset));
}

YOKE_CUDA_END
