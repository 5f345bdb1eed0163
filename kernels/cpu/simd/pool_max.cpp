// Maxima of windows over height and width, and their gradient.
#include "kernels/cpu/simd/bf16_pairs.h"
#include "kernels/cpu/simd/pool.h"

YOKE_SIMD_BEGIN

// ---- lanes ----------------------------------------------------------------------------------------------------------

// Maxima of n lanes so far. A place below 0 means no value yet.
template <class C>
struct Best {
    C *value;
    int32_t *place;

    // Sets lanes from `begin` on to the state without a value.
    void start(int64_t begin, int64_t n) const
    {
        for (int64_t i = begin; i < n; i++) value[i] = -(C)__builtin_inf(), place[i] = -1;
    }
    // Compares lanes [begin, end) with the values of a tap, and keeps the better values with their taps. Lane i reads
    // from[i * step].
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
    // A lane without a value gets place 0. A byte pointer may alias other pointers, so a local copy makes the
    // compiler read best.place once.
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

// Returns n places from number `at` on: in place, or widened in the buffer.
static const int32_t *see_places(const Pool &p, int64_t at, int64_t n, int32_t *buffer)
{
    if (p.has_wide_places) return static_cast<const int32_t *>(p.places) + at;
    const uint8_t *from = static_cast<const uint8_t *>(p.places) + at;
    for (int64_t i = 0; i < n; i++) buffer[i] = from[i];
    return buffer;
}

// ---- max ------------------------------------------------------------------------------------------------------------

// Some taps of a window, each n values that lie together.
template <class T>
struct SeenTaps {
    static constexpr int64_t kMost = 64;
    const T *from[kMost];
    int32_t tap[kMost];
    int64_t count = 0;
};

// Finds the maxima of the first lanes of n, in vectors kept in registers. Returns the number of lanes.
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

// Computes channels [c, c + n) of a pixel of the result.
template <class C, class T>
static void max_pixel(const Pool &p, int64_t pixel, int64_t c, int64_t n)
{
    const int64_t row = pixel / p.x.out, ox = pixel - row * p.x.out, image = row / p.y.out,
                  oy = row - image * p.y.out;
    const Taps down = sliding_taps(p.y, oy), across = sliding_taps(p.x, ox);
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
    const int64_t x = across.first + across.begin * p.x.dilation, step = p.x.dilation * p.c;
    for (int64_t i = down.begin; i < down.end; i++) {
        const int64_t y = down.first + i * p.y.dilation;
        int64_t at = ((image * p.y.in + y) * p.x.in + x) * p.c + c;
        for (int64_t j = across.begin; j < across.end; j++, at += step) {
            if (taps.count == SeenTaps<T>::kMost) take();
            taps.from[taps.count] = static_cast<const T *>(p.in) + at;
            taps.tap[taps.count++] = (int32_t)(i * p.x.kernel + j);
        }
    }
    take();
    write_best(p, best, n, pixel * p.c + c);
}

// Computes a row of a plane of the result. `room` has space for a row of x.
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

// Adds from[i] to to[i * step] if places[i] is the tap.
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

// Some of the windows around a pixel: n gradients and places each, and the pixel's place among the window's taps.
template <class T, class P>
struct SeenWindows {
    static constexpr int64_t kMost = 64;
    const T *grads[kMost];
    const P *places[kMost];
    int32_t tap[kMost];
    int64_t count = 0;

    void see(const Pool &p, int64_t at, int32_t its_tap)
    {
        grads[count] = static_cast<const T *>(p.out) + at;
        places[count] = static_cast<const P *>(p.places) + at;
        tap[count++] = its_tap;
    }
};

// Computes, from lane i on, the sums of the gradients of windows whose maximum was the pixel.
template <class C, class T, class P>
static void sum_windows(const SeenWindows<T, P> &windows, int64_t i, int64_t n, C *sums)
{
    using Values = Vector<C>;
    using Places = decltype(Values() < Values());
    constexpr int64_t kWidth = sizeof(Values) / sizeof(C);
    for (; i + kWidth <= n; i += kWidth) {
        Values sum = Values();
        for (int64_t k = 0; k < windows.count; k++) {
            const Values grad = load_vector<Values>(windows.grads[k] + i);
            const Places place = load_integers<Places>(windows.places[k] + i);
            sum += place == Places() + windows.tap[k] ? grad : Values();
        }
        *(Values *)(sums + i) = sum;
    }
    for (; i < n; i++) {
        C sum = (C)0;
        for (int64_t k = 0; k < windows.count; k++)
            sum += windows.places[k][i] == windows.tap[k] ? convert<C>(windows.grads[k][i]) : (C)0;
        sums[i] = sum;
    }
}

// Writes the gradient of a pixel, for the first lanes, in pairs of bf16. `windows` has all windows that hold the
// pixel. Returns the number of lanes.
static int64_t give_pairs(const SeenWindows<bf16, uint8_t> &windows, int64_t n, bf16 *to)
{
    int64_t i = 0;
    for (; i + Bf16Pairs::kCount <= n; i += Bf16Pairs::kCount) {
        Bf16Pairs sums;
        for (int64_t k = 0; k < windows.count; k++) {
            const Halves place = load_integers<Halves>(windows.places[k] + i);
            const Halves grad = *(const Halves *)(windows.grads[k] + i);
            sums.add(place == Halves() + (uint16_t)windows.tap[k] ? grad : Halves());
        }
        *(Halves *)(to + i) = sums.rounded();
    }
    return i;
}

// Returns the windows that may hold the next position, without a division.
static Windows next_windows(const PoolAxis &a, const Windows &windows, int64_t i)
{
    const int64_t last = i + a.padding, first = last - (a.kernel - 1) * a.dilation;
    return {windows.begin + (first > windows.begin * a.stride),
            windows.end + (windows.end < a.out && windows.end * a.stride <= last)};
}

// Returns the distance between two windows that hold the same position.
static int64_t windows_apart(const PoolAxis &a)
{
    int64_t divisor = a.stride;
    for (int64_t rest = a.dilation; rest != 0;) {
        const int64_t next = divisor % rest;
        divisor = rest, rest = next;
    }
    return a.dilation / divisor;
}

// Returns the first of these windows that holds i, or the end of the windows.
static int64_t first_holding(const PoolAxis &a, const Windows &windows, int64_t i)
{
    int64_t o = windows.begin;
    if (a.dilation == 1) return o;
    if (a.stride == 1) return o + (i + a.padding - o) % a.dilation;
    while (o < windows.end && tap_at(a, o, i) < 0) o++;
    return o;
}

// Computes channels [c, c + n) of a row of x's gradient, NHWC.
template <class C, class T, class P>
static void max_gradient_pixels(const Pool &p, int64_t row, int64_t c, int64_t n)
{
    const int64_t image = row / p.y.in, y = row - image * p.y.in,
                  first = image * p.y.out * p.x.out * p.c + c;
    const int64_t apart_y = windows_apart(p.y), apart_x = windows_apart(p.x);
    const Windows down = sliding_windows(p.y, y);
    const int64_t first_y = first_holding(p.y, down, y);
    Windows across = sliding_windows(p.x, 0);
    for (int64_t x = 0; x < p.x.in; x++) {
        if (x > 0) across = next_windows(p.x, across, x);
        C sums[kLanes];
        double totals[kLanes];  // sums over the windows before the last batch
        SeenWindows<T, P> windows;
        bool is_first = true;
        const int64_t first_x = first_holding(p.x, across, x);
        for (int64_t oy = first_y; oy < down.end; oy += apart_y) {
            const int64_t tap = tap_at(p.y, oy, y) * p.x.kernel, start = first + oy * p.x.out * p.c;
            for (int64_t ox = first_x; ox < across.end; ox += apart_x) {
                if (windows.count == SeenWindows<T, P>::kMost) {
                    sum_windows(windows, 0, n, sums);
                    for (int64_t i = 0; i < n; i++)
                        totals[i] = (double)sums[i] + (is_first ? 0 : totals[i]);
                    windows.count = 0, is_first = false;
                }
                windows.see(p, start + ox * p.c, (int32_t)(tap + tap_at(p.x, ox, x)));
            }
        }
        const int64_t at = (row * p.x.in + x) * p.c + c;
        int64_t given = 0;
        if constexpr (std::is_same_v<T, bf16> && sizeof(P) == 1)
            if (is_first) given = give_pairs(windows, n, static_cast<bf16 *>(p.in) + at);
        if (given == n) continue;
        sum_windows(windows, given, n, sums);
        if (!is_first)
            for (int64_t i = 0; i < n; i++) sums[i] = (C)(totals[i] + (double)sums[i]);
        give_run(p.dtype, sums + given, n - given, p.in, at + given);
    }
}

// Computes a row of a plane of x's gradient. `room` has space for the row, for a row of the result's gradient, and
// more.
template <class C>
static void max_gradient_row(const Pool &p, int64_t row, C *room)
{
    const int64_t plane = row / p.y.in, y = row % p.y.in;
    const Windows down = sliding_windows(p.y, y), across = taps_of_lanes(p.x, 0, p.x.out);
    const bool many = adds_many(p);  // then each row of windows has a sum of its own
    C *sums = room, *buffer = room + p.x.in, *totals = buffer + 2 * p.x.out;
    int32_t *place_room = reinterpret_cast<int32_t *>(buffer + p.x.out);
    for (int64_t i = 0; i < p.x.in; i++) sums[i] = totals[i] = (C)0;
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
        if (many)
            for (int64_t k = 0; k < p.x.in; k++) totals[k] += sums[k], sums[k] = (C)0;
    }
    give_run(p.dtype, many ? totals : sums, p.x.in, p.in, row * p.x.in);
}

// ---- entries --------------------------------------------------------------------------------------------------------

template <class C>
static yoke_status max_pool(const yoke_launch *launch, const Pool &p)
{
    yoke_status status = YOKE_OK;
    for_stored<C>(p.dtype, [&]<class T>() {
        status = each_part<C>(
            launch, p, p.y.out, p.x.out,
            [&](int64_t i, int64_t c, int64_t n) { max_pixel<C, T>(p, i, c, n); },
            [&](int64_t i, C *room) { max_row<C>(p, i, room); });
    });
    return status;
}

template <class C, class P>
static yoke_status max_gradient(const yoke_launch *launch, const Pool &p)
{
    if (!p.is_nhwc)
        return each_row<C>(launch, p, p.y.in, p.x.in,
                           [&](int64_t i, C *room) { max_gradient_row<C>(p, i, room); });
    const int64_t work = p.x.in * p.c * work_of(p, p.y.in, p.x.in);
    for_stored<C>(p.dtype, [&]<class T>() {
        parallel_shares(p.n * p.y.in, max(1, kGrain / work), [&](int64_t begin, int64_t end) {
            for (; begin < end; begin++)
                each_piece(p.c, [&](int64_t c, int64_t n) {
                    max_gradient_pixels<C, T, P>(p, begin, c, n);
                });
        });
    });
    return YOKE_OK;
}

YOKE_KERNEL(_max_pool)
{
    const yoke_operand *o = launch->operands;
    if (o[1].numel == 0) return YOKE_OK;
    const Pool p = kernels::max_pool_of(launch, o[0], o[1], o[2]);
    return in_floats(launch, "x", p.dtype, [&]<class C>() { return max_pool<C>(launch, p); });
}

YOKE_KERNEL(_max_pool_backward)
{
    const yoke_operand *o = launch->operands;
    if (o[2].numel == 0) return YOKE_OK;
    const Pool p = kernels::max_pool_of(launch, o[2], o[0], o[1]);
    return in_floats(launch, "grad", p.dtype, [&]<class C>() {
        return p.has_wide_places ? max_gradient<C, int32_t>(launch, p)
                                 : max_gradient<C, uint8_t>(launch, p);
    });
}

YOKE_SIMD_END
