// Random numbers: Philox counters, so that element i of a draw is the same whichever thread makes it. This file is
// compiled without contraction, as kernels/common/random_math.h asks.
#include "kernels/cuda/ops/draw.cuh"
#include "kernels/cuda/ops/map.cuh"

YOKE_CUDA_BEGIN

// Elements that a thread makes at once: whole blocks of the generator, at most two, and at most 16 bytes unless a block
// has more.
template <class T, class D>
inline constexpr int kDrawn = std::clamp(16 / (int)sizeof(T), D::kDraws, 2 * D::kDraws);

// Returns elements [unit * N, unit * N + N) of a draw.
template <class T, int N, class D>
__device__ inline Pack<T, N> draw_pack(const D &distribution, uint64_t seed, uint64_t first,
                                       int64_t unit)
{
    constexpr int kDraws = D::kDraws, kBlocks = N / kDraws;
    Pack<T, N> pack;
    YOKE_UNROLL
    for (int block = 0; block < kBlocks; block++) {
        typename D::Value values[kDraws];
        distribution(kernels::random_block(seed, first + (uint64_t)(unit * kBlocks + block)),
                     values);
        YOKE_UNROLL
        for (int k = 0; k < kDraws; k++) pack.at[block * kDraws + k] = convert<T>(values[k]);
    }
    return pack;
}

// Draws the elements of x. The walk counts x's elements in row-major order. A packed x is one aligned run.
template <class T, class D>
__global__ void __launch_bounds__(kThreads, kResident<T>)
    draw_elements(Walk<1> walk, bool is_packed, D distribution, Draw draw)
{
    constexpr int N = kDrawn<T, D>;
    const uint64_t first = draw.first();
    const int64_t units = divide_up(walk.numel, N), step = (int64_t)gridDim.x * blockDim.x;
    YOKE_NO_UNROLL
    for (int64_t unit = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; unit < units;
         unit += step) {
        Pack<T, N> pack = draw_pack<T, N>(distribution, draw.seed, first, unit);
        const int64_t at = unit * N;
        if constexpr (N * sizeof(T) <= 16)
            if (is_packed && at + N <= walk.numel) {
                store_pack<N>((T *)walk.data[0] + at, pack);
                continue;
            }
        // The elements move through the first place, because registers have no index.
        YOKE_NO_UNROLL
        for (int k = 0; k < N && at + k < walk.numel; k++) {
            *(T *)walk.at(at + k).data[0] = pack.at[0];
            YOKE_UNROLL
            for (int next = 1; next < N; next++) pack.at[next - 1] = pack.at[next];
        }
    }
}

// Type that writes the same bytes: signed bytes are written as bytes without a sign.
template <class T>
using Written = std::conditional_t<std::is_same_v<T, int8_t>, uint8_t, T>;

template <class T, class D>
static yoke_status draw_into(const yoke_launch *launch, const D &distribution,
                             const yoke_arg *seed_and_offset)
{
    constexpr int N = kDrawn<T, D>;
    const yoke_operand &x = launch->operands[0];
    if (x.numel == 0) return YOKE_OK;
    Loop<1> loop;
    kernels::plan_ordered<1>(loop, {&x}, 0, x.ndim);
    const bool is_packed = is_contiguous(x) && is_aligned(x.data, N * sizeof(T));
    const int threads = block_size(kThreads);
    return start(launch, draw_elements<T, D>,
                 {blocks_for(launch, divide_up(x.numel, N), threads, kDrawBlocks), threads},
                 Walk<1>(loop), is_packed, distribution, Draw(launch, seed_and_offset));
}

YOKE_KERNEL(_uniform)
{
    const double low = float_param(launch->params[0]), high = float_param(launch->params[1]);
    return for_float(launch, "x", launch->operands[0].dtype, [&]<class T>() {
        return draw_into<T>(launch, kernels::UniformBetween<T>(low, high), launch->params + 2);
    });
}

YOKE_KERNEL(_normal)
{
    return for_float(launch, "x", launch->operands[0].dtype, [&]<class T>() {
        using C = compute_type<T>;
        const kernels::ScaledNormal<T> draw{(C)float_param(launch->params[0]),
                                            (C)float_param(launch->params[1])};
        return draw_into<T>(launch, draw, launch->params + 2);
    });
}

YOKE_KERNEL(_exponential)
{
    return for_float(launch, "x", launch->operands[0].dtype, [&]<class T>() {
        const kernels::Exponential<T> draw{(compute_type<T>)float_param(launch->params[0])};
        return draw_into<T>(launch, draw, launch->params + 1);
    });
}

YOKE_KERNEL(_bernoulli_fill)
{
    const kernels::Keep draw = kernels::Keep::dropping(1 - float_param(launch->params[0]));
    return for_any(launch, "x", launch->operands[0].dtype, [&]<class T>() {
        using Byte = std::conditional_t<sizeof(T) == 1, uint8_t, T>;
        return draw_into<Byte>(launch, draw, launch->params + 1);
    });
}

YOKE_KERNEL(_randint)
{
    const kernels::UniformInteger draw{launch->params[0].v.i, launch->params[1].v.i};
    if (draw.low >= draw.high)
        return fail(YOKE_E_VALUE, 0,
                    "randint: low is %lld and high is %lld; low must be below high",
                    (long long)draw.low, (long long)draw.high);
    return for_any(launch, "x", launch->operands[0].dtype, [&]<class T>() {
        return draw_into<Written<T>>(launch, draw, launch->params + 2);
    });
}

// ---- permutation ------------------------------------------------------------------------------------------------
//
// Fisher and Yates' shuffle, from the last place: for i from n - 1 down, place i exchanges its value with place j(i)
// <= i. j(i) comes from element n - 1 - i of a draw of 64-bit words. The steps form a sequence, but the result of a
// step follows from the targets alone. Place p holds p until the first step (with the largest number) that targets p.
// After a step that targets p, place p holds the value that the step's own place held before. So the value taken by
// step i is
//    the value of place k before step k, where k > i is the smallest number with the target j(i); j(i) if there is no
//    k;
// and the value of place k before step k is
//    the value of place m before step m, where m > k is the smallest number with the target k; k if there is no m.
// Targets are spread evenly, so a place has about one step, and chains are short: all places are found at once.

struct Shuffle {
    Draw draw;
    int64_t n;
    int64_t
        *head;  // for each place: the steps with this target, as an unordered list; -1 is the end
    int64_t *link;  // for each step: the next step of its list
    int64_t *next;  // for each place k: the smallest step above k with target k, or -1

    __device__ int64_t target(int64_t i, const kernels::Words &block) const
    {
        const uint64_t word = kernels::word64(block, (int)((n - 1 - i) % 2));
        return (int64_t)kernels::multiply_high(word, (uint64_t)i + 1);
    }
    // Returns the smallest step above i in the list of a place, or -1.
    __device__ int64_t above(int64_t place, int64_t i) const
    {
        int64_t best = -1;
        for (int64_t k = head[place]; k >= 0; k = link[k])
            if (k > i && (best < 0 || k < best)) best = k;
        return best;
    }
};

__global__ void clear_lists(Shuffle shuffle)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < shuffle.n;
         i += (int64_t)gridDim.x * blockDim.x)
        shuffle.head[i] = -1;
}

__global__ void list_targets(Shuffle shuffle)
{
    const int64_t pairs = divide_up(shuffle.n, 2);
    const uint64_t first = shuffle.draw.first();
    for (int64_t pair = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; pair < pairs;
         pair += (int64_t)gridDim.x * blockDim.x) {
        const kernels::Words block =
            kernels::random_block(shuffle.draw.seed, first + (uint64_t)pair);
        const int64_t last = shuffle.n - 1 - 2 * pair;
        for (int64_t i = last; i >= 0 && i > last - 2; i--) {
            auto *head = (unsigned long long *)shuffle.head + shuffle.target(i, block);
            shuffle.link[i] = (int64_t)atomicExch(head, (unsigned long long)i);
        }
    }
}

__global__ void find_next(Shuffle shuffle)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < shuffle.n;
         i += (int64_t)gridDim.x * blockDim.x)
        shuffle.next[i] = shuffle.above(i, i);
}

__global__ void write_order(Shuffle shuffle, yoke_dtype dtype, char *x, int64_t step)
{
    const uint64_t first = shuffle.draw.first();
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < shuffle.n;
         i += (int64_t)gridDim.x * blockDim.x) {
        const uint64_t pair = (uint64_t)(shuffle.n - 1 - i) / 2;
        int64_t value = shuffle.target(i, kernels::random_block(shuffle.draw.seed, first + pair));
        for (int64_t k = shuffle.above(value, i); k >= 0; k = shuffle.next[k]) value = k;
        put_one<Anything>(dtype, x + i * step, value);
    }
}

YOKE_KERNEL(_randperm)
{
    const yoke_operand &x = launch->operands[0];
    const int64_t n = x.numel;
    if (n == 0) return YOKE_OK;
    Scratch scratch(launch);
    if (yoke_status status = scratch.reserve((uint64_t)n * 3 * sizeof(int64_t))) return status;
    int64_t *lists = scratch.as<int64_t>();
    const Shuffle shuffle{Draw(launch, launch->params), n, lists, lists + n, lists + 2 * n};
    const int threads = block_size(kThreads);
    const Grid grid{blocks_for(launch, n, threads, kDrawBlocks), threads};
    for (auto *kernel : {clear_lists, list_targets, find_next})
        if (yoke_status status = start(launch, kernel, grid, shuffle)) return status;
    return start(launch, write_order, grid, shuffle, x.dtype, data_of<char>(x),
                 kernels::step_of(x, 0, 1));
}

YOKE_CUDA_END
