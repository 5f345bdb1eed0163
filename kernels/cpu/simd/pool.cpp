// Pooling over height and width, and its gradients.
//
// All is done in lanes: the channels of a pixel where x lies NHWC, the pixels of a row of the result elsewhere. Halves
// are widened in runs as they are read, and narrowed as they are written. A gradient gathers: each pixel, or row, of it
// is written once, with the sum over the windows that hold it.
#include "kernels/common/pool.h"
#include "kernels/common/norm.h"
#include "kernels/cpu/simd/halves.h"
#include "kernels/cpu/simd/share.h"

YOKE_SIMD_BEGIN

using kernels::Pool;
using kernels::PoolAxis;
using kernels::Taps;
using kernels::Windows;

constexpr int64_t kLanes = 256;  // that are computed at a time

// ---- lanes ----------------------------------------------------------------------------------------------------------

// What the lanes have found so far: places below 0 are none.
template <class C>
struct Best {
    C value[kLanes];
    int32_t place[kLanes];

    explicit Best(int64_t n)
    {
        for (int64_t i = 0; i < n; i++) value[i] = -(C)__builtin_inf(), place[i] = -1;
    }
    // Lane i reads from[i * step].
    void take(const C *from, int64_t step, int64_t begin, int64_t end, int32_t tap)
    {
        if (step == 1) return take_dense(from, begin, end, tap);
        for (int64_t i = begin; i < end; i++) take_one(from[i * step], i, tap);
    }

private:
    void take_one(C v, int64_t i, int32_t tap)
    {
        const bool takes = (place[i] < 0) | kernels::is_better(v, value[i]);
        value[i] = takes ? v : value[i];
        place[i] = takes ? tap : place[i];
    }
    void take_dense(const C *from, int64_t begin, int64_t end, int32_t tap)
    {
#pragma omp simd
        for (int64_t i = begin; i < end; i++) take_one(from[i], i, tap);
    }
};

template <class C, class P>
static void write_best(const Pool &p, const Best<C> &best, int64_t n, int64_t at)
{
    give_run(p.dtype, best.value, n, p.out, at);
    if (!p.places) return;
    P *to = static_cast<P *>(p.places) + at;
    for (int64_t i = 0; i < n; i++) to[i] = (P)max(best.place[i], 0);
}

// The lanes of a row of the result whose tap at `offset` from their first stands within x.
static Windows lanes_of(const PoolAxis &a, int64_t offset, int64_t first, int64_t n)
{
    const int64_t at = offset - a.padding,  // of lane 0 of the whole row
        begin = at < 0 ? divide_up(-at, a.stride) : 0,
                  end = at < a.in ? (a.in - 1 - at) / a.stride + 1 : 0;
    const int64_t from = min(max(begin - first, 0), n);
    return {from, max(from, min(end - first, n))};
}

// The taps that stand within x for some of n lanes.
static Windows taps_of_lanes(const PoolAxis &a, int64_t first, int64_t n)
{
    const int64_t of_first = first * a.stride - a.padding, of_last = of_first + (n - 1) * a.stride,
                  begin = of_last < 0 ? divide_up(-of_last, a.dilation) : 0,
                  end = of_first < a.in ? min(a.kernel, divide_up(a.in - of_first, a.dilation)) : 0;
    return {begin, end};
}

// run(lane's first pixel, lanes) for pieces of a row of the result.
template <class F>
static void each_piece(int64_t width, const F &run)
{
    for (int64_t first = 0; first < width; first += kLanes) run(first, min(kLanes, width - first));
}

// A row of x, or of the result, of a plane, in C.
template <class C>
static const C *see_row(yoke_dtype dtype, const void *array, int64_t row, int64_t width, C *buffer)
{
    return see_run(dtype, array, row * width, width, buffer);
}

// ---- max ------------------------------------------------------------------------------------------------------------

// The channels [c, c + n) of pixel (image, oy, ox) of the result.
template <class C, class P>
static void max_pixel(const Pool &p, int64_t pixel, int64_t c, int64_t n)
{
    const int64_t ox = pixel % p.x.out, oy = pixel / p.x.out % p.y.out,
                  image = pixel / p.x.out / p.y.out;
    const Taps down = taps_of(p.y, oy), across = taps_of(p.x, ox);
    Best<C> best(n);
    C buffer[kLanes];
    for (int64_t i = down.begin; i < down.end; i++)
        for (int64_t j = across.begin; j < across.end; j++) {
            const int64_t y = down.first + i * p.y.dilation, x = across.first + j * p.x.dilation,
                          at = ((image * p.y.in + y) * p.x.in + x) * p.c + c;
            best.take(see_run(p.dtype, p.in, at, n, buffer), 1, 0, n,
                      (int32_t)(i * p.x.kernel + j));
        }
    write_best<C, P>(p, best, n, pixel * p.c + c);
}

// Row oy of a plane of the result; `room` has a row of x.
template <class C, class P>
static void max_row(const Pool &p, int64_t row, C *room)
{
    const int64_t plane = row / p.y.out;
    const Taps down = taps_of(p.y, row % p.y.out);
    each_piece(p.x.out, [&](int64_t first, int64_t n) {
        const Windows across = taps_of_lanes(p.x, first, n);
        Best<C> best(n);
        for (int64_t i = down.begin; i < down.end; i++) {
            const C *from = see_row(p.dtype, p.in, plane * p.y.in + down.first + i * p.y.dilation,
                                    p.x.in, room);
            for (int64_t j = across.begin; j < across.end; j++) {
                const Windows lanes = lanes_of(p.x, j * p.x.dilation, first, n);
                if (lanes.begin < lanes.end)
                    best.take(from + (first * p.x.stride + j * p.x.dilation - p.x.padding),
                              p.x.stride, lanes.begin, lanes.end, (int32_t)(i * p.x.kernel + j));
            }
        }
        write_best<C, P>(p, best, n, row * p.x.out + first);
    });
}

// to[i * step] += from[i] where places[i] is the tap.
template <class C, class P>
static void add_where(const C *from, const P *places, P tap, int64_t n, int64_t step, C *to)
{
    if (step == 1) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++) to[i] += places[i] == tap ? from[i] : (C)0;
    } else {
        for (int64_t i = 0; i < n; i++) to[i * step] += places[i] == tap ? from[i] : (C)0;
    }
}

// The channels [c, c + n) of pixel (image, y, x) of x's gradient.
template <class C, class P>
static void max_gradient_pixel(const Pool &p, int64_t pixel, int64_t c, int64_t n)
{
    const int64_t x = pixel % p.x.in, y = pixel / p.x.in % p.y.in, image = pixel / p.x.in / p.y.in;
    const Windows down = windows_of(p.y, y), across = windows_of(p.x, x);
    C sums[kLanes] = {}, buffer[kLanes];
    for (int64_t oy = down.begin; oy < down.end; oy++)
        for (int64_t ox = across.begin; ox < across.end; ox++) {
            const int64_t i = tap_at(p.y, oy, y), j = tap_at(p.x, ox, x);
            if (i < 0 || j < 0) continue;
            const int64_t at = ((image * p.y.out + oy) * p.x.out + ox) * p.c + c;
            add_where(see_run(p.dtype, p.out, at, n, buffer), static_cast<const P *>(p.places) + at,
                      (P)(i * p.x.kernel + j), n, 1, sums);
        }
    give_run(p.dtype, sums, n, p.in, pixel * p.c + c);
}

// Row y of a plane of x's gradient; `room` has it, and a row of the result's.
template <class C, class P>
static void max_gradient_row(const Pool &p, int64_t row, C *room)
{
    const int64_t plane = row / p.y.in, y = row % p.y.in;
    const Windows down = windows_of(p.y, y), across = taps_of_lanes(p.x, 0, p.x.out);
    C *sums = room, *buffer = room + p.x.in;
    for (int64_t i = 0; i < p.x.in; i++) sums[i] = (C)0;
    for (int64_t oy = down.begin; oy < down.end; oy++) {
        const int64_t i = tap_at(p.y, oy, y), from = plane * p.y.out + oy;
        if (i < 0) continue;
        const C *grads = see_row(p.dtype, p.out, from, p.x.out, buffer);
        const P *places = static_cast<const P *>(p.places) + from * p.x.out;
        for (int64_t j = across.begin; j < across.end; j++) {
            const Windows lanes = lanes_of(p.x, j * p.x.dilation, 0, p.x.out);
            if (lanes.begin < lanes.end)
                add_where(grads + lanes.begin, places + lanes.begin, (P)(i * p.x.kernel + j),
                          lanes.end - lanes.begin, p.x.stride,
                          sums + (lanes.begin * p.x.stride + j * p.x.dilation - p.x.padding));
        }
    }
    give_run(p.dtype, sums, p.x.in, p.in, row * p.x.in);
}

// ---- means ----------------------------------------------------------------------------------------------------------

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

// pixel(number, channel, channels) or row(number, room) for all that is written, of `height` and `width`.
template <class C, class Pixel, class Row>
static yoke_status each_part(const yoke_launch *launch, const Pool &p, int64_t height,
                             int64_t width, const Pixel &pixel, const Row &row)
{
    const int64_t work =
        divide_up(p.y.in * p.x.in, height * width) + p.y.out * p.x.out / (height * width);
    if (p.is_nhwc) {
        parallel_shares(p.n * height * width, max(1, kGrain / (p.c * work)),
                        [&](int64_t begin, int64_t end) {
                            for (; begin < end; begin++)
                                each_piece(p.c, [&](int64_t c, int64_t n) { pixel(begin, c, n); });
                        });
        return YOKE_OK;
    }
    const int64_t slots = team_size(), room = p.x.in + p.x.out;
    Scratch scratch(launch);
    if (yoke_status status = scratch.reserve((uint64_t)(slots * room) * sizeof(C))) return status;
    parallel_shares(p.n * p.c * height, max(1, kGrain / (width * work)), slots,
                    [&](int64_t begin, int64_t end, int slot) {
                        for (; begin < end; begin++) row(begin, scratch.as<C>() + slot * room);
                    });
    return YOKE_OK;
}

// run.operator()<C>() with what a dtype is computed in.
template <class F>
static yoke_status in_floats(const yoke_launch *launch, const char *argument, yoke_dtype dtype,
                             const F &run)
{
    switch (dtype) {
        case YOKE_F64:
            return run.template operator()<double>();
        case YOKE_F32:
        case YOKE_F16:
        case YOKE_BF16:
            return run.template operator()<float>();
        default:
            return bad_dtype(launch, argument, dtype);
    }
}

template <class C, class P>
static yoke_status max_forward(const yoke_launch *launch, const Pool &p)
{
    return each_part<C>(
        launch, p, p.y.out, p.x.out,
        [&](int64_t i, int64_t c, int64_t n) { max_pixel<C, P>(p, i, c, n); },
        [&](int64_t i, C *room) { max_row<C, P>(p, i, room); });
}

template <class C, class P>
static yoke_status max_gradient(const yoke_launch *launch, const Pool &p)
{
    return each_part<C>(
        launch, p, p.y.in, p.x.in,
        [&](int64_t i, int64_t c, int64_t n) { max_gradient_pixel<C, P>(p, i, c, n); },
        [&](int64_t i, C *room) { max_gradient_row<C, P>(p, i, room); });
}

YOKE_KERNEL(_max_pool)
{
    const yoke_operand *o = launch->operands;
    if (o[1].numel == 0) return YOKE_OK;
    Pool p = kernels::pool_of(launch, o[0], o[1]);
    p.places = o[2].numel ? o[2].data : nullptr;
    return in_floats(launch, "x", p.dtype, [&]<class C>() {
        return o[2].dtype == YOKE_U8 ? max_forward<C, uint8_t>(launch, p)
                                     : max_forward<C, int32_t>(launch, p);
    });
}

YOKE_KERNEL(_max_pool_backward)
{
    const yoke_operand *o = launch->operands;
    if (o[2].numel == 0) return YOKE_OK;
    Pool p = kernels::pool_of(launch, o[2], o[0]);
    p.places = o[1].data;
    return in_floats(launch, "grad", p.dtype, [&]<class C>() {
        return o[1].dtype == YOKE_U8 ? max_gradient<C, uint8_t>(launch, p)
                                     : max_gradient<C, int32_t>(launch, p);
    });
}

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
