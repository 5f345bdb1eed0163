// _count_nonzero and _nonzero: how many elements are not 0, and where they are, row by row.
//
// Elements are counted by chunks in row-major order; what was found before a chunk is where it writes.
#include "kernels/cuda/extreme.cuh"
#include "kernels/cuda/fault.h"
#include "kernels/cuda/reduce.cuh"

YOKE_CUDA_BEGIN

// ---- counting --------------------------------------------------------------------------------------------------------

template <class T>
struct CountNonzero {
    using Element = int32_t;
    using State = int64_t;
    T mask;
    __device__ Element element(T x) const { return (x & mask) != 0; }
    __device__ State init() const { return 0; }
    __device__ State reduce(State s, Element x, int64_t) const { return s + x; }
    __device__ State combine(State a, State b) const { return a + b; }
    __device__ void put(char *out, State s) const { *(int64_t *)out = s; }
};

YOKE_KERNEL(_count_nonzero)
{
    const yoke_operand &x = launch->operands[0], &out = launch->operands[1];
    bool all[YOKE_MAX_NDIM];
    for (bool &axis : all) axis = true;
    return for_size(launch, "x", dtype_size(x.dtype), [&]<class T>() {
        return reduce<T>(launch, ReduceAxes(x, out, all),
                         CountNonzero<T>{nonzero_mask<T>(x.dtype)});
    });
}

// ---- places ----------------------------------------------------------------------------------------------------------

// Every axis of x, also those of length 1, the last one first; their lengths tell an element's coordinates.
static Loop<1> all_axes(const yoke_operand &x)
{
    Loop<1> loop;
    loop.data[0] = data_of<char>(x);
    loop.numel = x.numel;
    loop.ndim = (int)max(x.ndim, 1);
    loop.shape[0] = 1;
    loop.stride[0][0] = 0;
    for (int axis = 0; axis < x.ndim; axis++) {
        loop.shape[x.ndim - 1 - axis] = x.shape[axis];
        loop.stride[x.ndim - 1 - axis][0] = step_of(x, axis, x.ndim);
    }
    return loop;
}

struct NonzeroJob {
    Walk<1> x;
    int64_t chunk;       // elements; a multiple of the block
    bool is_contiguous;  // then places need no division
    int ndim;
    int64_t rows, step[2];  // of the result, in elements
    int64_t *out;
};

template <class T>
__device__ inline bool is_nonzero_at(const NonzeroJob &job, T mask, int64_t i, int64_t end)
{
    if (i >= end) return false;
    const char *at =
        job.is_contiguous ? job.x.data[0] + i * (int64_t)sizeof(T) : job.x.at(i).data[0];
    return (*(const T *)at & mask) != 0;
}

// before[chunk] = how many it holds.
template <class T>
__global__ void count_chunks(NonzeroJob job, T mask, int64_t *before)
{
    const int64_t begin = blockIdx.x * job.chunk, end = min(job.x.numel, begin + job.chunk);
    int64_t found = 0;
    YOKE_UNROLL
    for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x)
        found += is_nonzero_at(job, mask, i, end);
    found = reduce_block(found, (int64_t)0, [](int64_t a, int64_t b) { return a + b; });
    if (threadIdx.x == 0) before[blockIdx.x] = found;
}

// How many of the block's threads before this one say yes; `total` becomes how many of all.
__device__ inline int rank_of(bool yes, int &total)
{
    YOKE_SHARED(int, counts, kWarp);
    const unsigned votes = __ballot_sync(kAllLanes, yes);
    const int lane = lane_of_thread(), warps = (int)blockDim.x / kWarp;
    __syncthreads();  // of what an earlier call may still be reading
    if (lane == 0) counts[warp_of_thread()] = __popc(votes);
    __syncthreads();
    int rank = __popc(votes & ((1u << lane) - 1));
    total = 0;
    for (int warp = 0; warp < warps; warp++) {
        const int count = counts[warp];
        rank += warp < warp_of_thread() ? count : 0;
        total += count;
    }
    return rank;
}

// The counts become the sums before them; one block. What the host was told of is held against what is there now.
__global__ void sum_chunks(int64_t *before, int64_t chunks, int64_t expected, Reporter reporter)
{
    YOKE_SHARED(int64_t, sums, kWarp);
    const int lane = lane_of_thread(), warp = warp_of_thread(), warps = (int)blockDim.x / kWarp;
    int64_t sum = 0;
    for (int64_t first = 0; first < chunks; first += blockDim.x) {
        const int64_t i = first + threadIdx.x, own = i < chunks ? before[i] : 0;
        int64_t through = own;
        for (int distance = 1; distance < kWarp; distance *= 2) {
            const int64_t other = __shfl_up_sync(kAllLanes, through, (unsigned)distance);
            if (lane >= distance) through += other;
        }
        __syncthreads();  // of the round before
        if (lane == kWarp - 1) sums[warp] = through;
        __syncthreads();
        int64_t of_warps = 0, all = 0;
        for (int w = 0; w < warps; w++) {
            const int64_t of_warp = sums[w];
            of_warps += w < warp ? of_warp : 0;
            all += of_warp;
        }
        if (i < chunks) before[i] = sum + of_warps + through - own;
        sum += all;
    }
    if (threadIdx.x == 0 && sum != expected) report(reporter, 0, sum, expected);
}

// The coordinates of what a chunk holds, in the rows from before[chunk] on.
template <class T>
__global__ void write_places(NonzeroJob job, T mask, const int64_t *before)
{
    const int64_t begin = blockIdx.x * job.chunk, end = min(job.x.numel, begin + job.chunk);
    int64_t row = before[blockIdx.x];
    for (int64_t first = begin; first < end; first += blockDim.x) {
        const int64_t i = first + threadIdx.x;
        const bool yes = is_nonzero_at(job, mask, i, end);
        int total;
        const int64_t mine = row + rank_of(yes, total);
        row += total;
        if (!yes || mine >= job.rows) continue;
        int64_t number = i;
        for (int axis = 0; axis < job.ndim; axis++) {
            const Walk<1> &x = job.x;
            const int64_t rest = x.narrow ? (int64_t)x.divisor[axis].divide((uint32_t)number)
                                          : number / x.shape[axis];
            job.out[mine * job.step[0] + (job.ndim - 1 - axis) * job.step[1]] =
                number - rest * x.shape[axis];
            number = rest;
        }
    }
}

YOKE_KERNEL(_nonzero)
{
    const yoke_operand &x = launch->operands[0], &out = launch->operands[1];
    const int64_t threads = block_size(kThreads), expected = out.shape[0];
    if (x.numel == 0) return YOKE_OK;
    NonzeroJob job{Walk<1>(all_axes(x)),
                   divide_up(divide_up(x.numel, kReduceBlocks), threads) * threads,
                   is_contiguous(x),
                   (int)out.shape[1],
                   expected,
                   {out.strides[0], out.strides[1]},
                   data_of<int64_t>(out)};
    job.chunk = max(job.chunk, 8 * threads);
    const int64_t chunks = divide_up(x.numel, job.chunk);
    Scratch scratch(launch);
    if (yoke_status status = scratch.reserve((uint64_t)chunks * sizeof(int64_t))) return status;
    int64_t *before = scratch.as<int64_t>();
    const Reporter to =
        reporter(launch,
                 "%s: x changed while its elements were counted (%.0lld%lld are not 0, but there "
                 "were %lld a moment ago); another stream or thread writes to x");
    return for_size(launch, "x", dtype_size(x.dtype), [&]<class T>() {
        const T mask = nonzero_mask<T>(x.dtype);
        const Grid grid{chunks, (int)threads};
        if (yoke_status status = start(launch, count_chunks<T>, grid, job, mask, before))
            return status;
        if (yoke_status status =
                start(launch, sum_chunks, {1, (int)threads}, before, chunks, expected, to))
            return status;
        return start(launch, write_places<T>, grid, job, mask, before);
    });
}

YOKE_CUDA_END
