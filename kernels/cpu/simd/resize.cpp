// Interpolation of planes over height and width, and its gradient, which gathers.
//
// A row is all lanes of a row of pixels: in NHWC a pixel has a lane for each channel, else one. Rows of x are first
// interpolated along the width. Two such rows, which the next row of the result mostly needs again, make a row of the
// result.
#include "kernels/common/resize.h"

#include "kernels/cpu/simd/halves.h"
#include "kernels/cpu/simd/share.h"

YOKE_SIMD_BEGIN

using kernels::Resize;
using kernels::ResizeAxis;
using kernels::Sample;

// Samples of the width in arrays of their own, for vectors.
template <class C>
struct Columns {
    int32_t *near, *far;  // lanes
    C *share;

    static int64_t bytes(int64_t n) { return n * (int64_t)(2 * sizeof(int32_t) + sizeof(C)); }
    Columns(void *memory, const ResizeAxis &a, int64_t lanes)
        : near((int32_t *)((C *)memory + a.out)), far(near + a.out), share((C *)memory)
    {
        for (int64_t o = 0; o < a.out; o++) {
            const Sample<C> sample = kernels::sample_of<C>(a, o);
            near[o] = (int32_t)(sample.near * lanes);
            far[o] = (int32_t)(sample.far * lanes);
            share[o] = sample.share;
        }
    }
};

// Returns the failure of rows whose lanes have no number of 32 bits.
static yoke_status check_row(const Resize &r)
{
    if (r.x.in <= INT32_MAX / r.lanes()) return YOKE_OK;
    return fail(YOKE_E_UNSUPPORTED,
                "interpolate: a row of x has %lld elements; this CPU kernel takes at most %lld",
                (long long)(r.x.in * r.lanes()), (long long)INT32_MAX);
}

// ---- the result ---------------------------------------------------------------------------------------------------

// Interpolates a row along the width: n pixels, each with `lanes` lanes.
template <class C>
static void blend_columns(const C *row, const Columns<C> &columns, int64_t n, int64_t lanes, C *to)
{
    const int32_t *near = columns.near, *far = columns.far;
    const C *share = columns.share;
    if (lanes == 1) {
#pragma omp simd
        for (int64_t o = 0; o < n; o++)
            to[o] = row[near[o]] * ((C)1 - share[o]) + row[far[o]] * share[o];
        return;
    }
    for (int64_t o = 0; o < n; o++, to += lanes) {
        const C *a = row + near[o], *b = row + far[o];
        const C of_far = share[o], of_near = (C)1 - of_far;
#pragma omp simd
        for (int64_t i = 0; i < lanes; i++) to[i] = a[i] * of_near + b[i] * of_far;
    }
}

template <class C>
static void blend_rows(const C *near, const C *far, C share, int64_t n, C *to)
{
    const C rest = (C)1 - share;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) to[i] = near[i] * rest + far[i] * share;
}

// The last two rows of x that were interpolated along the width.
template <class C>
class BlendedRows {
public:
    BlendedRows(const Resize &r, const Columns<C> &columns, C *room)
        : r_(r), columns_(columns), wide_(room), rows_{room + r.x.in * r.lanes(), nullptr}
    {
        rows_[1] = rows_[0] + r.x.out * r.lanes();
    }

    // Returns row y of a plane. Row `other`, if it is there, stays.
    const C *row(int64_t plane, int64_t y, int64_t other)
    {
        const int64_t number = plane * r_.y.in + y, kept = plane * r_.y.in + other;
        for (int k = 0; k < 2; k++)
            if (numbers_[k] == number) return rows_[k];
        const int place = numbers_[0] == kept ? 1 : 0;
        const int64_t length = r_.x.in * r_.lanes();
        const C *from = see_run(r_.dtype, r_.from, number * length, length, wide_);
        blend_columns(from, columns_, r_.x.out, r_.lanes(), rows_[place]);
        numbers_[place] = number;
        return rows_[place];
    }

private:
    const Resize &r_;
    const Columns<C> &columns_;
    C *wide_;
    C *rows_[2];
    int64_t numbers_[2] = {-1, -1};
};

// Returns the lanes that an interpolation needs for itself: a row of x, two and one of the result.
static int64_t room_of(const Resize &r)
{
    return (r.x.in + 3 * r.x.out) * r.lanes();
}

template <class C>
static void linear_rows(const Resize &r, const Columns<C> &columns, int64_t begin, int64_t end,
                        C *room)
{
    const int64_t length = r.x.out * r.lanes();
    BlendedRows<C> blended(r, columns, room);
    C *narrow = room + r.x.in * r.lanes() + 2 * length;
    const bool in_place = r.dtype == kernels::dtype_of<C>;
    for (int64_t row = begin; row < end; row++) {
        const int64_t plane = row / r.y.out;
        const Sample<C> sample = kernels::sample_of<C>(r.y, row - plane * r.y.out);
        const C *near = blended.row(plane, sample.near, sample.far),
                *far = blended.row(plane, sample.far, sample.near);
        C *to = in_place ? (C *)r.to + row * length : narrow;
        blend_rows(near, far, sample.share, length, to);
        if (!in_place) give_run(r.dtype, to, length, r.to, row * length);
    }
}

// Copies the nearest pixels of rows [begin, end) of the result.
template <class T>
static void nearest_rows(const Resize &r, const int32_t *columns, int64_t begin, int64_t end)
{
    const int64_t lanes = r.lanes(), from_length = r.x.in * lanes, length = r.x.out * lanes;
    int64_t last = -1;  // row of x that the row above has
    for (int64_t row = begin; row < end; row++) {
        const int64_t plane = row / r.y.out,
                      y = kernels::sample_of<float>(r.y, row - plane * r.y.out).near,
                      number = plane * r.y.in + y;
        T *to = (T *)r.to + row * length;
        if (number == last) {
            __builtin_memcpy(to, to - length, (size_t)length * sizeof(T));
            continue;
        }
        const T *from = (const T *)r.from + number * from_length;
        if (lanes == 1)
            for (int64_t o = 0; o < r.x.out; o++) to[o] = from[columns[o]];
        else
            for (int64_t o = 0; o < r.x.out; o++)
                __builtin_memcpy(to + o * lanes, from + columns[o], (size_t)lanes * sizeof(T));
        last = number;
    }
}

template <class C>
static yoke_status interpolate(const yoke_launch *launch, const Resize &r)
{
    if (const yoke_status status = check_row(r)) return status;
    const int64_t rows = r.planes() * r.y.out, length = r.x.out * r.lanes();
    const int64_t slots = team_size(), room = r.y.is_linear ? room_of(r) : 0;
    Scratch scratch(launch);
    if (const yoke_status status = scratch.reserve(
            (uint64_t)(Columns<C>::bytes(r.x.out) + slots * room * (int64_t)sizeof(C) + 64)))
        return status;
    // Shares of rooms stand first, so all are aligned.
    C *rooms = scratch.as<C>();
    const Columns<C> columns(rooms + slots * room, r.x, r.lanes());
    parallel_shares(
        rows, max(1, kGrain / length), slots, [&](int64_t begin, int64_t end, int slot) {
            if (r.y.is_linear) return linear_rows(r, columns, begin, end, rooms + slot * room);
            for_stored<C>(r.dtype,
                          [&]<class T>() { nearest_rows<T>(r, columns.near, begin, end); });
        });
    return YOKE_OK;
}

YOKE_KERNEL(_interpolate)
{
    const yoke_operand *o = launch->operands;
    if (o[1].numel == 0) return YOKE_OK;
    const Resize r = kernels::resize_of(launch, o[0], o[1]);
    return in_floats(launch, "x", r.dtype, [&]<class C>() { return interpolate<C>(launch, r); });
}

// ---- the gradient -------------------------------------------------------------------------------------------------

// Finds, for each position of x, the first position of the result whose near position is this one or a later one.
static void find_readers(const ResizeAxis &a, int64_t *first)
{
    int64_t next = 0;
    for (int64_t o = 0; o < a.out; o++) {
        const int64_t near = kernels::sample_of<double>(a, o).near;
        while (next <= near) first[next++] = o;
    }
    while (next <= a.in) first[next++] = a.out;
}

// Readers of each position of the width, if a pixel has one lane: tap k of position i is element index[k * in + i] of a
// row of the result. Positions with fewer readers read element `out` of the row, a zero.
template <class C>
struct Readers {
    static constexpr int64_t kMost = 16;
    int64_t taps;  // 0: too many
    int32_t *index;
    C *weight;

    static int64_t taps_of(const ResizeAxis &a, const int64_t *first)
    {
        int64_t most = 0;
        for (int64_t i = 0; i < a.in; i++) most = max(most, first[i + 1] - begin(a, first, i));
        return most <= kMost ? most : 0;
    }
    static int64_t bytes(const ResizeAxis &a, int64_t taps)
    {
        return taps * a.in * (int64_t)(sizeof(int32_t) + sizeof(C));
    }
    // Returns the first reader of position i.
    static int64_t begin(const ResizeAxis &a, const int64_t *first, int64_t i)
    {
        return first[a.is_linear && i > 0 ? i - 1 : i];
    }

    Readers(void *memory, const ResizeAxis &a, const int64_t *first, int64_t count)
        : taps(count), index((int32_t *)((C *)memory + count * a.in)), weight((C *)memory)
    {
        for (int64_t i = 0; i < a.in; i++)
            for (int64_t k = 0; k < count; k++) {
                const int64_t o = begin(a, first, i) + k, at = k * a.in + i;
                const bool reads = o < first[i + 1];
                index[at] = (int32_t)(reads ? o : a.out);
                weight[at] =
                    reads ? kernels::weight_of(kernels::sample_of<C>(a, o), (int32_t)i) : (C)0;
            }
    }

    void gather(const C *row, int64_t n, C *to) const
    {
        const int32_t *at = index;
        const C *by = weight;
        for (int64_t k = 0; k < taps; k++, at += n, by += n) {
#pragma omp simd
            for (int64_t i = 0; i < n; i++) to[i] += row[at[i]] * by[i];
        }
    }
};

// Adds the gradient of a row of the result to the row of x, along the width.
template <class C>
static void spread_columns(const C *row, const Columns<C> &columns, int64_t n, int64_t lanes,
                           bool is_linear, C *to)
{
    for (int64_t o = 0; o < n; o++, row += lanes) {
        C *near = to + columns.near[o], *far = to + columns.far[o];
        const C of_far = columns.share[o], of_near = (C)1 - of_far;
#pragma omp simd
        for (int64_t i = 0; i < lanes; i++) near[i] += row[i] * of_near;
        if (!is_linear) continue;
#pragma omp simd
        for (int64_t i = 0; i < lanes; i++) far[i] += row[i] * of_far;
    }
}

// Values that all rows of a gradient share.
template <class C>
struct Spreading {
    const Resize &r;
    const Columns<C> &columns;
    const Readers<C> &readers;
    const int64_t *first;  // readers of rows
};

// Computes a row of x's gradient: the weighted sum of the rows that read it, spread along the width.
template <class C>
static void gradient_row(const Spreading<C> &s, int64_t row, C *room)
{
    const Resize &r = s.r;
    const int64_t plane = row / r.y.in, y = row - plane * r.y.in, lanes = r.lanes();
    const int64_t length = r.x.out * lanes, to_length = r.x.in * lanes;
    C *sums = room, *buffer = sums + length + 1, *to = buffer + length;
    for (int64_t i = 0; i <= length; i++) sums[i] = (C)0;
    for (int64_t o = Readers<C>::begin(r.y, s.first, y); o < s.first[y + 1]; o++) {
        const C weight = kernels::weight_of(kernels::sample_of<C>(r.y, o), (int32_t)y);
        const C *grad = see_run(r.dtype, r.from, (plane * r.y.out + o) * length, length, buffer);
#pragma omp simd
        for (int64_t i = 0; i < length; i++) sums[i] += grad[i] * weight;
    }
    for (int64_t i = 0; i < to_length; i++) to[i] = (C)0;
    if (s.readers.taps)
        s.readers.gather(sums, to_length, to);
    else
        spread_columns(sums, s.columns, r.x.out, lanes, r.x.is_linear, to);
    give_run(r.dtype, to, to_length, r.to, row * to_length);
}

template <class C>
static yoke_status spread(const yoke_launch *launch, const Resize &r)
{
    if (const yoke_status status = check_row(r)) return status;
    const int64_t lanes = r.lanes(), rows = r.planes() * r.y.in;
    const int64_t slots = team_size(), room = (2 * r.x.out + r.x.in) * lanes + 1;
    Scratch numbers(launch), tables(launch), rooms(launch);
    if (const yoke_status status =
            numbers.reserve((uint64_t)(r.y.in + r.x.in + 2) * sizeof(int64_t)))
        return status;
    int64_t *down = numbers.as<int64_t>(), *across = down + r.y.in + 1;
    find_readers(r.y, down);
    find_readers(r.x, across);
    const int64_t taps = lanes == 1 ? Readers<C>::taps_of(r.x, across) : 0;
    const int64_t of_readers = divide_up(Readers<C>::bytes(r.x, taps), 64) * 64;
    if (const yoke_status status =
            tables.reserve((uint64_t)(of_readers + Columns<C>::bytes(r.x.out))))
        return status;
    if (const yoke_status status = rooms.reserve((uint64_t)(slots * room) * sizeof(C)))
        return status;
    const Readers<C> readers(tables.data(), r.x, across, taps);
    const Columns<C> columns(tables.as<char>() + of_readers, r.x, lanes);
    const Spreading<C> spreading{r, columns, readers, down};
    const int64_t work = max(1, r.y.out / r.y.in) * r.x.out * lanes + r.x.in * lanes;
    parallel_shares(rows, max(1, kGrain / work), slots, [&](int64_t begin, int64_t end, int slot) {
        for (; begin < end; begin++) gradient_row(spreading, begin, rooms.as<C>() + slot * room);
    });
    return YOKE_OK;
}

YOKE_KERNEL(_interpolate_backward)
{
    const yoke_operand *o = launch->operands;
    if (o[1].numel == 0) return YOKE_OK;
    Resize r = kernels::resize_of(launch, o[1], o[0]);
    r.is_nhwc = launch->params[5].v.i != 0;
    r.from = o[0].data, r.to = o[1].data;
    return in_floats(launch, "grad", r.dtype, [&]<class C>() { return spread<C>(launch, r); });
}

YOKE_SIMD_END
