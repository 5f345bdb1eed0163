// Maxima over windows of height and width, and their gradients. A gradient gathers from the windows around its pixel.
#include "kernels/cuda/ops/pool_tiles.cuh"

YOKE_CUDA_BEGIN

// The best values of windows so far, and the numbers of their taps. -infinity at the first tap is never replaced by
// another -infinity.
template <class T, int V>
struct Best {
    using C = compute_type<T>;
    C values[V];
    int32_t places[V];

    // Begins with the first tap of windows, or with tap 0 of windows without taps.
    __device__ Best(const PoolJob &p, const Taps &down, const Taps &across)
    {
        const bool empty = down.begin >= down.end || across.begin >= across.end;
        const auto tap = (int32_t)(empty ? 0 : down.begin * p.x.kernel + across.begin);
        YOKE_UNROLL
        for (int v = 0; v < V; v++) values[v] = -(C)INFINITY, places[v] = tap;
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
        put_values<T>(p.out, at, values);
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

template <class T, int V>
__global__ void max_windows(PoolJob p)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < p.count;
         i += (int64_t)gridDim.x * blockDim.x) {
        const PoolIndex at = p.at(i);
        const Taps down = sliding_taps(p.y, at.y), across = sliding_taps(p.x, at.x);
        const int64_t image = p.of_in.image(at);
        Best<T, V> best(p, down, across);
        for (int64_t k = down.begin; k < down.end; k++)
            for (int64_t j = across.begin; j < across.end; j++) {
                const int64_t y = down.first + k * p.y.dilation,
                              x = across.first + j * p.x.dilation;
                best.see(load_pack<V>((const T *)p.in + image + y * p.of_in.y + x * p.of_in.x),
                         (int32_t)(k * p.x.kernel + j));
            }
        best.put(p, p.of_out.pixel(at));
    }
}

// The same, of a tile whose pixels shared memory holds: windows that overlap read memory once.
template <class T>
__global__ void __launch_bounds__(kThreads, kFitting<3, kThreads>)
    max_tiles(PoolJob p, PoolTile tile)
{
    constexpr int V = kPackLength<T>;
    YOKE_DYNAMIC_SHARED(PoolPack<T>, held);
    const PoolMember me(p, tile);
    const PoolView view{me.y * p.y.stride - p.y.padding, p.y.in, me.x * p.x.stride - p.x.padding,
                        p.x.in};
    const T *image = (const T *)p.in + p.of_in.image(me.pixel(tile, 0));
    hold_tile<V>(image, p.of_in, view, tile, me, held);
    __syncthreads();
    if (!me.there) return;
    for (int e = me.member; e < tile.side() * tile.side(); e += me.members) {
        const PoolIndex at = me.pixel(tile, e);
        if (at.y >= p.y.out || at.x >= p.x.out) continue;
        const Taps down = sliding_taps(p.y, at.y), across = sliding_taps(p.x, at.x);
        Best<T, V> best(p, down, across);
        for (int k = (int)down.begin; k < (int)down.end; k++)
            for (int j = (int)across.begin; j < (int)across.end; j++) {
                const int y = (int)(down.first - view.y) + k * (int)p.y.dilation,
                          x = (int)(across.first - view.x) + j * (int)p.x.dilation;
                best.see(held[tile.place(y, x, me.lane)], k * (int)p.x.kernel + j);
            }
        best.put(p, p.of_out.pixel(at));
    }
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
                take_values<T>(p.out, from, values);
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
        put_values<T>(p.in, p.of_in.pixel(at), totals);
    }
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
    const PoolMember me(p, tile);
    const PoolView view{sliding_windows(p.y, me.y).begin, p.y.out, sliding_windows(p.x, me.x).begin,
                        p.x.out};
    const int64_t image = p.of_out.image(me.pixel(tile, 0));
    hold_tile<V>((const T *)p.out + image, p.of_out, view, tile, me, grads);
    hold_tile<V>((const uint8_t *)p.places + image, p.of_out, view, tile, me, places);
    __syncthreads();
    if (!me.there) return;
    for (int e = me.member; e < tile.side() * tile.side(); e += me.members) {
        const PoolIndex at = me.pixel(tile, e);
        if (at.y >= p.y.in || at.x >= p.x.in) continue;
        const Windows down = sliding_windows(p.y, at.y), across = sliding_windows(p.x, at.x);
        C sums[V] = {};
        for (int64_t y = down.begin; y < down.end; y++) {
            const int k = (int)tap_at(p.y, y, at.y);
            for (int64_t x = across.begin; k >= 0 && x < across.end; x++) {
                const int j = (int)tap_at(p.x, x, at.x), tap = k * (int)p.x.kernel + j,
                          from = tile.place((int)(y - view.y), (int)(x - view.x), me.lane);
                if (j < 0) continue;
                const PoolPack<T> pack = grads[from];
                const PlacePack<T> its = places[from];
                C values[V];
                unpack<T, V>(pack, values);
                YOKE_UNROLL
                for (int v = 0; v < V; v++)
                    if (its.at[v] == tap) sums[v] += values[v];
            }
        }
        put_values<T>(p.in, p.of_in.pixel(at), sums);
    }
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
    PoolTile tile(p.n, p.c / V, p.y.out, p.x.out, kBits);
    const int64_t most = kTileBytes / (int64_t)sizeof(PoolPack<T>) / tile.lanes();
    const bool overlap = span_of(p.y) > p.y.stride || span_of(p.x) > p.x.stride;
    if (overlap && takes_packs(p, V, sizeof(T)) &&
        tile.reads((kSide - 1) * p.y.stride + span_of(p.y), (kSide - 1) * p.x.stride + span_of(p.x),
                   most))
        return start(launch, max_tiles<T>,
                     {tile.blocks(), block_size(kThreads),
                      tile.pixels() * tile.lanes() * (int64_t)sizeof(PoolPack<T>)},
                     PoolJob(p, p.y.out, p.x.out, V), tile);
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
        PoolTile tile(p.n, p.c / V, p.y.in, p.x.in, bits);
        const int64_t last = tile.side() - 1;
        if (tile.reads((last + span_of(p.y) - 1) / p.y.stride + 1,
                       (last + span_of(p.x) - 1) / p.x.stride + 1, kTileWindows))
            return start(launch, max_gradient_tiles<T>, {tile.blocks(), block_size(kThreads)},
                         PoolJob(p, p.y.in, p.x.in, V), tile);
    }
    return start_pool<T>(launch, p, p.y.in, p.x.in, max_gradients<T, V>, max_gradients<T, 1>);
}

YOKE_KERNEL(_max_pool_backward)
{
    const yoke_operand *o = launch->operands;
    if (o[2].numel == 0) return YOKE_OK;
    const kernels::Pool p = kernels::max_pool_of(launch, o[2], o[0], o[1]);
    return for_float(launch, "grad", p.dtype, [&]<class T>() { return gradients<T>(launch, p); });
}

YOKE_CUDA_END
