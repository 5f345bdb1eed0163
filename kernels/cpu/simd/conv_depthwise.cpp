// Depthwise convolution: each channel has a window of its own, so that channels are the axis of vectors.
#include "kernels/cpu/simd/conv.h"

YOKE_SIMD_BEGIN

constexpr int64_t kChannels = 256;        // that are summed at once
constexpr int64_t kLeastPositions = 128;  // of a part of a gradient by weight

// Channels [first, first + n) of one pixel.
template <class C>
static void sum_taps(const Sweep &s, yoke_dtype dtype, const Pixel &pixel, const C *weight,
                     const C *bias, int64_t first, int64_t n)
{
    C sums[kChannels], buffer[kChannels];
    for (int64_t i = 0; i < n; i++) sums[i] = bias ? bias[first + i] : (C)0;
    for (int64_t tap = 0; tap < s.y.taps * s.x.taps; tap++) {
        const int64_t at = read_at(s, pixel, tap);
        if (at < 0) continue;
        add_products(see_run(dtype, s.from, at + first, n, buffer), weight + tap * s.groups + first,
                     n, sums);
    }
    give_run(dtype, sums, n, s.to, written_at(s, pixel) + first);
}

// The weight as [taps, channels].
template <class C>
static void turn_weight(const Sweep &s, const C *weight, C *to)
{
    for (int64_t tap = 0; tap < s.y.taps * s.x.taps; tap++)
        for (int64_t channel = 0; channel < s.groups; channel++)
            *to++ = weight[channel * s.group_step + window_at(s, tap)];
}

template <class C>
yoke_status sweep_depthwise(const yoke_launch *launch, yoke_dtype dtype, const Sweep &s)
{
    const int64_t taps = s.y.taps * s.x.taps, channels = s.groups,
                  weights = channels * s.group_step;
    Scratch scratch(launch);
    const int64_t total = channels * (taps + 1) + weights;
    if (yoke_status status = scratch.reserve((uint64_t)total * sizeof(C))) return status;
    C *turned = scratch.as<C>(), *bias = turned + channels * taps, *wide = bias + channels;
    if (s.bias) take_run(dtype, s.bias, 0, channels, bias);
    turn_weight(s, see_run(dtype, s.weight, 0, weights, wide), turned);
    parallel_shares(
        s.rows(), max(1, kGrain / (channels * max(1, taps))), [&](int64_t begin, int64_t end) {
            for (; begin < end; begin++)
                for (int64_t first = 0; first < channels; first += kChannels)
                    sum_taps(s, dtype, sweep_position(s, begin), turned, s.bias ? bias : nullptr,
                             first, min(kChannels, channels - first));
        });
    return YOKE_OK;
}

// sums[taps, channels] += what positions [begin, end) add.
template <class C>
static void add_positions(const Conv &c, const Sweep &s, int64_t begin, int64_t end, C *sums)
{
    C grads[kChannels], values[kChannels];
    for (; begin < end; begin++) {
        const Pixel pixel = sweep_position(s, begin);
        for (int64_t first = 0; first < c.c; first += kChannels) {
            const int64_t n = min(kChannels, c.c - first);
            const C *grad = see_run(c.dtype, c.out, begin * c.o + first, n, grads);
            for (int64_t tap = 0; tap < c.kh * c.kw; tap++) {
                const int64_t at = read_at(s, pixel, tap);
                if (at < 0) continue;
                add_products(see_run(c.dtype, s.from, at + first, n, values), grad, n,
                             sums + tap * c.c + first);
            }
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
