// Maxima of windows over height and width, and their gradient.
#include "kernels/cpu/simd/pool.h"

YOKE_SIMD_BEGIN

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

template <class C>
static void write_best(const Pool &p, Best<C> &best, int64_t n, int64_t at)
{
    give_run(p.dtype, best.value, n, p.out, at);
    if (!p.places) return;
    for (int64_t i = 0; i < n; i++) best.place[i] = max(best.place[i], 0);
    if (p.has_wide_places) {
        __builtin_memcpy(static_cast<int32_t *>(p.places) + at, best.place, (size_t)n * 4);
    } else {
        uint8_t *to = static_cast<uint8_t *>(p.places) + at;
        for (int64_t i = 0; i < n; i++) to[i] = (uint8_t)best.place[i];
    }
}

// n places from number `at` on, where they lie or in the buffer.
static const int32_t *see_places(const Pool &p, int64_t at, int64_t n, int32_t *buffer)
{
    if (p.has_wide_places) return static_cast<const int32_t *>(p.places) + at;
    const uint8_t *from = static_cast<const uint8_t *>(p.places) + at;
    for (int64_t i = 0; i < n; i++) buffer[i] = from[i];
    return buffer;
}

// ---- max ------------------------------------------------------------------------------------------------------------

// The channels [c, c + n) of pixel (image, oy, ox) of the result.
template <class C>
static void max_pixel(const Pool &p, int64_t pixel, int64_t c, int64_t n)
{
    const int64_t ox = pixel % p.x.out, oy = pixel / p.x.out % p.y.out,
                  image = pixel / p.x.out / p.y.out;
    const Taps down = sliding_taps(p.y, oy), across = sliding_taps(p.x, ox);
    Best<C> best(n);
    C buffer[kLanes];
    for (int64_t i = down.begin; i < down.end; i++)
        for (int64_t j = across.begin; j < across.end; j++) {
            const int64_t y = down.first + i * p.y.dilation, x = across.first + j * p.x.dilation,
                          at = ((image * p.y.in + y) * p.x.in + x) * p.c + c;
            best.take(see_run(p.dtype, p.in, at, n, buffer), 1, 0, n,
                      (int32_t)(i * p.x.kernel + j));
        }
    write_best<C>(p, best, n, pixel * p.c + c);
}

// Row oy of a plane of the result; `room` has a row of x.
template <class C>
static void max_row(const Pool &p, int64_t row, C *room)
{
    const int64_t plane = row / p.y.out;
    const Taps down = sliding_taps(p.y, row % p.y.out);
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
        write_best<C>(p, best, n, row * p.x.out + first);
    });
}

// to[i * step] += from[i] where places[i] is the tap.
template <class C>
static void add_where(const C *from, const int32_t *places, int32_t tap, int64_t n, int64_t step,
                      C *to)
{
    if (step == 1) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++) to[i] += places[i] == tap ? from[i] : (C)0;
    } else {
        for (int64_t i = 0; i < n; i++) to[i * step] += places[i] == tap ? from[i] : (C)0;
    }
}

// The channels [c, c + n) of pixel (image, y, x) of x's gradient.
template <class C>
static void max_gradient_pixel(const Pool &p, int64_t pixel, int64_t c, int64_t n)
{
    const int64_t x = pixel % p.x.in, y = pixel / p.x.in % p.y.in, image = pixel / p.x.in / p.y.in;
    const Windows down = sliding_windows(p.y, y), across = sliding_windows(p.x, x);
    C sums[kLanes] = {}, buffer[kLanes];
    int32_t places[kLanes];
    for (int64_t oy = down.begin; oy < down.end; oy++)
        for (int64_t ox = across.begin; ox < across.end; ox++) {
            const int64_t i = tap_at(p.y, oy, y), j = tap_at(p.x, ox, x);
            if (i < 0 || j < 0) continue;
            const int64_t at = ((image * p.y.out + oy) * p.x.out + ox) * p.c + c;
            add_where(see_run(p.dtype, p.out, at, n, buffer), see_places(p, at, n, places),
                      (int32_t)(i * p.x.kernel + j), n, 1, sums);
        }
    give_run(p.dtype, sums, n, p.in, pixel * p.c + c);
}

// Row y of a plane of x's gradient; `room` has it, and a row of the result's.
template <class C>
static void max_gradient_row(const Pool &p, int64_t row, C *room)
{
    const int64_t plane = row / p.y.in, y = row % p.y.in;
    const Windows down = sliding_windows(p.y, y), across = taps_of_lanes(p.x, 0, p.x.out);
    C *sums = room, *buffer = room + p.x.in;
    int32_t *place_room = reinterpret_cast<int32_t *>(buffer + p.x.out);
    for (int64_t i = 0; i < p.x.in; i++) sums[i] = (C)0;
    for (int64_t oy = down.begin; oy < down.end; oy++) {
        const int64_t i = tap_at(p.y, oy, y), from = plane * p.y.out + oy;
        if (i < 0) continue;
        const C *grads = see_row(p.dtype, p.out, from, p.x.out, buffer);
        const int32_t *places = see_places(p, from * p.x.out, p.x.out, place_room);
        for (int64_t j = across.begin; j < across.end; j++) {
            const Windows lanes = lanes_of(p.x, j * p.x.dilation, 0, p.x.out);
            if (lanes.begin < lanes.end)
                add_where(grads + lanes.begin, places + lanes.begin, (int32_t)(i * p.x.kernel + j),
                          lanes.end - lanes.begin, p.x.stride,
                          sums + (lanes.begin * p.x.stride + j * p.x.dilation - p.x.padding));
        }
    }
    give_run(p.dtype, sums, p.x.in, p.in, row * p.x.in);
}

// ---- entries --------------------------------------------------------------------------------------------------------

YOKE_KERNEL(_max_pool)
{
    const yoke_operand *o = launch->operands;
    if (o[1].numel == 0) return YOKE_OK;
    const Pool p = kernels::max_pool_of(launch, o[0], o[1], o[2]);
    return in_floats(launch, "x", p.dtype, [&]<class C>() {
        return each_part<C>(
            launch, p, p.y.out, p.x.out,
            [&](int64_t i, int64_t c, int64_t n) { max_pixel<C>(p, i, c, n); },
            [&](int64_t i, C *room) { max_row<C>(p, i, room); });
    });
}

YOKE_KERNEL(_max_pool_backward)
{
    const yoke_operand *o = launch->operands;
    if (o[2].numel == 0) return YOKE_OK;
    const Pool p = kernels::max_pool_of(launch, o[2], o[0], o[1]);
    return in_floats(launch, "grad", p.dtype, [&]<class C>() {
        return each_part<C>(
            launch, p, p.y.in, p.x.in,
            [&](int64_t i, int64_t c, int64_t n) { max_gradient_pixel<C>(p, i, c, n); },
            [&](int64_t i, C *room) { max_gradient_row<C>(p, i, room); });
    });
}

YOKE_SIMD_END
