// Convolution and its gradients by Yoke's own kernels: products of matrices whose elements are gathered while tiles
// are filled.
#include "kernels/common/conv.h"
#include "kernels/cuda/host/cudnn/conv.h"
#include "kernels/cuda/ops/copy_strided.cuh"
#include "kernels/cuda/ops/halves.cuh"
#include "kernels/cuda/ops/tiles.cuh"

YOKE_CUDA_BEGIN

using kernels::Conv;
using kernels::ConvKind;
using kernels::Pixel;
using kernels::Sweep;
using kernels::Tap;

constexpr int64_t kFew = 8;  // channels of a group below which a thread computes an element

// ---- sweeps ---------------------------------------------------------------------------------------------------------

// Term of a thread within each kTileDepth terms. It moves from step to step without a division.
struct Term {
    Tap tap;
    int64_t channel;

    __device__ Term(const Sweep &s, int64_t number)
        : tap(sweep_tap(s, number / s.depth)), channel(number % s.depth)
    {
    }
    __device__ void go_on_by(const Sweep &s, int64_t n)
    {
        for (channel += n; channel >= s.depth; channel -= s.depth) go_on(s, tap);
    }
};

// Fills tiles with terms of a group: the pixels read by positions, and rows of the weight.
template <class T, class A, class B>
__device__ inline void load_terms(const Sweep &s, int64_t group, const Term &term,
                                  int64_t first_row, int64_t first_column,
                                  const Pixel (&pixels)[kTileEach], A &a_tile, B &b_tile)
{
    using C = compute_type<T>;
    const int row = (int)threadIdx.x / kSpread, column = (int)threadIdx.x % kSpread;
    const bool is_term = term.tap.y < s.y.taps;
    const T *from = (const T *)s.from + group * s.depth + term.channel,
            *weight = (const T *)s.weight + group * s.group_step + term.channel * s.depth_step;
    if (is_term) weight += window_at(s, term.tap);
    for (int i = 0; i < kTileEach; i++) {
        const int r = row + i * kSpread;
        const bool is_row = is_term && first_row + r < s.rows(),
                   is_column = is_term && first_column + r < s.columns;
        const int64_t at = is_row ? read_at(s, pixels[i], term.tap) : -1;
        a_tile[r * kTileStepA + column] = at < 0 ? C(0) : widen<T>(from[at]);
        b_tile[column * kTileStepB + r] =
            is_column ? widen<T>(weight[(first_column + r) * s.column_step]) : C(0);
    }
}

template <class T>
__device__ inline void write_sum(const Sweep &s, const Pixel &pixel, int64_t channel,
                                 compute_type<T> sum)
{
    const T *bias = (const T *)s.bias;
    if (bias) sum += widen<T>(bias[channel]);
    ((T *)s.to)[written_at(s, pixel) + channel] = store<T>(sum);
}

// Computes tiles of 64 positions by 64 channels of a group.
template <class T>
__global__ void __launch_bounds__(kTileThreads, kFitting<2, kTileThreads>)
    sweep_tiles(Sweep s, int64_t across)
{
    using C = compute_type<T>;
    YOKE_SHARED(C, a_tile, kTileSizeA);
    YOKE_SHARED(C, b_tile, kTileSizeB);
    const int row = (int)threadIdx.x / kSpread, column = (int)threadIdx.x % kSpread;
    const int64_t first_row = blockIdx.x / across * kTileSide,
                  first_column = blockIdx.x % across * kTileSide;
    Pixel pixels[kTileEach];
    for (int i = 0; i < kTileEach; i++)
        pixels[i] = sweep_position(s, first_row + row + i * kSpread);
    for (int64_t group = blockIdx.y; group < s.groups; group += gridDim.y) {
        TileSums<C> sums = {};
        Term term(s, column);
        for (int64_t depth = 0; depth < s.terms();
             depth += kTileDepth, term.go_on_by(s, kTileDepth)) {
            __syncthreads();
            load_terms<T>(s, group, term, first_row, first_column, pixels, a_tile, b_tile);
            __syncthreads();
            add_tile<C>(a_tile, b_tile, row, column, sums);
        }
        write_tile<C>(sums, first_row + row, first_column + column, s.rows(), s.columns,
                      [&](int64_t, int64_t q, int i, C sum) {
                          write_sum<T>(s, pixels[i], group * s.columns + q, sum);
                      });
    }
}

// Computes an element in each thread, for sweeps whose tiles would be almost empty. Neighbouring threads have
// channels of the same pixel.
template <class T>
__global__ void sweep_elements(Sweep s, int64_t count)
{
    using C = compute_type<T>;
    const int64_t channels = s.groups * s.columns;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * blockDim.x) {
        const int64_t channel = i % channels, group = channel / s.columns;
        const Pixel pixel = sweep_position(s, i / channels);
        const T *weight =
            (const T *)s.weight + group * s.group_step + channel % s.columns * s.column_step;
        C sum = C(0);
        Tap tap = {};
        for (int64_t k = 0; k < s.taps(); k++, go_on(s, tap)) {
            const int64_t at = read_at(s, pixel, tap);
            if (at < 0) continue;
            const T *from = (const T *)s.from + at + group * s.depth,
                    *matrix = weight + window_at(s, tap);
            for (int64_t j = 0; j < s.depth; j++)
                sum += widen<T>(from[j]) * widen<T>(matrix[j * s.depth_step]);
        }
        write_sum<T>(s, pixel, channel, sum);
    }
}

template <class T>
static yoke_status run_sweep(const yoke_launch *launch, const Sweep &s)
{
    if (s.columns < kFew || s.terms() == 0) {
        const int64_t count = s.rows() * s.groups * s.columns;
        const int threads = block_size(kThreads);
        return start(launch, sweep_elements<T>, {blocks_for(launch, count, threads), threads}, s,
                     count);
    }
    const int64_t down = divide_up(s.rows(), kTileSide), across = divide_up(s.columns, kTileSide);
    return start(launch, sweep_tiles<T>, {down * across, kTileThreads, 0, min(s.groups, 65535)}, s,
                 across);
}

// ---- the gradient by weight -----------------------------------------------------------------------------------------

// Operands of sums over positions: sums are [parts, terms, output channels].
struct WeightSums {
    Sweep sweep;
    const void *grad;
    void *sums;
    int64_t columns, terms, channels;  // the first two for a group, the last for all groups
    int64_t positions, length, parts;  // length is of a part
};

// Fills tiles with positions from `first` on, below `end`: gradients of a group's channels, and the terms for these
// gradients. Threads run along channels, which are dense in both operands.
template <class T, class A, class B>
__device__ inline void load_positions(const WeightSums &w, int64_t group, int64_t first,
                                      int64_t end, int64_t first_row, int64_t first_column,
                                      A &a_tile, B &b_tile)
{
    using C = compute_type<T>;
    const Sweep &s = w.sweep;
    const int along = (int)threadIdx.x % kTileSide;
    const int64_t term = first_column + along, channel = first_row + along;
    const T *grad = (const T *)w.grad + group * w.columns + channel,
            *from = (const T *)s.from + group * s.depth + term % s.depth;
    const Tap tap = sweep_tap(s, term / s.depth);
    for (int d = (int)threadIdx.x / kTileSide; d < kTileDepth; d += kTileThreads / kTileSide) {
        const int64_t p = first + d;
        const bool is_grad = p < end && channel < w.columns, is_term = p < end && term < w.terms;
        const int64_t at = is_term ? read_at(s, sweep_position(s, p), tap) : -1;
        a_tile[along * kTileStepA + d] = is_grad ? widen<T>(grad[p * w.channels]) : C(0);
        b_tile[d * kTileStepB + along] = at < 0 ? C(0) : widen<T>(from[at]);
    }
}

// Computes tiles of sums, 64 output channels of a group by 64 terms. A block has a part of the positions.
template <class T>
__global__ void __launch_bounds__(kTileThreads, kFitting<2, kTileThreads>)
    weight_tiles(WeightSums w, int64_t down, int64_t across)
{
    using C = compute_type<T>;
    YOKE_SHARED(C, a_tile, kTileSizeA);
    YOKE_SHARED(C, b_tile, kTileSizeB);
    const int row = (int)threadIdx.x / kSpread, column = (int)threadIdx.x % kSpread;
    const int64_t part = blockIdx.x / (down * across),
                  first_row = blockIdx.x / across % down * kTileSide,
                  first_column = blockIdx.x % across * kTileSide,
                  end = min(w.positions, (part + 1) * w.length);
    for (int64_t group = blockIdx.y; group < w.sweep.groups; group += gridDim.y) {
        TileSums<C> sums = {};
        for (int64_t p = part * w.length; p < end; p += kTileDepth) {
            __syncthreads();
            load_positions<T>(w, group, p, end, first_row, first_column, a_tile, b_tile);
            __syncthreads();
            add_tile<C>(a_tile, b_tile, row, column, sums);
        }
        write_tile<C>(sums, first_row + row, first_column + column, w.columns, w.terms,
                      [&](int64_t r, int64_t q, int, C sum) {
                          ((C *)w.sums)[(part * w.terms + q) * w.channels + group * w.columns + r] =
                              sum;
                      });
    }
}

// Computes the sum of an element over a part of the positions in each thread.
template <class T>
__global__ void weight_elements(WeightSums w, int64_t count)
{
    using C = compute_type<T>;
    const Sweep &s = w.sweep;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * blockDim.x) {
        const int64_t channel = i % w.channels, term = i / w.channels % w.terms,
                      begin = i / (w.channels * w.terms) * w.length,
                      end = min(w.positions, begin + w.length);
        const int64_t first = channel / w.columns * s.depth + term % s.depth;
        const Tap tap = sweep_tap(s, term / s.depth);
        Pixel pixel = sweep_position(s, begin);
        C sum = C(0);
        for (int64_t p = begin; p < end; p++, go_on(s, pixel)) {
            const int64_t at = read_at(s, pixel, tap);
            if (at >= 0)
                sum += widen<T>(((const T *)s.from)[at + first]) *
                       widen<T>(((const T *)w.grad)[p * w.channels + channel]);
        }
        ((C *)w.sums)[i] = sum;
    }
}

// Adds the parts of each element of the weight [out, in / groups, height, width] in order, and stores the weight.
template <class T>
__global__ void add_weight_parts(WeightSums w, T *weight, int64_t count)
{
    using C = compute_type<T>;
    const int64_t depth = w.sweep.depth, window = w.terms / depth;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * blockDim.x) {
        const int64_t rest = i % w.terms,
                      at = (rest % window * depth + rest / window) * w.channels + i / w.terms;
        C sum = C(0);
        for (int64_t part = 0; part < w.parts; part++)
            sum += ((const C *)w.sums)[part * count + at];
        weight[i] = store<T>(sum);
    }
}

template <class T>
static yoke_status sum_positions(const yoke_launch *launch, const WeightSums &w, int64_t down,
                                 int64_t across)
{
    if (w.columns >= kFew)
        return start(launch, weight_tiles<T>,
                     {down * across * w.parts, kTileThreads, 0, min(w.sweep.groups, 65535)}, w,
                     down, across);
    const int64_t count = w.parts * w.terms * w.channels;
    const int threads = block_size(kThreads);
    return start(launch, weight_elements<T>, {blocks_for(launch, count, threads), threads}, w,
                 count);
}

template <class T>
static yoke_status run_weight(const yoke_launch *launch, const Conv &c)
{
    constexpr int64_t kEnough = 512, kLeast = 256;  // blocks, positions of a part
    WeightSums w = {};
    w.sweep = kernels::forward_sweep(c);
    w.grad = c.out;
    w.columns = c.o / c.groups, w.terms = w.sweep.terms(), w.channels = c.o;
    w.positions = w.sweep.rows();
    const int64_t down = divide_up(w.columns, kTileSide), across = divide_up(w.terms, kTileSide),
                  tiles = down * across * c.groups, count = w.terms * w.channels;
    w.parts = max(1, min(divide_up(kEnough, tiles), w.positions / kLeast));
    w.length = divide_up(w.positions, w.parts);
    Scratch scratch(launch);
    if (const yoke_status status =
            scratch.reserve((uint64_t)(w.parts * count) * sizeof(compute_type<T>)))
        return status;
    w.sums = scratch.data();
    if (const yoke_status status = sum_positions<T>(launch, w, down, across)) return status;
    const int threads = block_size(kThreads);
    return start(launch, add_weight_parts<T>, {blocks_for(launch, count, threads), threads}, w,
                 (T *)c.weight, count);
}

// ---- entries --------------------------------------------------------------------------------------------------------

static yoke_status compute_conv(const yoke_launch *launch, ConvKind kind)
{
    if (launch->operands[launch->operand_count - 1].numel == 0) return YOKE_OK;
    const Conv conv = kernels::conv_of(launch, kind);
    bool done = false;
    const yoke_status status = cudnn_convolve(launch, conv, copy_operand, &done);
    if (status || done) return status;
    return for_float(launch, "x", conv.dtype, [&]<class T>() {
        if (kind == ConvKind::kWeight) return run_weight<T>(launch, conv);
        return each_sweep(conv, [&](const Sweep &sweep) { return run_sweep<T>(launch, sweep); });
    });
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

YOKE_CUDA_END
