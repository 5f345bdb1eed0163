// Ranks of elements along an axis: the place of the k-th smallest, and the longest run of equal neighbours. A row has a
// block.
#include "kernels/common/axis_rows.h"
#include "kernels/cuda/ops/sort_rows.cuh"

YOKE_CUDA_BEGIN

constexpr int kDigits = 256;  // values of a digit, and threads of a block

struct RankJob {
    SortRows s;
    int64_t k;
    bool nan_wins;
};

// Returns the largest key of the dtype. Of floats it is that of NaN.
__device__ inline uint64_t last_key(const SortRows &s)
{
    return s.size == 8 ? ~(uint64_t)0 : ((uint64_t)1 << 8 * s.size) - 1;
}

// Calls f(key, index) for the elements of a row, by the threads of the block.
template <class F>
__device__ inline void visit_keys(const SortRows &s, const char *row, const F &f)
{
    for (int64_t i = threadIdx.x; i < s.length; i += blockDim.x)
        f(s.key_at(row + i * s.step[0]), i);
}

// Finds the k-th smallest key, digit by digit from the first. `found` takes a digit, and the rank within it.
template <class Counts, class Found>
__device__ inline uint64_t find_key(const RankJob &job, const char *row, Counts &counts,
                                    Found &found)
{
    uint64_t prefix = 0, wanted = (uint64_t)job.k;
    for (int shift = 8 * job.s.size - 8; shift >= 0; shift -= 8) {
        for (int i = (int)threadIdx.x; i < kDigits; i += (int)blockDim.x) counts[i] = 0;
        __syncthreads();
        visit_keys(job.s, row, [&](uint64_t key, int64_t) {
            if (shift == 56 || (key ^ prefix) >> (shift + 8) == 0)
                shared_add(counts, (int64_t)(key >> shift & (kDigits - 1)), 1u);
        });
        __syncthreads();
        if (threadIdx.x == 0) {
            int digit = 0;
            for (; wanted > counts[digit]; digit++) wanted -= counts[digit];
            found[0] = (uint32_t)digit;
            found[1] = (uint32_t)wanted;
        }
        __syncthreads();
        prefix |= (uint64_t)found[0] << shift;
        wanted = found[1];
    }
    return prefix;
}

// Writes the first element with the wanted key, as an index, or as a value.
__global__ void __launch_bounds__(kDigits) find_ranks(RankJob job)
{
    YOKE_SHARED(uint32_t, counts, kDigits);
    YOKE_SHARED(uint32_t, found, 2);
    YOKE_SHARED(int64_t, first, kDigits);
    const SortRows &s = job.s;
    for (int64_t number = blockIdx.x; number < s.rows.numel; number += gridDim.x) {
        const Place<3> row = s.rows.at(number);
        if (threadIdx.x == 0) found[0] = 0;
        __syncthreads();
        if (job.nan_wins)
            visit_keys(s, row.data[0], [&](uint64_t key, int64_t) {
                if (key == last_key(s)) shared_add(found, 0, 1u);
            });
        __syncthreads();
        const bool has_nan = found[0] != 0;
        __syncthreads();
        const uint64_t wanted = has_nan ? last_key(s) : find_key(job, row.data[0], counts, found);
        int64_t mine = s.length;
        visit_keys(s, row.data[0], [&](uint64_t key, int64_t i) {
            if (key == wanted && i < mine) mine = i;
        });
        first[threadIdx.x] = mine;
        __syncthreads();
        if (threadIdx.x == 0) {
            for (int i = 1; i < (int)blockDim.x; i++) mine = min(mine, first[i]);
            if (s.has_values)
                s.put_value(row, 0, mine);
            else
                *(int64_t *)row.data[2] = mine;
        }
        __syncthreads();
    }
}

// Returns the rows of x along an axis beside a result of one element a row.
static SortRows rank_rows(const yoke_operand &x, const yoke_operand &out, int axis,
                          bool gives_value)
{
    const kernels::AxisRows<3> rows({&x, &out, &out}, axis);
    return {Walk<3>(rows.outer),
            {rows.step[0], 0, 0},
            rows.length,
            1,
            x.dtype,
            (int)dtype_size(x.dtype),
            false,
            gives_value};
}

static yoke_status find_rank(const yoke_launch *launch, const SortRows &s, int64_t k, bool nan_wins)
{
    if (s.length > (int64_t)UINT32_MAX)
        return fail(YOKE_E_VALUE, 0,
                    "%s: rows have %lld elements; the cuda kernel takes rows of at most %lld",
                    op_name(launch->op), (long long)s.length, (long long)UINT32_MAX);
    bool of_floats = false;
    (void)for_any(launch, "x", s.dtype, [&]<class T>() {
        of_floats = is_float<T>;
        return (yoke_status)YOKE_OK;
    });
    return start(launch, find_ranks, {blocks_for(launch, s.rows.numel, 1), block_size(kDigits)},
                 RankJob{s, k, nan_wins && of_floats});
}

// Parameters: k from 1 on, axis, nan_wins.
YOKE_KERNEL(_kth_place)
{
    const yoke_operand *o = launch->operands;
    const yoke_arg *p = launch->params;
    if (o[1].numel == 0) return YOKE_OK;
    return find_rank(launch, rank_rows(o[0], o[1], (int)p[1].v.i, false), p[0].v.i, p[2].v.i != 0);
}

YOKE_KERNEL(_median)
{
    const yoke_operand *o = launch->operands;
    return find_rank(launch, rank_rows(o[0], o[1], 0, true), (o[0].numel + 1) / 2, true);
}

// ---- runs -----------------------------------------------------------------------------------------------------------

// Returns where the run of equal elements begins that ends at `end`, in a sorted row. A NaN is a run of its own.
__device__ inline int64_t begin_of_run(const SortRows &s, const char *row, uint64_t key,
                                       int64_t end, bool of_floats)
{
    if (of_floats && key == last_key(s)) return end;
    int64_t low = 0, high = end;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (s.key_at(row + middle * s.step[0]) < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// Writes the last index of the first longest run of each sorted row.
__global__ void __launch_bounds__(kDigits) find_runs(SortRows s, bool of_floats)
{
    YOKE_SHARED(int64_t, lengths, kDigits);
    YOKE_SHARED(int64_t, ends, kDigits);
    for (int64_t number = blockIdx.x; number < s.rows.numel; number += gridDim.x) {
        const Place<3> row = s.rows.at(number);
        int64_t length = 0, end = 0;
        visit_keys(s, row.data[0], [&](uint64_t key, int64_t i) {
            const bool ends_here = i + 1 == s.length ||
                                   s.key_at(row.data[0] + (i + 1) * s.step[0]) != key ||
                                   (of_floats && key == last_key(s));
            if (!ends_here) return;
            const int64_t own = i + 1 - begin_of_run(s, row.data[0], key, i, of_floats);
            if (own <= length) return;
            length = own;
            end = i;
        });
        lengths[threadIdx.x] = length;
        ends[threadIdx.x] = end;
        __syncthreads();
        if (threadIdx.x == 0) {
            for (int i = 1; i < (int)blockDim.x; i++) {
                const int64_t other = lengths[i];
                if (other < length || (other == length && ends[i] >= end)) continue;
                length = other;
                end = ends[i];
            }
            *(int64_t *)row.data[2] = end;
        }
        __syncthreads();
    }
}

YOKE_KERNEL(_longest_run)
{
    const yoke_operand *o = launch->operands;
    if (o[1].numel == 0) return YOKE_OK;
    const SortRows s = rank_rows(o[0], o[1], (int)launch->params[0].v.i, false);
    bool of_floats = false;
    (void)for_any(launch, "x", s.dtype, [&]<class T>() {
        of_floats = is_float<T>;
        return (yoke_status)YOKE_OK;
    });
    return start(launch, find_runs, {blocks_for(launch, s.rows.numel, 1), block_size(kDigits)}, s,
                 of_floats);
}

YOKE_CUDA_END
