// _count_nonzero and _nonzero: the number of elements other than 0, and their places, row by row.
//
// Elements are counted by chunks in row-major order. The count before a chunk is the chunk's place in the result.
#include "kernels/cuda/host/fault.h"
#include "kernels/cuda/ops/extreme.cuh"
#include "kernels/cuda/ops/reduce.cuh"
#include "kernels/cuda/ops/scan.cuh"

YOKE_CUDA_BEGIN

// ---- counting -------------------------------------------------------------------------------------------------------

YOKE_KERNEL(_count_nonzero)
{
    const yoke_operand &x = launch->operands[0], &out = launch->operands[1];
    bool all[YOKE_MAX_NDIM];
    for (bool &axis : all) axis = true;
    return reduce<Words>(launch, ReduceAxes(x, out, all),
                         CountNonzero{nonzero_mask(x.dtype), true, true});
}

// ---- places ---------------------------------------------------------------------------------------------------------

struct NonzeroJob {
    Walk<1> x;
    int64_t chunk;       // elements; a multiple of what a block takes at a time
    bool is_contiguous;  // then places need no division
    bool packed;         // packs are read at once, too
    int dtype, size;     // data type and item size of x, whose elements are read as words
    uint64_t mask;       // the bits of an element that are not all 0
    int ndim;
    int64_t rows, step[2];  // rows of the result, and steps in elements
    int64_t *out;
};

constexpr int kFlags = kAtOnce<uint64_t>;

// Returns flags of the elements that a thread takes at a time, from i on and before `end`: bit k is for element i +
// k.
__device__ inline unsigned flags_at(const NonzeroJob &job, int64_t i, int64_t end)
{
    const char *data = job.x.data[0];
    unsigned flags = 0;
    if (job.packed && i + kFlags <= end) {
        Stored<Words, kFlags> stored;
        uint64_t x[kFlags];
        stored.load(data, job.size, i, kFlags / 2);
        stored.unpack(job.dtype, x);
        YOKE_UNROLL
        for (int k = 0; k < kFlags; k++) flags |= (unsigned)((x[k] & job.mask) != 0) << k;
        return flags;
    }
    for (int k = 0; k < kFlags && i + k < end; k++) {
        const char *at = job.is_contiguous ? data + (i + k) * job.size : job.x.at(i + k).data[0];
        const uint64_t x = value_at<Words>(at, job.dtype, job.size);
        flags |= (unsigned)((x & job.mask) != 0) << k;
    }
    return flags;
}

// Writes the number of each chunk's elements that are not 0 to before[chunk].
__global__ void count_chunks(NonzeroJob job, int64_t *before)
{
    const int64_t begin = blockIdx.x * job.chunk, end = min(job.x.numel, begin + job.chunk);
    int64_t found = 0;
    for (int64_t i = begin + (int)threadIdx.x * kFlags; i < end; i += (int)blockDim.x * kFlags)
        found += __popc(flags_at(job, i, end));
    found = reduce_block(found, (int64_t)0, [](int64_t a, int64_t b) { return a + b; });
    if (threadIdx.x == 0) before[blockIdx.x] = found;
}

// Replaces the counts by the sums before them, in a single block. If the sum of all differs from the count read by
// the host program, reports this.
__global__ void sum_chunks(int64_t *before, int64_t chunks, int64_t expected, Reporter reporter)
{
    const int64_t found = sum_in_place(before, chunks);
    if (threadIdx.x == 0 && found != expected) report(reporter, 0, found, expected);
}

__device__ inline void write_place(const NonzeroJob &job, int64_t number, int64_t row)
{
    const Walk<1> &x = job.x;
    for (int axis = 0; axis < job.ndim; axis++) {
        const int64_t rest = x.divisor[axis].divide(number, x.narrow);
        job.out[row * job.step[0] + (job.ndim - 1 - axis) * job.step[1]] =
            number - rest * x.shape[axis];
        number = rest;
    }
}

// Writes the coordinates of each chunk's elements that are not 0, in the rows from before[chunk] on.
__global__ void write_places(NonzeroJob job, const int64_t *before)
{
    const int64_t begin = blockIdx.x * job.chunk, end = min(job.x.numel, begin + job.chunk);
    int64_t row = before[blockIdx.x];
    for (int64_t first = begin; first < end; first += (int)blockDim.x * kFlags) {
        const int64_t i = first + (int)threadIdx.x * kFlags;
        const unsigned flags = flags_at(job, i, end);
        int total;
        int64_t mine = row + sum_before(__popc(flags), (int)blockDim.x, total);
        row += total;
        for (int k = 0; k < kFlags; k++)
            if (flags >> k & 1u && mine < job.rows) write_place(job, i + k, mine++);
    }
}

YOKE_KERNEL(_nonzero)
{
    const yoke_operand &x = launch->operands[0], &out = launch->operands[1];
    const int64_t threads = block_size(kThreads), expected = out.shape[0];
    if (x.numel == 0) return YOKE_OK;
    Loop<1> all_axes;
    kernels::plan_every_axis(all_axes, x);
    NonzeroJob job{Walk<1>(all_axes),
                   0,
                   is_contiguous(x),
                   is_contiguous(x) && is_aligned(x.data, pack_bytes(kFlags, dtype_size(x.dtype))),
                   as_format<Words>(x.dtype),
                   (int)dtype_size(x.dtype),
                   nonzero_mask(x.dtype),
                   (int)out.shape[1],
                   expected,
                   {out.strides[0], out.strides[1]},
                   data_of<int64_t>(out)};
    const Reporter to = reporter(
        launch,
        "%s: x changed while its elements were counted (%.0lld%lld are not 0, but there were %lld a moment ago); another stream or thread writes to x",
        YOKE_E_STATE);
    const int64_t round = threads * kFlags;
    job.chunk = divide_up(divide_up(x.numel, 2 * kReduceBlocks), round) * round;
    const int64_t chunks = divide_up(x.numel, job.chunk);
    Scratch scratch(launch);
    if (yoke_status status = scratch.reserve((uint64_t)chunks * sizeof(int64_t))) return status;
    int64_t *before = scratch.as<int64_t>();
    const Grid grid{chunks, (int)threads};
    if (yoke_status status = start(launch, count_chunks, grid, job, before)) return status;
    if (yoke_status status =
            start(launch, sum_chunks, {1, (int)threads}, before, chunks, expected, to))
        return status;
    return start(launch, write_places, grid, job, before);
}

YOKE_CUDA_END
