// Maxima of windows over height and width, and their gradient.
#include "kernels/cpu/simd/load_vector.h"
#include "kernels/cpu/simd/pool.h"
#include "kernels/cpu/simd/tile.h"

YOKE_SIMD_BEGIN

// ---- lanes ----------------------------------------------------------------------------------------------------------

// What n lanes have found so far: places below 0 are none.
template <class C>
struct Best {
    C *value;
    int32_t *place;

    // Lanes from `begin` on have found nothing yet.
    void start(int64_t begin, int64_t n) const
    {
        for (int64_t i = begin; i < n; i++) value[i] = -(C)__builtin_inf(), place[i] = -1;
    }
    // Lane i reads from[i * step].
    template <class T>
    void take(const T *from, int64_t step, int64_t begin, int64_t end, int32_t tap) const
    {
        if (step == 1) return take_dense(from, begin, end, tap);
        for (int64_t i = begin; i < end; i++) take_one(convert<C>(from[i * step]), i, tap);
    }

private:
    void take_one(C v, int64_t i, int32_t tap) const
    {
        const bool takes = (place[i] < 0) | kernels::is_better(v, value[i]);
        value[i] = takes ? v : value[i];
        place[i] = takes ? tap : place[i];
    }
    template <class T>
    void take_dense(const T *from, int64_t begin, int64_t end, int32_t tap) const
    {
#pragma omp simd
        for (int64_t i = begin; i < end; i++) take_one(convert<C>(from[i]), i, tap);
    }
};

template <class C>
static void write_best(const Pool &p, const Best<C> &best, int64_t n, int64_t at)
{
    give_run(p.dtype, best.value, n, p.out, at);
    if (!p.places) return;
    // What has found nothing has place 0. Bytes may be anything's, so that the pointer is read but once.
    const int32_t *place = best.place;
    if (p.has_wide_places) {
        int32_t *to = static_cast<int32_t *>(p.places) + at;
        for (int64_t i = 0; i < n; i++) to[i] = place[i] < 0 ? 0 : place[i];
    } else {
        uint8_t *to = static_cast<uint8_t *>(p.places) + at;
#pragma omp simd
        for (int64_t i = 0; i < n; i++) to[i] = (uint8_t)(place[i] < 0 ? 0 : place[i]);
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

// The taps of a window, one after another, each n values that lie together: as T where they lie, or widened to it.
template <class T>
struct SeenTaps {
    static constexpr int64_t kMost = 64, kRoom = 16 * kLanes;
    const T *from[kMost];
    int32_t tap[kMost];
    int64_t count = 0;
    T room[kRoom];

    // `taps` more of n values each, from number `at` on.
    const T *see(const Pool &p, int64_t at, int64_t taps, int64_t n)
    {
        if constexpr (std::is_same_v<T, bf16>)
            return static_cast<const T *>(p.in) + at;
        else
            return see_run(p.dtype, p.in, at, taps * n, room + count * n);
    }
};

// The best of the first lanes of n, vectors of them, which stay in registers meanwhile. Returns how many.
template <class C, class T>
static int64_t take_vectors(const SeenTaps<T> &taps, int64_t n, const Best<C> &best)
{
    using Values = Vector<C>;
    using Places = decltype(Values() < Values());
    constexpr int64_t kWidth = sizeof(Values) / sizeof(C);
    int64_t i = 0;
    for (; i + kWidth <= n; i += kWidth) {
        Values found = load_vector<Values>(taps.from[0] + i);
        Places place = Places() + taps.tap[0];
        for (int64_t t = 1; t < taps.count; t++) {
            const Values v = load_vector<Values>(taps.from[t] + i);
            const Places takes = ~(v <= found) & (found == found);
            found = takes ? v : found;
            place = takes ? Places() + taps.tap[t] : place;
        }
        *(Values *)(best.value + i) = found;
        for (int64_t k = 0; k < kWidth; k++) best.place[i + k] = (int32_t)place[k];
    }
    return i;
}

// The channels [c, c + n) of pixel (image, oy, ox) of the result. Taps that lie together are seen together.
template <class C, class T>
static void max_pixel(const Pool &p, int64_t pixel, int64_t c, int64_t n)
{
    const int64_t row = pixel / p.x.out, ox = pixel - row * p.x.out, image = row / p.y.out,
                  oy = row - image * p.y.out;
    const Taps down = sliding_taps(p.y, oy), across = sliding_taps(p.x, ox);
    const int64_t most = min(SeenTaps<T>::kMost, SeenTaps<T>::kRoom / n),
                  width = n == p.c && p.x.dilation == 1 ? min(across.end - across.begin, most) : 1;
    C values[kLanes];
    int32_t places[kLanes];
    SeenTaps<T> taps;
    const Best<C> best{values, places};
    bool is_first = true;
    const auto take = [&] {
        const int64_t done = is_first && taps.count ? take_vectors(taps, n, best) : 0;
        if (is_first) best.start(done, n);
        for (int64_t t = 0; t < taps.count; t++) best.take(taps.from[t], 1, done, n, taps.tap[t]);
        taps.count = 0, is_first = false;
    };
    for (int64_t i = down.begin; i < down.end; i++)
        for (int64_t j = across.begin; j < across.end; j += width) {
            const int64_t count = min(width, across.end - j);
            if (taps.count + count > most) take();
            const int64_t y = down.first + i * p.y.dilation, x = across.first + j * p.x.dilation,
                          at = ((image * p.y.in + y) * p.x.in + x) * p.c + c;
            const T *from = taps.see(p, at, count, n);
            for (int64_t k = 0; k < count; k++, taps.count++) {
                taps.from[taps.count] = from + k * n;
                taps.tap[taps.count] = (int32_t)(i * p.x.kernel + j + k);
            }
        }
    take();
    write_best(p, best, n, pixel * p.c + c);
}

// Row oy of a plane of the result; `room` has a row of x.
template <class C>
static void max_row(const Pool &p, int64_t row, C *room)
{
    const int64_t plane = row / p.y.out;
    const Taps down = sliding_taps(p.y, row % p.y.out);
    each_piece(p.x.out, [&](int64_t first, int64_t n) {
        const Windows across = taps_of_lanes(p.x, first, n);
        C values[kLanes];
        int32_t places[kLanes];
        const Best<C> best{values, places};
        best.start(0, n);
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

// Row y of an image of x's gradient, NHWC.
template <class C>
static void max_gradient_pixels(const Pool &p, int64_t row, C *room)
{
    const int64_t image = row / p.y.in, y = row % p.y.in;
    const Windows down = sliding_windows(p.y, y);
    each_piece(p.c, [&](int64_t c, int64_t n) {
        C *sums = room, *buffer = room + p.x.in * n;
        int32_t *place_room = reinterpret_cast<int32_t *>(buffer + p.x.out * n);
        for (int64_t i = 0; i < p.x.in * n; i++) sums[i] = (C)0;
        for (int64_t oy = down.begin; oy < down.end; oy++) {
            const int64_t i = tap_at(p.y, oy, y), from = image * p.y.out + oy;
            if (i < 0) continue;
            const C *grads = see_pixels(p, p.out, from, p.x.out, c, n, buffer);
            const int32_t *places = place_room;
            each_run(p, from, p.x.out, c, n, [&](int64_t lane, int64_t count, int64_t at) {
                const int32_t *seen = see_places(p, at, count, place_room + lane);
                if (count == p.x.out * n)
                    places = seen;
                else if (seen != place_room + lane)
                    __builtin_memcpy(place_room + lane, seen, (size_t)count * sizeof *seen);
            });
            for (int64_t ox = 0; ox < p.x.out; ox++) {
                const Taps across = sliding_taps(p.x, ox);
                for (int64_t j = across.begin; j < across.end; j++)
                    add_where(grads + ox * n, places + ox * n, (int32_t)(i * p.x.kernel + j), n, 1,
                              sums + (across.first + j * p.x.dilation) * n);
            }
        }
        each_run(p, row, p.x.in, c, n, [&](int64_t lane, int64_t count, int64_t at) {
            give_run(p.dtype, sums + lane, count, p.in, at);
        });
    });
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
        yoke_status status = YOKE_OK;
        const auto run = [&]<class T>() {
            status = each_part<C>(
                launch, p, p.y.out, p.x.out,
                [&](int64_t i, int64_t c, int64_t n) { max_pixel<C, T>(p, i, c, n); },
                [&](int64_t i, C *room) { max_row<C>(p, i, room); });
        };
        if (!for_direct<C>(p.dtype, run)) run.template operator()<C>();
        return status;
    });
}

YOKE_KERNEL(_max_pool_backward)
{
    const yoke_operand *o = launch->operands;
    if (o[2].numel == 0) return YOKE_OK;
    const Pool p = kernels::max_pool_of(launch, o[2], o[0], o[1]);
    return in_floats(launch, "grad", p.dtype, [&]<class C>() {
        return each_row<C>(launch, p, p.y.in, p.x.in, [&](int64_t i, C *room) {
            p.is_nhwc ? max_gradient_pixels<C>(p, i, room) : max_gradient_row<C>(p, i, room);
        });
    });
}

YOKE_SIMD_END
