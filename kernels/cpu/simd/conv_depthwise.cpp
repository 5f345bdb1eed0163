// Depthwise convolution: each channel has a separate window, so channels are the axis of vectors.
#include "kernels/cpu/simd/conv.h"

#include "kernels/cpu/simd/tile.h"

YOKE_SIMD_BEGIN

constexpr int64_t kChannels = 256, kTaps = 16;  // summed at once
constexpr int64_t kLeastPositions = 128;        // least positions of a part of a gradient by weight

// Computes sums[i] = first[i] + from[k][i] * by[k][i] over k < count, for each i < n. Sums stay in registers.
template <class C>
static void add_taps(const C *const *from, const C *const *by, int64_t count, int64_t n,
                     const C *first, C *sums)
{
    using V = Vector<C>;
    constexpr int64_t half = kWidth<C> / 2;
    int64_t i = 0;
    for (; i + kWidth<C> <= n; i += kWidth<C>) {
        V low = *(const V *)(first + i), high = *(const V *)(first + i + half);
        for (int64_t k = 0; k < count; k++) {
            low += *(const V *)(from[k] + i) * *(const V *)(by[k] + i);
            high += *(const V *)(from[k] + i + half) * *(const V *)(by[k] + i + half);
        }
        *(V *)(sums + i) = low;
        *(V *)(sums + i + half) = high;
    }
    for (; i < n; i++) {
        C sum = first[i];
        for (int64_t k = 0; k < count; k++) sum += from[k][i] * by[k][i];
        sums[i] = sum;
    }
}

// Computes channels [first, first + n) of a pixel of the result.
template <class C>
static void sum_taps(const Sweep &s, yoke_dtype dtype, const Pixel &pixel, const C *weight,
                     const C *bias, int64_t first, int64_t n)
{
    C buffer[kTaps + 1][kChannels];
    const C *from[kTaps] = {}, *by[kTaps] = {}, *before = bias + first;
    const int64_t to = written_at(s, pixel) + first;
    const bool is_stored = dtype == kernels::dtype_of<C>;
    C *sums = is_stored ? static_cast<C *>(s.to) + to : buffer[kTaps];
    Tap tap = {};
    int64_t count = 0;
    for (int64_t i = 0; i < s.taps(); i++, go_on(s, tap)) {
        const int64_t at = read_at(s, pixel, tap);
        if (at < 0) continue;
        from[count] = see_run(dtype, s.from, at + first, n, buffer[count]);
        by[count++] = weight + i * s.groups + first;
        if (count < kTaps) continue;
        add_taps(from, by, count, n, before, sums);
        before = sums, count = 0;
    }
    add_taps(from, by, count, n, before, sums);
    if (!is_stored) give_run(dtype, sums, n, s.to, to);
}

// Copies the weight as [taps, channels].
template <class C>
static void turn_weight(const Sweep &s, const C *weight, C *to)
{
    Tap tap = {};
    for (int64_t i = 0; i < s.taps(); i++, go_on(s, tap))
        for (int64_t channel = 0; channel < s.groups; channel++)
            *to++ = weight[channel * s.group_step + window_at(s, tap)];
}

template <class C>
yoke_status sweep_depthwise(const yoke_launch *launch, yoke_dtype dtype, const Sweep &s)
{
    const int64_t taps = s.taps(), channels = s.groups, weights = channels * s.group_step;
    Scratch scratch(launch);
    const int64_t total = channels * (taps + 1) + weights;
    if (yoke_status status = scratch.reserve((uint64_t)total * sizeof(C))) return status;
    C *turned = scratch.as<C>(), *bias = turned + channels * taps, *wide = bias + channels;
    for (int64_t i = 0; i < channels; i++) bias[i] = (C)0;
    if (s.bias) take_run(dtype, s.bias, 0, channels, bias);
    turn_weight(s, see_run(dtype, s.weight, 0, weights, wide), turned);
    parallel_shares(s.rows(), max(1, kGrain / (channels * max(1, taps))),
                    [&](int64_t begin, int64_t end) {
                        Pixel pixel = sweep_position(s, begin);
                        for (; begin < end; begin++, go_on(s, pixel))
                            for (int64_t first = 0; first < channels; first += kChannels)
                                sum_taps(s, dtype, pixel, turned, bias, first,
                                         min(kChannels, channels - first));
                    });
    return YOKE_OK;
}

// Adds the products of positions [begin, end) to sums[taps, channels].
template <class C>
static void add_positions(const Conv &c, const Sweep &s, int64_t begin, int64_t end, C *sums)
{
    C grads[kChannels], values[kChannels];
    Pixel pixel = sweep_position(s, begin);
    for (; begin < end; begin++, go_on(s, pixel)) {
        for (int64_t first = 0; first < c.c; first += kChannels) {
            const int64_t n = min(kChannels, c.c - first);
            const C *grad = see_run(c.dtype, c.out, begin * c.o + first, n, grads);
            Tap tap = {};
            for (int64_t i = 0; i < s.taps(); i++, go_on(s, tap))
                if (const int64_t at = read_at(s, pixel, tap); at >= 0)
                    add_products(see_run(c.dtype, s.from, at + first, n, values), grad, n,
                                 sums + i * c.c + first);
        }
    }
}

template <class C>
yoke_status weight_depthwise(const yoke_launch *launch, const Conv &c)
{
    const Sweep s = kernels::forward_sweep(c);
    const int64_t size = c.c * c.kh * c.kw, positions = s.rows(),
                  parts = position_parts(positions, 1, kLeastPositions),
                  length = divide_up(positions, parts);
    Scratch scratch(launch);
    if (yoke_status status = scratch.reserve((uint64_t)((parts + 1) * size) * sizeof(C)))
        return status;
    C *sums = scratch.as<C>(), *turned = sums + parts * size;
    for (int64_t i = 0; i < parts * size; i++) sums[i] = (C)0;
    const auto add_part = [&](int64_t part) {
        add_positions(c, s, part * length, min(positions, (part + 1) * length), sums + part * size);
    };
    parallel_shares(parts, max(1, kGrain / max(1, length * size)), [&](int64_t begin, int64_t end) {
        for (; begin < end; begin++) add_part(begin);
    });
    add_parts(sums, parts, size);
    for (int64_t i = 0; i < size; i++)
        turned[i] = sums[i % (c.kh * c.kw) * c.c + i / (c.kh * c.kw)];
    give_run(c.dtype, turned, size, c.weight, 0);
    return YOKE_OK;
}

template yoke_status sweep_depthwise<float>(const yoke_launch *, yoke_dtype, const Sweep &);
template yoke_status sweep_depthwise<double>(const yoke_launch *, yoke_dtype, const Sweep &);
template yoke_status weight_depthwise<float>(const yoke_launch *, const Conv &);
template yoke_status weight_depthwise<double>(const yoke_launch *, const Conv &);

YOKE_SIMD_END
