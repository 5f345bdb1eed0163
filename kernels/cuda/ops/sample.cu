// Draws by probabilities and weights. This file is compiled without contraction, as kernels/common/random_math.h asks.
// Bad weights are reported (fault.h), and the draw goes on with any index.
#include "core/backend/ops.inc"
#include "kernels/common/loss.h"
#include "kernels/common/sample.h"
#include "kernels/cuda/host/fault.h"
#include "kernels/cuda/ops/any_half.cuh"
#include "kernels/cuda/ops/draw.cuh"
#include "kernels/cuda/ops/rows.cuh"

YOKE_CUDA_BEGIN

static Reporter reporter_of(const yoke_launch *launch, int32_t op, const char *format)
{
    Reporter to = reporter(launch, format, YOKE_E_VALUE);
    to.op = op;
    return to;
}

static Reporter weight_reporter(const yoke_launch *launch, const char *format)
{
    return reporter_of(launch, YOKE_OP_MULTINOMIAL, format);
}

// ---- bernoulli ------------------------------------------------------------------------------------------------------

template <class T>
__global__ void __launch_bounds__(kThreads)
    happen(yoke_dtype dtype, const T *x, T *out, int64_t n, Draw draw, Reporter reporter)
{
    using C = compute_type<T>;
    constexpr int kDraws = kernels::Uniform<C>::kDraws;
    const uint64_t counter = draw.first();
    YOKE_NO_UNROLL
    for (int64_t block = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; block * kDraws < n;
         block += (int64_t)gridDim.x * blockDim.x) {
        C units[kDraws];
        kernels::Uniform<C>()(kernels::random_block(draw.seed, counter + (uint64_t)block), units);
        YOKE_UNROLL
        for (int k = 0; k < kDraws; k++) {
            const int64_t i = block * kDraws + k;
            if (i >= n) break;
            const C p = widen_as<T>(dtype, x[i]);
            if (!(p >= (C)0 && p <= (C)1)) report(reporter, i, 0, 0);
            out[i] = stored_as<T>(dtype, units[k] < p ? (C)1 : (C)0);
        }
    }
}

YOKE_KERNEL(_bernoulli)
{
    const yoke_operand &x = launch->operands[0], &out = launch->operands[1];
    if (x.numel == 0) return YOKE_OK;
    const int threads = block_size(kThreads);
    return for_float(launch, "x", x.dtype, [&]<class T>() {
        constexpr int kDraws = kernels::Uniform<compute_type<T>>::kDraws;
        return start(
            launch, happen<General<T>>,
            {blocks_for(launch, divide_up(x.numel, kDraws), threads, kDrawBlocks), threads},
            x.dtype, data_of<const General<T>>(x), data_of<General<T>>(out), x.numel,
            Draw(launch, launch->params),
            reporter_of(launch, YOKE_OP_BERNOULLI,
                        "%s: element %lld of x is not a probability between 0 and 1"));
    });
}

// ---- multinomial ----------------------------------------------------------------------------------------------------

// Finds the largest weight of each row, and reports bad rows.
template <class T>
__global__ void __launch_bounds__(kThreads)
    check_weights(yoke_dtype dtype, const T *x, int64_t rows, int64_t n, int64_t count,
                  compute_type<T> *largest, Reporter bad, Reporter few, int group)
{
    using C = compute_type<T>;
    const Member member(group);
    YOKE_NO_UNROLL
    for (int64_t first = (int64_t)blockIdx.x * member.groups(); first < rows;
         first += (int64_t)gridDim.x * member.groups()) {
        const int64_t row = first + member.number();
        C most = (C)0;
        int64_t above = 0;
        for (int64_t i = member.in_group; row < rows && i < n; i += group) {
            const C w = widen_as<T>(dtype, x[row * n + i]);
            if (!kernels::is_weight(w)) report(bad, i, row, 0);
            most = w > most ? w : most;
            above += w > (C)0;
        }
        most = reduce_group(most, group, (C)0, kernels::Larger());
        above = sum_group(above, group);
        if (member.in_group > 0 || row >= rows) continue;
        if (above < count) report(few, row, above, count);
        largest[row] = most;
    }
}

template <class T>
static yoke_status start_check(const yoke_launch *launch, const yoke_operand &x, int64_t count,
                               compute_type<T> *largest)
{
    const int64_t n = x.shape[1];
    int group = 1;
    while (group < kWarp && group < n) group *= 2;
    const int threads = block_size(kThreads);
    if (n > 8 * kWarp) group = threads;
    return start(
        launch, check_weights<General<T>>,
        {blocks_for(launch, x.shape[0], threads / group), threads}, x.dtype,
        data_of<const General<T>>(x), x.shape[0], n, count, largest,
        weight_reporter(launch, "%s: weight %lld of row %lld of x is not finite, or below 0"),
        weight_reporter(launch,
                        "%s: row %lld of x has %lld weights above 0; it needs %lld for this draw"),
        group);
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    race(yoke_dtype dtype, const T *x, int64_t numel, Split n, const compute_type<T> *largest,
         compute_type<T> *keys, Draw draw)
{
    using C = compute_type<T>;
    using Exponential = kernels::Exponential<C>;
    constexpr int kDraws = Exponential::kDraws;
    const Exponential exponential{(C)1};
    const uint64_t counter = draw.first();
    YOKE_NO_UNROLL
    for (int64_t block = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; block * kDraws < numel;
         block += (int64_t)gridDim.x * blockDim.x) {
        C drawn[kDraws];
        exponential(kernels::random_block(draw.seed, counter + (uint64_t)block), drawn);
        YOKE_UNROLL
        for (int k = 0; k < kDraws; k++) {
            const int64_t i = block * kDraws + k;
            if (i >= numel) break;
            keys[i] =
                kernels::race_key((C)widen_as<T>(dtype, x[i]), largest[n.quotient(i)], drawn[k]);
        }
    }
}

YOKE_KERNEL(_race)
{
    const yoke_operand &x = launch->operands[0], &out = launch->operands[1];
    const int64_t count = launch->params[0].v.i;
    if (x.numel == 0) return YOKE_OK;
    const int threads = block_size(kThreads);
    return for_float(launch, "x", x.dtype, [&]<class T>() {
        using C = compute_type<T>;
        constexpr int kDraws = kernels::Exponential<C>::kDraws;
        Scratch scratch(launch);
        if (const yoke_status status = scratch.reserve((uint64_t)x.shape[0] * sizeof(C)))
            return status;
        if (const yoke_status status = start_check<T>(launch, x, count, scratch.as<C>()))
            return status;
        return start(
            launch, race<General<T>>,
            {blocks_for(launch, divide_up(x.numel, kDraws), threads, kDrawBlocks), threads},
            x.dtype, data_of<const General<T>>(x), x.numel, Split(x.shape[1], x.numel),
            (const C *)scratch.as<C>(), data_of<C>(out), Draw(launch, launch->params + 1));
    });
}

// Adds up the weights of each chunk.
template <class T>
__global__ void add_chunks(const T *x, int64_t rows, int64_t n, Split chunks, double *ends)
{
    YOKE_NO_UNROLL
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < rows * chunks.length;
         i += (int64_t)gridDim.x * blockDim.x) {
        const int64_t row = chunks.quotient(i),
                      first = (i - row * chunks.length) * kernels::kWeightChunk;
        ends[i] = kernels::total_of(x + row * n + first, min(kernels::kWeightChunk, n - first));
    }
}

// Turns the sums of a row's chunks into sums from the row's start.
__global__ void add_ends(int64_t rows, int64_t chunks, double *ends, Reporter large)
{
    for (int64_t row = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; row < rows;
         row += (int64_t)gridDim.x * blockDim.x) {
        double sum = 0;
        for (int64_t k = 0; k < chunks; k++) ends[row * chunks + k] = sum += ends[row * chunks + k];
        if (sum == (double)kernels::kInfinity) report(large, row, 0, 0);
    }
}

template <class T>
__global__ void pick(const T *x, int64_t rows, int64_t n, Split count, int64_t chunks,
                     const double *ends, int64_t *out, Draw draw)
{
    const uint64_t counter = draw.first();
    YOKE_NO_UNROLL
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < rows * count.length;
         i += (int64_t)gridDim.x * blockDim.x) {
        const int64_t row = count.quotient(i);
        out[i] = kernels::index_at(kernels::unit_at(draw.seed, counter, i), x + row * n, n,
                                   ends + row * chunks);
    }
}

template <class T>
static yoke_status sample(const yoke_launch *launch, const yoke_operand &x, const yoke_operand &out)
{
    using C = compute_type<T>;
    const int64_t rows = x.shape[0], n = x.shape[1], count = out.shape[1],
                  chunks = divide_up(n, kernels::kWeightChunk);
    const int threads = block_size(kThreads);
    Scratch scratch(launch);
    if (const yoke_status status =
            scratch.reserve((uint64_t)(rows * (chunks + 1)) * sizeof(double)))
        return status;
    double *ends = scratch.as<double>();
    if (const yoke_status status = start_check<T>(launch, x, 1, (C *)(ends + rows * chunks)))
        return status;
    if (const yoke_status status =
            start(launch, add_chunks<T>, {blocks_for(launch, rows * chunks, threads), threads},
                  data_of<const T>(x), rows, n, Split(chunks, rows * chunks), ends))
        return status;
    if (const yoke_status status = start(
            launch, add_ends, {blocks_for(launch, rows, threads), threads}, rows, chunks, ends,
            weight_reporter(
                launch,
                "%s: the sum of row %lld of x is beyond the largest double; divide the weights")))
        return status;
    return start(launch, pick<T>, {blocks_for(launch, rows * count, threads), threads},
                 data_of<const T>(x), rows, n, Split(count, rows * count), chunks,
                 (const double *)ends, data_of<int64_t>(out), Draw(launch, launch->params + 1));
}

YOKE_KERNEL(_multinomial)
{
    const yoke_operand &x = launch->operands[0], &out = launch->operands[1];
    if (out.numel == 0) return YOKE_OK;
    return for_float(launch, "x", x.dtype, [&]<class T>() { return sample<T>(launch, x, out); });
}

YOKE_CUDA_END
