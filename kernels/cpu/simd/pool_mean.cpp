// Means of windows over height and width, and their gradient.
#include "kernels/common/norm.h"
#include "kernels/cpu/simd/pool.h"

YOKE_SIMD_BEGIN

using kernels::Adding;
using kernels::PoolSum;

// Returns a value as a term of a sum; shrunk if the sum is made smaller.
template <Adding kHow, class C>
YOKE_HD PoolSum<C, kHow> term_of(C x)
{
    if constexpr (kHow == Adding::kShrunk)
        return (double)x * kernels::kPoolScale<kHow>;
    else
        return x;
}

template <Adding kHow, class C>
static void add_run(const C *from, int64_t step, int64_t begin, int64_t end, PoolSum<C, kHow> *to)
{
    if (step == 1) {
#pragma omp simd
        for (int64_t i = begin; i < end; i++) to[i] += term_of<kHow>(from[i]);
    } else {
        for (int64_t i = begin; i < end; i++) to[i] += term_of<kHow>(from[i * step]);
    }
}

// Divides sums, and writes the means. Returns false if a mean is not finite.
template <Adding kHow, class C, class Divisor>
static bool divide_sums(const PoolSum<C, kHow> *sums, int64_t n, const Divisor &divisor, C *means)
{
    bool lost = false;
    for (int64_t i = 0; i < n; i++) {
        means[i] = (C)(sums[i] / divisor(i) / (PoolSum<C, kHow>)kernels::kPoolScale<kHow>);
        lost |= !(means[i] - means[i] == (C)0);
    }
    return !lost;
}

// Finds the means of n lanes by run.operator()<how>(means). If a mean is lost, run returns false. Then only lost
// means are replaced: another way to add may lose small numbers in other lanes.
template <Adding kHow, class C, class Run>
static void find_means(int64_t n, C *means, const Run &run)
{
    if (run.template operator()<kHow>(means)) return;
    C again[kLanes];
    run.template operator()<kernels::kAddingAgain<C>>(again);
    for (int64_t i = 0; i < n; i++) means[i] = means[i] - means[i] == (C)0 ? means[i] : again[i];
}

template <class C, Adding kHow>
static void mean_pixel(const Pool &p, int64_t pixel, int64_t c, int64_t n)
{
    const int64_t ox = pixel % p.x.out, oy = pixel / p.x.out % p.y.out,
                  image = pixel / p.x.out / p.y.out;
    const Taps down = taps_of(p.y, oy), across = taps_of(p.x, ox);
    const C divisor = divisor_of<C>(p, oy, ox);
    C means[kLanes];
    find_means<kHow>(n, means, [&]<Adding kBy>(C *to) {
        PoolSum<C, kBy> sums[kLanes] = {};
        C buffer[kLanes];
        for (int64_t y = down.first + down.begin; y < down.first + down.end; y++)
            for (int64_t x = across.first + across.begin; x < across.first + across.end; x++) {
                const int64_t at = ((image * p.y.in + y) * p.x.in + x) * p.c + c;
                add_run<kBy>(see_run(p.dtype, p.in, at, n, buffer), 1, 0, n, sums);
            }
        return divide_sums<kBy>(
            sums, n, [=](int64_t) { return divisor; }, to);
    });
    give_run(p.dtype, means, n, p.out, pixel * p.c + c);
}

// Adds the values of a row of x to the sums of n windows, from lane `first` of the result on.
template <Adding kHow, class C>
static void add_windows(const Pool &p, const C *from, int64_t first, int64_t n,
                        PoolSum<C, kHow> *sums)
{
    if (p.x.kernel == 0) {  // windows of several lengths
        for (int64_t i = 0; i < n; i++) {
            const Taps taps = taps_of(p.x, first + i);
            sums[i] += kernels::sum_of<PoolSum<C, kHow>>(
                taps.end, [=](int64_t j) { return term_of<kHow>(from[taps.first + j]); });
        }
        return;
    }
    const Windows across = taps_of_lanes(p.x, first, n);
    for (int64_t j = across.begin; j < across.end; j++) {
        const Windows lanes = lanes_of(p.x, j, first, n);
        if (lanes.begin < lanes.end)
            add_run<kHow>(from + (first * p.x.stride + j - p.x.padding), p.x.stride, lanes.begin,
                          lanes.end, sums);
    }
}

template <class C, Adding kHow>
static void mean_row(const Pool &p, int64_t row, C *room)
{
    const int64_t plane = row / p.y.out, oy = row % p.y.out;
    const Taps down = taps_of(p.y, oy);
    each_piece(p.x.out, [&](int64_t first, int64_t n) {
        C means[kLanes];
        find_means<kHow>(n, means, [&]<Adding kBy>(C *to) {
            PoolSum<C, kBy> sums[kLanes] = {};
            for (int64_t y = down.first + down.begin; y < down.first + down.end; y++)
                add_windows<kBy>(p, see_row(p.dtype, p.in, plane * p.y.in + y, p.x.in, room), first,
                                 n, sums);
            return divide_sums<kBy>(
                sums, n, [&](int64_t i) { return divisor_of<C>(p, oy, first + i); }, to);
        });
        give_run(p.dtype, means, n, p.out, row * p.x.out + first);
    });
}

template <class C, Adding kHow>
static void mean_gradient_pixel(const Pool &p, int64_t pixel, int64_t c, int64_t n)
{
    const int64_t x = pixel % p.x.in, y = pixel / p.x.in % p.y.in, image = pixel / p.x.in / p.y.in;
    const Windows down = windows_of(p.y, y), across = windows_of(p.x, x);
    PoolSum<C, kHow> sums[kLanes] = {};
    C buffer[kLanes];
    for (int64_t oy = down.begin; oy < down.end; oy++)
        for (int64_t ox = across.begin; ox < across.end; ox++) {
            const int64_t at = ((image * p.y.out + oy) * p.x.out + ox) * p.c + c;
            const C *grads = see_run(p.dtype, p.out, at, n, buffer),
                    divisor = divisor_of<C>(p, oy, ox);
#pragma omp simd
            for (int64_t i = 0; i < n; i++) sums[i] += grads[i] / divisor;
        }
    for (int64_t i = 0; i < n; i++) buffer[i] = (C)sums[i];
    give_run(p.dtype, buffer, n, p.in, pixel * p.c + c);
}

// Adds a row of the result's gradient, after the division, to a row of x's gradient.
template <class C, class Sum>
static void spread_windows(const Pool &p, const C *grads, Sum *sums)
{
    for (int64_t ox = 0; ox < p.x.out; ox++) {
        const Taps taps = taps_of(p.x, ox);
        for (int64_t j = taps.begin; j < taps.end; j++) sums[taps.first + j] += grads[ox];
    }
}

template <class C, Adding kHow>
static void mean_gradient_row(const Pool &p, int64_t row, C *room)
{
    const int64_t plane = row / p.y.in;
    const Windows down = windows_of(p.y, row % p.y.in);
    auto *sums = (PoolSum<C, kHow> *)room;
    C *grads = room + 2 * p.x.in;
    for (int64_t i = 0; i < p.x.in; i++) sums[i] = 0;
    for (int64_t oy = down.begin; oy < down.end; oy++) {
        take_run(p.dtype, p.out, (plane * p.y.out + oy) * p.x.out, p.x.out, grads);
        for (int64_t ox = 0; ox < p.x.out; ox++) grads[ox] /= divisor_of<C>(p, oy, ox);
        spread_windows(p, grads, sums);
    }
    each_piece(p.x.in, [&](int64_t first, int64_t n) {
        C values[kLanes];
        for (int64_t i = 0; i < n; i++) values[i] = (C)sums[first + i];
        give_run(p.dtype, values, n, p.in, row * p.x.in + first);
    });
}

// ---- entries --------------------------------------------------------------------------------------------------------

// Calls f.operator()<how>() with the way in which a pooling adds: in double if its sums have many terms.
template <class F>
static yoke_status for_adding(const Pool &p, const F &f)
{
    return adds_many(p) ? f.template operator()<Adding::kWide>()
                        : f.template operator()<Adding::kPlain>();
}

template <class C, Adding kHow>
static yoke_status mean_windows(const yoke_launch *launch, const Pool &p)
{
    return each_part<C>(
        launch, p, p.y.out, p.x.out,
        [&](int64_t i, int64_t c, int64_t n) { mean_pixel<C, kHow>(p, i, c, n); },
        [&](int64_t i, C *room) { mean_row<C, kHow>(p, i, room); });
}

YOKE_KERNEL(_avg_pool)
{
    const yoke_operand *o = launch->operands;
    if (o[1].numel == 0) return YOKE_OK;
    const Pool p = kernels::mean_pool_of(launch, o[0], o[1]);
    return in_floats(launch, "x", p.dtype, [&]<class C>() {
        return for_adding(p, [&]<Adding kHow>() { return mean_windows<C, kHow>(launch, p); });
    });
}

template <class C, Adding kHow>
static yoke_status mean_gradients(const yoke_launch *launch, const Pool &p)
{
    return each_part<C>(
        launch, p, p.y.in, p.x.in,
        [&](int64_t i, int64_t c, int64_t n) { mean_gradient_pixel<C, kHow>(p, i, c, n); },
        [&](int64_t i, C *room) { mean_gradient_row<C, kHow>(p, i, room); });
}

YOKE_KERNEL(_avg_pool_backward)
{
    const yoke_operand *o = launch->operands;
    if (o[1].numel == 0) return YOKE_OK;
    const Pool p = kernels::mean_pool_of(launch, o[1], o[0]);
    return in_floats(launch, "grad", p.dtype, [&]<class C>() {
        return for_adding(p, [&]<Adding kHow>() { return mean_gradients<C, kHow>(launch, p); });
    });
}

YOKE_SIMD_END
