// Convolution and its gradients: the choice of the method, and the sweeps computed as products of matrices.
#include "kernels/cpu/simd/conv.h"

#include "kernels/cpu/conv.h"
#include "kernels/cpu/simd/tile.h"

YOKE_SIMD_BEGIN

constexpr int64_t kTileRows = 96, kDepth = 256;  // kTileRows is a multiple of every kRows
constexpr int64_t kTileBytes = 1024;             // length of a row of the result's tile
constexpr int64_t kSpread = 16;                  // keeps rows of a power of two apart in the cache

// Cut of a sweep into tiles, with the memory of a tile in elements.
template <class C>
struct SweepTiling {
    int64_t rows, columns, depth, step;  // sizes of a tile; step between gathered rows
    int64_t down, across, panels;  // tiles of all rows and of a group's columns; panels of those
    int64_t panel_size, room;

    explicit SweepTiling(const Sweep &s)
    {
        rows = min(kTileRows, round_up(s.rows(), kRows));
        columns = min(kTileBytes / (int64_t)sizeof(C), round_up(s.columns, kWidth<C>));
        depth = min(kDepth, s.terms());
        step = depth + kSpread;
        down = divide_up(s.rows(), rows);
        across = divide_up(s.columns, columns);
        panels = divide_up(s.columns, kWidth<C>);
        panel_size = s.terms() * kWidth<C>;
        room = rows * (step + columns);
    }
};

// Packs a panel of a group's matrix of the weight: a row of kWidth columns for each term, with 0 beyond the group's
// columns.
template <class C>
static void pack_panel(const Sweep &s, const C *weight, int64_t group, int64_t panel, C *to)
{
    const int64_t first = panel * kWidth<C>, n = min(kWidth<C>, s.columns - first);
    weight += group * s.group_step + first * s.column_step;
    Tap tap = {};
    for (int64_t i = 0; i < s.taps(); i++, go_on(s, tap)) {
        const C *from = weight + window_at(s, tap);
        for (int64_t channel = 0; channel < s.depth; channel++, from += s.depth_step) {
            for (int64_t j = 0; j < n; j++) to[j] = from[j * s.column_step];
            for (int64_t j = n; j < kWidth<C>; j++) to[j] = (C)0;
            to += kWidth<C>;
        }
    }
}

// Gathers terms [begin, end) of `rows` positions from number `row` on, and adds rows of zeros up to a whole panel.
template <class C>
static void gather_rows(const Sweep &s, yoke_dtype dtype, const SweepTiling<C> &tiling,
                        int64_t group, int64_t row, int64_t rows, int64_t begin, int64_t end, C *to)
{
    Pixel pixel = sweep_position(s, row);
    int64_t i = 0;
    for (; i < rows; i++, go_on(s, pixel))
        gather_terms(s, dtype, pixel, group, begin, end, to + i * tiling.step);
    for (; i < round_up(rows, kRows); i++)
        __builtin_memset(to + i * tiling.step, 0, (size_t)(end - begin) * sizeof(C));
}

template <class C>
static void write_rows(const Sweep &s, yoke_dtype dtype, int64_t row, int64_t rows, int64_t channel,
                       int64_t columns, const C *bias, C *from, int64_t step)
{
    Pixel pixel = sweep_position(s, row);
    for (int64_t i = 0; i < rows; i++, from += step, go_on(s, pixel)) {
        for (int64_t j = 0; bias && j < columns; j++) from[j] += bias[channel + j];
        give_run(dtype, from, columns, s.to, written_at(s, pixel) + channel);
    }
}

// Operands common to all tiles of a sweep: panels of the weight, and the bias in C.
template <class C>
struct SweepOperands {
    const C *panels, *bias;
};

// Computes a whole tile of the result. Partial sums stay in `room` until all terms are added.
template <class C>
static void compute_tile(const Sweep &s, yoke_dtype dtype, const SweepTiling<C> &tiling,
                         const SweepOperands<C> &operands, int64_t index, C *room)
{
    const int64_t group = index / (tiling.down * tiling.across),
                  row = index / tiling.across % tiling.down * tiling.rows,
                  column = index % tiling.across * tiling.columns,
                  rows = min(tiling.rows, s.rows() - row),
                  columns = min(tiling.columns, s.columns - column);
    const C *panels =
        operands.panels + (group * tiling.panels + column / kWidth<C>)*tiling.panel_size;
    C *gathered = room, *result = room + tiling.rows * tiling.step;
    for (int64_t i = 0; i < tiling.rows * tiling.columns; i++) result[i] = (C)0;
    for (int64_t p = 0; p < s.terms(); p += tiling.depth) {
        const int64_t depth = min(tiling.depth, s.terms() - p);
        gather_rows(s, dtype, tiling, group, row, rows, p, p + depth, gathered);
        for (int64_t j = 0; j < columns; j += kWidth<C>)
            for (int64_t i = 0; i < rows; i += kRows)
                tile<Panel::kByRow, true>(
                    gathered + i * tiling.step, tiling.step,
                    panels + j / kWidth<C> * tiling.panel_size + p * kWidth<C>, kWidth<C>, depth,
                    result + i * tiling.columns + j, tiling.columns);
    }
    write_rows(s, dtype, row, rows, group * s.columns + column, columns, operands.bias, result,
               tiling.columns);
}

// Returns the memory of the operands, in elements: panels, the bias, and a weight that is widened first.
template <class C>
static int64_t operand_room(const Sweep &s, yoke_dtype dtype, const SweepTiling<C> &tiling)
{
    const bool is_stored = dtype == kernels::dtype_of<C>;
    return s.groups * (tiling.panels * tiling.panel_size + (s.bias ? s.columns : 0) +
                       (is_stored ? 0 : s.group_step));
}

template <class C>
static SweepOperands<C> prepare_operands(const Sweep &s, yoke_dtype dtype,
                                         const SweepTiling<C> &tiling, C *room)
{
    const int64_t channels = s.groups * s.columns, panels = s.groups * tiling.panels;
    C *bias = room + panels * tiling.panel_size, *wide = bias + (s.bias ? channels : 0);
    if (s.bias) take_run(dtype, s.bias, 0, channels, bias);
    const C *weight = see_run(dtype, s.weight, 0, s.groups * s.group_step, wide);
    parallel_shares(panels, max(1, kGrain / max(1, tiling.panel_size)),
                    [&](int64_t begin, int64_t end) {
                        for (; begin < end; begin++)
                            pack_panel(s, weight, begin / tiling.panels, begin % tiling.panels,
                                       room + begin * tiling.panel_size);
                    });
    return {room, s.bias ? bias : nullptr};
}

template <class C>
yoke_status sweep_tiles(const yoke_launch *launch, yoke_dtype dtype, const Sweep &s)
{
    const SweepTiling<C> tiling(s);
    const int64_t slots = team_size(), fixed = operand_room(s, dtype, tiling);
    Scratch scratch(launch);
    const int64_t total = fixed + slots * tiling.room;
    if (yoke_status status = scratch.reserve((uint64_t)total * sizeof(C))) return status;
    C *rooms = scratch.as<C>() + fixed;
    const SweepOperands<C> operands = prepare_operands(s, dtype, tiling, scratch.as<C>());
    const int64_t work = tiling.rows * tiling.columns * max(1, s.terms());
    parallel_shares(s.groups * tiling.down * tiling.across, max(1, kGrain / work), slots,
                    [&](int64_t begin, int64_t end, int slot) {
                        for (; begin < end; begin++)
                            compute_tile(s, dtype, tiling, operands, begin,
                                         rooms + slot * tiling.room);
                    });
    return YOKE_OK;
}

// ---- entries --------------------------------------------------------------------------------------------------------

template <class C>
static yoke_status compute_in(const yoke_launch *launch, const Conv &conv)
{
    const bool each = is_depthwise(conv);
    if (conv.kind == ConvKind::kWeight)
        return each ? weight_depthwise<C>(launch, conv) : weight_tiles<C>(launch, conv);
    return each_sweep(conv, [&](const Sweep &sweep) {
        return each ? sweep_depthwise<C>(launch, conv.dtype, sweep)
                    : sweep_tiles<C>(launch, conv.dtype, sweep);
    });
}

// Writes x of a part from the part's sums and the bias, so each element is rounded once.
static void add_bias(const Conv &part, const float *sums)
{
    constexpr int64_t kRun = 256;
    const int64_t pixels = part.n * part.h * part.w;
    float some[kRun], bias[kRun];
    for (int64_t channel = 0; channel < part.c; channel += kRun) {
        const int64_t n = min(kRun, part.c - channel);
        take_run(part.dtype, part.bias, channel, n, bias);
        for (int64_t i = 0; i < pixels; i++) {
            const int64_t at = i * part.c + channel;
            for (int64_t j = 0; j < n; j++) some[j] = sums[at + j] + bias[j];
            give_run(part.dtype, some, n, part.x, at);
        }
    }
}

// Largest number of multiplications for which Yoke's own loops compute, as for products (product.h).
constexpr double kSmall = 16 * 16 * 16;

static yoke_status compute_conv(const yoke_launch *launch, ConvKind kind)
{
    if (launch->operands[launch->operand_count - 1].numel == 0) return YOKE_OK;
    const Conv conv = kernels::conv_of(launch, kind);
    const Sweep sweep = kernels::forward_sweep(conv);
    if ((double)sweep.rows() * (double)sweep.terms() * (double)conv.o > kSmall) {
        bool done = false;
        if (yoke_status status = conv_onednn(launch, conv, add_bias, &done)) return status;
        if (done) return YOKE_OK;
    }
    return in_floats(launch, "x", conv.dtype,
                     [&]<class C>() { return compute_in<C>(launch, conv); });
}

YOKE_KERNEL(_conv)
{
    return compute_conv(launch, ConvKind::kForward);
}

YOKE_KERNEL(_conv_data)
{
    return compute_conv(launch, ConvKind::kData);
}

YOKE_KERNEL(_conv_weight)
{
    return compute_conv(launch, ConvKind::kWeight);
}

YOKE_SIMD_END
