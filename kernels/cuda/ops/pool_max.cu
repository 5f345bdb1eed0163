// Maxima over windows of height and width, and their gradients. A gradient gathers from the windows around its pixel.
#include "kernels/cuda/ops/pool_tiles.cuh"

YOKE_CUDA_BEGIN

// The best values of windows so far, and the numbers of their taps.
template <class T, int V>
struct Best {
    using C = compute_type<T>;
    C values[V];
    int32_t places[V];

    // Begins with the first tap of windows.
    __device__ Best(const Pack<T, V> &pack, int32_t tap)
    {
        unpack<T, V>(pack, values);
        YOKE_UNROLL
        for (int v = 0; v < V; v++) places[v] = tap;
    }
    // Begins with windows without taps.
    __device__ Best()
    {
        YOKE_UNROLL
        for (int v = 0; v < V; v++) values[v] = -(C)INFINITY, places[v] = 0;
    }
    __device__ void see(const Pack<T, V> &pack, int32_t tap)
    {
        C x[V];
        unpack<T, V>(pack, x);
        YOKE_UNROLL
        for (int v = 0; v < V; v++) {
            const bool better = kernels::is_better(x[v], values[v]);
            values[v] = kernels::select(better, x[v], values[v]);
            places[v] = kernels::select(better, tap, places[v]);
        }
    }
    __device__ void put(const PoolJob &p, int64_t at) const
    {
        put_values<T>(p.dtype, p.out, at, values);
        if (!p.places) return;
        if (p.has_wide_places) {
            for (int v = 0; v < V; v++) ((int32_t *)p.places)[at + v] = places[v];
            return;
        }
        Pack<uint8_t, V> pack;
        YOKE_UNROLL
        for (int v = 0; v < V; v++) pack.at[v] = (uint8_t)places[v];
        store_pack<V>((uint8_t *)p.places + at, pack);
    }
};

// Returns the best of the taps [k, k_end) x [j_begin, j_end); at(k, j) is the pack of a tap. Whole windows of 3 x 3
// take no loop.
template <class T, int V, class At>
__device__ inline Best<T, V> best_of(int k, int k_end, int j_begin, int j_end, int across,
                                     const At &at)
{
    if (k >= k_end || j_begin >= j_end) return {};
    Best<T, V> best(at(k, j_begin), k * across + j_begin);
    if (k_end == 3 && k == 0 && across == 3 && j_end - j_begin == 3) {
        YOKE_UNROLL
        for (int i = 1; i < 9; i++) best.see(at(i / 3, i % 3), i);
        return best;
    }
    YOKE_NO_UNROLL
    for (int j = j_begin + 1; k < k_end; k++, j = j_begin) YOKE_NO_UNROLL
    for (; j < j_end; j++) best.see(at(k, j), k * across + j);
    return best;
}

template <class T, int V>
__global__ void max_windows(PoolJob p)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < p.count;
         i += (int64_t)gridDim.x * blockDim.x) {
        const PoolIndex at = p.at(i);
        const Taps down = sliding_taps(p.y, at.y), across = sliding_taps(p.x, at.x);
        const T *image = (const T *)p.in + p.of_in.image(at);
        best_of<T, V>((int)down.begin, (int)down.end, (int)across.begin, (int)across.end,
                      (int)p.x.kernel,
                      [&](int k, int j) {
                          const int64_t y = down.first + k * p.y.dilation,
                                        x = across.first + j * p.x.dilation;
                          return load_pack<V>(image + (y * p.of_in.y + x * p.of_in.x));
                      })
            .put(p, p.of_out.pixel(at));
    }
}

constexpr int kPixelsAtOnce = 5;  // that a thread loads

// The same, of a tile whose pixels shared memory holds: windows that overlap read memory once.
template <class T>
__global__ void __launch_bounds__(kThreads, kFitting<3, kThreads>)
    max_tiles(PoolJob p, PoolTile tile)
{
    constexpr int V = kPackLength<T>;
    YOKE_DYNAMIC_SHARED(PoolPack<T>, held);
    const TileAxis &down = tile.y, &across = tile.x;
    const PoolMember me(p, tile);
    const PoolView view{me.y * down.stride - down.padding,
                        down.in,
                        me.x * across.stride - across.padding,
                        across.in,
                        (int)p.of_in.y,
                        (int)p.of_in.x};
    const PoolIndex image{me.n, me.c, 0, 0};
    const T *in = (const T *)p.in + p.of_in.image(image);
    PoolPack<T> packs[kPixelsAtOnce];
    hold_tile<kPixelsAtOnce>(
        view, tile, me, INT32_MAX,
        [&](int u, bool inside, int at) { packs[u] = load_at<V>(in, inside, at); },
        [&](int u, int place) { held[place] = packs[u]; });
    __syncthreads();
    if (!me.there) return;
    const int64_t out = p.of_out.image(image);
    const int row = (tile.columns * down.dilation) << tile.lane_bits,
              column = across.dilation << tile.lane_bits;
    struct Column {
        int first, begin, end;
    };
    me.each_pixel(
        tile, down.out, across.out,
        [&](int x) {
            const int first = x * across.stride - across.padding;
            return Column{first, across.tap_begin(first), across.tap_end(first)};
        },
        [&](int y, int x, const Column &taps) {
            const int first = y * down.stride - down.padding;
            const int corner = tile.place(first - view.y, taps.first - view.x, me.lane);
            best_of<T, V>(
                down.tap_begin(first), down.tap_end(first), taps.begin, taps.end, across.kernel,
                [&](int k, int j) { return from_words<T, V>(held[corner + k * row + j * column]); })
                .put(p, out + (y * (int)p.of_out.y + x * (int)p.of_out.x));
        });
}

// ---- gradients ------------------------------------------------------------------------------------------------------

template <int V>
__device__ inline void take_places(const PoolJob &p, int64_t at, int32_t (&to)[V])
{
    if (p.has_wide_places) {
        for (int v = 0; v < V; v++) to[v] = ((const int32_t *)p.places)[at + v];
        return;
    }
    const Pack<uint8_t, V> pack = load_pack<V>((const uint8_t *)p.places + at);
    YOKE_UNROLL
    for (int v = 0; v < V; v++) to[v] = pack.at[v];
}

template <class T, int V>
__global__ void max_gradients(PoolJob p)
{
    using C = compute_type<T>;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < p.count;
         i += (int64_t)gridDim.x * blockDim.x) {
        const PoolIndex at = p.at(i);
        const Windows down = sliding_windows(p.y, at.y), across = sliding_windows(p.x, at.x);
        const int64_t image = p.of_out.image(at);
        C sums[V] = {}, totals[V] = {};
        for (int64_t y = down.begin; y < down.end; y++) {
            const int64_t k = tap_at(p.y, y, at.y);
            for (int64_t x = across.begin; k >= 0 && x < across.end; x++) {
                const int64_t j = tap_at(p.x, x, at.x),
                              from = image + y * p.of_out.y + x * p.of_out.x;
                if (j < 0) continue;
                C values[V];
                int32_t places[V];
                take_values<T>(p.dtype, p.out, from, values);
                take_places(p, from, places);
                YOKE_UNROLL
                for (int v = 0; v < V; v++)
                    if (places[v] == k * p.x.kernel + j) sums[v] += values[v];
            }
            YOKE_UNROLL
            for (int v = 0; p.many && v < V; v++) totals[v] += sums[v], sums[v] = C(0);
        }
        YOKE_UNROLL
        for (int v = 0; v < V; v++) totals[v] = p.many ? totals[v] : sums[v];
        put_values<T>(p.dtype, p.in, p.of_in.pixel(at), totals);
    }
}

// Adds the gradients whose windows have their maximum at a tap.
template <class T, int V>
__device__ inline void add_grads(const Pack<T, V> &grads, const Pack<uint8_t, V> &places, int tap,
                                 compute_type<T> (&sums)[V])
{
    compute_type<T> values[V];
    unpack<T, V>(grads, values);
    YOKE_UNROLL
    for (int v = 0; v < V; v++)
        if (places.at[v] == tap) sums[v] += values[v];
}

// The same, of a tile whose windows shared memory holds.
template <class T>
__global__ void __launch_bounds__(kThreads, kFitting<3, kThreads>)
    max_gradient_tiles(PoolJob p, PoolTile tile)
{
    using C = compute_type<T>;
    constexpr int V = kPackLength<T>;
    YOKE_SHARED(PoolPack<T>, grads, kTileWindows * kTileLanes);
    YOKE_SHARED(PlacePack<T>, places, kTileWindows * kTileLanes);
    const TileAxis &down = tile.y, &across = tile.x;
    const PoolMember me(p, tile);
    const PoolView view{down.window_begin(me.y),   down.out,
                        across.window_begin(me.x), across.out,
                        (int)p.of_out.y,           (int)p.of_out.x};
    const PoolIndex image{me.n, me.c, 0, 0};
    const int64_t from = p.of_out.image(image), to = p.of_in.image(image);
    constexpr int kAtOnce = 3;
    PoolPack<T> packs[kAtOnce];
    PlacePack<T> marks[kAtOnce];
    hold_tile<kAtOnce>(
        view, tile, me, tile.pixels(),
        [&](int u, bool inside, int at) {
            packs[u] = load_at<V>((const T *)p.out + from, inside, at);
            marks[u] = load_at<V>((const uint8_t *)p.places + from, inside, at);
        },
        [&](int u, int place) {
            grads[place] = packs[u];
            places[place] = marks[u];
        });
    __syncthreads();
    if (!me.there) return;
    struct Column {
        int begin, end;
    };
    me.each_pixel(
        tile, down.in, across.in,
        [&](int x) {
            return Column{across.window_begin(x), across.window_end(x)};
        },
        [&](int y, int x, const Column &windows) {
            const int end = down.window_end(y);
            C sums[V] = {};
            for (int oy = down.window_begin(y); oy < end; oy++) {
                const int k = down.tap_at(oy, y);
                for (int ox = windows.begin; k >= 0 && ox < windows.end; ox++) {
                    const int j = across.tap_at(ox, x);
                    if (j < 0) continue;
                    const int place = tile.place(oy - view.y, ox - view.x, me.lane);
                    add_grads<T, V>(from_words<T, V>(grads[place]),
                                    from_words<uint8_t, V>(places[place]), k * across.kernel + j,
                                    sums);
                }
            }
            put_values<T>(p.dtype, p.in, to + (y * (int)p.of_in.y + x * (int)p.of_in.x), sums);
        });
}

// ---- entries --------------------------------------------------------------------------------------------------------

// Returns the positions of x from the first tap of a window to the last.
static int64_t span_of(const PoolAxis &a)
{
    return (a.kernel - 1) * a.dilation + 1;
}

template <class T>
static yoke_status maxima(const yoke_launch *launch, const kernels::Pool &p)
{
    constexpr int V = kPackLength<T>, kBits = 3, kSide = 1 << kBits;
    PoolTile tile(p, p.c / V, p.y.out, p.x.out, kBits);
    const int threads = block_size(kThreads);
    const int64_t bytes = (int64_t)sizeof(PoolPack<T>) * tile.lanes(), most = kTileBytes / bytes;
    const bool overlap = span_of(p.y) > p.y.stride || span_of(p.x) > p.x.stride;
    if (overlap && takes_packs(p, V, sizeof(T)) &&
        tile.reads(p, (kSide - 1) * p.y.stride + span_of(p.y),
                   (kSide - 1) * p.x.stride + span_of(p.x), most)) {
        const int64_t pixels = tile.taken(threads, kPixelsAtOnce);
        if (pixels <= most)
            return start(launch, max_tiles<T>, {tile.blocks(), threads, pixels * bytes},
                         PoolJob(p, p.y.out, p.x.out, V), tile);
    }
    return start_pool<T>(launch, p, p.y.out, p.x.out, max_windows<T, V>, max_windows<T, 1>);
}

YOKE_KERNEL(_max_pool)
{
    const yoke_operand *o = launch->operands;
    if (o[1].numel == 0) return YOKE_OK;
    const kernels::Pool p = kernels::max_pool_of(launch, o[0], o[1], o[2]);
    return for_float(launch, "x", p.dtype, [&]<class T>() { return maxima<T>(launch, p); });
}

template <class T>
static yoke_status gradients(const yoke_launch *launch, const kernels::Pool &p)
{
    constexpr int V = kPackLength<T>;
    const bool tiles = takes_packs(p, V, sizeof(T)) && !p.has_wide_places && !kernels::adds_many(p);
    for (int bits = 4; tiles && bits >= 3; bits--) {
        PoolTile tile(p, p.c / V, p.y.in, p.x.in, bits);
        const int64_t last = tile.side() - 1;
        if (tile.reads(p, (last + span_of(p.y) - 1) / p.y.stride + 1,
                       (last + span_of(p.x) - 1) / p.x.stride + 1, kTileWindows))
            return start(launch, max_gradient_tiles<T>, {tile.blocks(), block_size(kThreads)},
                         PoolJob(p, p.y.in, p.x.in, V), tile);
    }
    return start_pool<T>(launch, p, p.y.in, p.x.in, max_gradients<T, V>,
                         max_gradients<General<T>, 1>);
}

YOKE_KERNEL(_max_pool_backward)
{
    const yoke_operand *o = launch->operands;
    if (o[2].numel == 0) return YOKE_OK;
    const kernels::Pool p = kernels::max_pool_of(launch, o[2], o[0], o[1]);
    return for_float(launch, "grad", p.dtype, [&]<class T>() { return gradients<T>(launch, p); });
}

YOKE_CUDA_END
