// Means of windows over height and width, and their gradient.
#include "kernels/common/norm.h"
#include "kernels/cpu/simd/pool.h"

YOKE_SIMD_BEGIN

template <class C>
static void add_run(const C *from, int64_t step, int64_t begin, int64_t end, C *to)
{
    if (step == 1) {
#pragma omp simd
        for (int64_t i = begin; i < end; i++) to[i] += from[i];
    } else {
        for (int64_t i = begin; i < end; i++) to[i] += from[i * step];
    }
}

template <class C>
static void mean_pixel(const Pool &p, int64_t pixel, int64_t c, int64_t n)
{
    const int64_t ox = pixel % p.x.out, oy = pixel / p.x.out % p.y.out,
                  image = pixel / p.x.out / p.y.out;
    const Taps down = taps_of(p.y, oy), across = taps_of(p.x, ox);
    const C divisor = divisor_of<C>(p, oy, ox);
    C sums[kLanes] = {}, buffer[kLanes];
    for (int64_t y = down.first + down.begin; y < down.first + down.end; y++)
        for (int64_t x = across.first + across.begin; x < across.first + across.end; x++) {
            const int64_t at = ((image * p.y.in + y) * p.x.in + x) * p.c + c;
            add_run(see_run(p.dtype, p.in, at, n, buffer), 1, 0, n, sums);
        }
    for (int64_t i = 0; i < n; i++) sums[i] /= divisor;
    give_run(p.dtype, sums, n, p.out, pixel * p.c + c);
}

// What a row of x adds to n lanes of the result from the first on.
template <class C>
static void add_windows(const Pool &p, const C *from, int64_t first, int64_t n, C *sums)
{
    if (p.x.kernel == 0) {  // windows of several lengths
        for (int64_t i = 0; i < n; i++) {
            const Taps taps = taps_of(p.x, first + i);
            sums[i] +=
                kernels::sum_of<C>(taps.end, [=](int64_t j) { return from[taps.first + j]; });
        }
        return;
    }
    const Windows across = taps_of_lanes(p.x, first, n);
    for (int64_t j = across.begin; j < across.end; j++) {
        const Windows lanes = lanes_of(p.x, j, first, n);
        if (lanes.begin < lanes.end)
            add_run(from + (first * p.x.stride + j - p.x.padding), p.x.stride, lanes.begin,
                    lanes.end, sums);
    }
}

template <class C>
static void mean_row(const Pool &p, int64_t row, C *room)
{
    const int64_t plane = row / p.y.out, oy = row % p.y.out;
    const Taps down = taps_of(p.y, oy);
    each_piece(p.x.out, [&](int64_t first, int64_t n) {
        C sums[kLanes] = {};
        for (int64_t y = down.first + down.begin; y < down.first + down.end; y++)
            add_windows(p, see_row(p.dtype, p.in, plane * p.y.in + y, p.x.in, room), first, n,
                        sums);
        for (int64_t i = 0; i < n; i++) sums[i] /= divisor_of<C>(p, oy, first + i);
        give_run(p.dtype, sums, n, p.out, row * p.x.out + first);
    });
}

template <class C>
static void mean_gradient_pixel(const Pool &p, int64_t pixel, int64_t c, int64_t n)
{
    const int64_t x = pixel % p.x.in, y = pixel / p.x.in % p.y.in, image = pixel / p.x.in / p.y.in;
    const Windows down = windows_of(p.y, y), across = windows_of(p.x, x);
    C sums[kLanes] = {}, buffer[kLanes];
    for (int64_t oy = down.begin; oy < down.end; oy++)
        for (int64_t ox = across.begin; ox < across.end; ox++) {
            const int64_t at = ((image * p.y.out + oy) * p.x.out + ox) * p.c + c;
            const C *grads = see_run(p.dtype, p.out, at, n, buffer),
                    divisor = divisor_of<C>(p, oy, ox);
#pragma omp simd
            for (int64_t i = 0; i < n; i++) sums[i] += grads[i] / divisor;
        }
    give_run(p.dtype, sums, n, p.in, pixel * p.c + c);
}

// What a row of the result's gradient, which is divided, adds to a row of x's.
template <class C>
static void spread_windows(const Pool &p, const C *grads, C *sums)
{
    for (int64_t ox = 0; ox < p.x.out; ox++) {
        const Taps taps = taps_of(p.x, ox);
        for (int64_t j = taps.begin; j < taps.end; j++) sums[taps.first + j] += grads[ox];
    }
}

template <class C>
static void mean_gradient_row(const Pool &p, int64_t row, C *room)
{
    const int64_t plane = row / p.y.in;
    const Windows down = windows_of(p.y, row % p.y.in);
    C *sums = room, *grads = room + p.x.in;
    for (int64_t i = 0; i < p.x.in; i++) sums[i] = (C)0;
    for (int64_t oy = down.begin; oy < down.end; oy++) {
        take_run(p.dtype, p.out, (plane * p.y.out + oy) * p.x.out, p.x.out, grads);
        for (int64_t ox = 0; ox < p.x.out; ox++) grads[ox] /= divisor_of<C>(p, oy, ox);
        spread_windows(p, grads, sums);
    }
    give_run(p.dtype, sums, p.x.in, p.in, row * p.x.in);
}

// ---- entries --------------------------------------------------------------------------------------------------------

YOKE_KERNEL(_avg_pool)
{
    const yoke_operand *o = launch->operands;
    if (o[1].numel == 0) return YOKE_OK;
    const Pool p = kernels::mean_pool_of(launch, o[0], o[1]);
    return in_floats(launch, "x", p.dtype, [&]<class C>() {
        return each_part<C>(
            launch, p, p.y.out, p.x.out,
            [&](int64_t i, int64_t c, int64_t n) { mean_pixel<C>(p, i, c, n); },
            [&](int64_t i, C *room) { mean_row<C>(p, i, room); });
    });
}

YOKE_KERNEL(_avg_pool_backward)
{
    const yoke_operand *o = launch->operands;
    if (o[1].numel == 0) return YOKE_OK;
    const Pool p = kernels::mean_pool_of(launch, o[1], o[0]);
    return in_floats(launch, "grad", p.dtype, [&]<class C>() {
        return each_part<C>(
            launch, p, p.y.in, p.x.in,
            [&](int64_t i, int64_t c, int64_t n) { mean_gradient_pixel<C>(p, i, c, n); },
            [&](int64_t i, C *room) { mean_gradient_row<C>(p, i, room); });
    });
}

YOKE_SIMD_END
