// cumsum along any axis, in either direction.
//
// Rows along the axis are scanned tile by tile; each thread has a few neighbouring elements. Columns side by side
// have a thread each. If there are few rows or columns, each is cut into items. The items' totals are added first,
// then each item is scanned from the sum of the earlier items.
#include "kernels/common/scan.h"
#include "kernels/cuda/ops/scan.cuh"
#include "kernels/cuda/ops/walk.cuh"

YOKE_CUDA_BEGIN

using kernels::scan_result;
using kernels::scan_sum;
using kernels::scan_type;
using kernels::stride_size;

// Returns the term of an element. `of_bools`: T is uint8_t and x a bool, of which any byte but 0 counts 1.
template <class T>
__device__ inline scan_type<T> scan_term(T x, bool of_bools)
{
    if constexpr (std::is_same_v<T, uint8_t>)
        return of_bools ? (uint64_t)(x != 0) : (uint64_t)x;
    else
        return kernels::scan_term(x);
}

// Elements of a row that a thread takes at a time.
template <class T>
constexpr int kScanLength = sizeof(T) == 1 ? 8 : 16 / (int)sizeof(T);

struct ScanJob {
    Walk<2> rows;  // out, x; at the first element of the direction
    int64_t length, step[2];
    int64_t items, item;  // items of a row, and their length
    int group;            // threads of an item: a power of two up to the warp, or the block
    bool packed;          // x goes a thread's elements at a time, and out where it is as wide
    bool of_bools;        // see scan_term
};

// Elements of a thread at a time: N elements of a row, of which `count` exist.
template <class T, int N>
struct ScanReader {
    using S = scan_type<T>;
    Pack<T, N> loaded;
    int count;

    __device__ void read(const ScanJob &job, const char *x, int64_t i, int64_t end)
    {
        count = (int)max(0, min(N, end - i));
        if (count == N && job.packed) {
            loaded = load_pack<N>((const T *)x + i);
            return;
        }
        YOKE_UNROLL
        for (int k = 0; k < N; k++)
            loaded.at[k] = k < count ? *(const T *)(x + (i + k) * job.step[1]) : T{};
    }

    __device__ S total(const ScanJob &job) const
    {
        S sum = 0;
        YOKE_UNROLL
        for (int k = 0; k < N; k++) sum = sum + scan_term(loaded.at[k], job.of_bools);
        return sum;
    }

    __device__ void write(const ScanJob &job, char *out, int64_t i, S sum) const
    {
        using R = scan_result<T>;
        Pack<R, N> scanned;
        YOKE_UNROLL
        for (int k = 0; k < N; k++)
            scanned.at[k] = scan_sum<T>(sum = sum + scan_term(loaded.at[k], job.of_bools));
        if constexpr (sizeof(R) == sizeof(T)) {
            if (count == N && job.packed) {
                store_pack<N>((R *)out + i, scanned);
                return;
            }
        }
        YOKE_UNROLL
        for (int k = 0; k < N; k++)
            if (k < count) *(R *)(out + (i + k) * job.step[0]) = scanned.at[k];
    }
};

// Scans items. If `totals_only`, writes totals[row * items + item] of every item; else `totals` has the sums before
// each item (null: a single item).
template <class T>
__global__ void scan_rows(ScanJob job, scan_type<T> *totals, bool totals_only)
{
    using S = scan_type<T>;
    constexpr int N = kScanLength<T>;
    const int in_group = (int)threadIdx.x % job.group, per_block = (int)blockDim.x / job.group;
    const int64_t count = job.rows.numel * job.items, tile = (int64_t)job.group * N;
    for (int64_t first = (int64_t)blockIdx.x * per_block; first < count;
         first += (int64_t)gridDim.x * per_block) {
        const int64_t index = first + (int)threadIdx.x / job.group;
        const bool inside = index < count;
        const int64_t row = inside ? index / job.items : 0;
        const int64_t begin = inside ? (index - row * job.items) * job.item : 0;
        const int64_t end = inside ? min(job.length, begin + job.item) : 0;
        const Place<2> place = job.rows.at(row);
        S sum = 0;
        if (totals && !totals_only && inside) sum = totals[index];
        ScanReader<T, N> now, next;
        int64_t i = begin + in_group * N;
        next.read(job, place.data[1], i, end);
        // As many rounds for every group of a block, which meets in each.
        for (int64_t round = 0; round < job.item; round += tile, i += tile) {
            now = next;
            next.read(job, place.data[1], i + tile, end);  // while this one is added up
            S all;
            const S before = sum_before(now.total(job), job.group, all);
            if (!totals_only) now.write(job, place.data[0], i, sum + before);
            sum = sum + all;
        }
        if (totals_only && inside && in_group == 0) totals[index] = sum;
    }
}

// Replaces each row's totals by the sums before them. A row has a block.
template <class S>
__global__ void scan_totals(S *totals, int64_t items)
{
    sum_in_place(totals + (int64_t)blockIdx.x * items, items);
}

// Scans items, like scan_rows, with a thread for each item of each row. Neighbouring threads have neighbouring rows.
template <class T>
__global__ void scan_columns(ScanJob job, scan_type<T> *totals, bool totals_only)
{
    using S = scan_type<T>;
    constexpr int kUnroll = 8;
    const int64_t count = job.rows.numel * job.items;
    for (int64_t index = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; index < count;
         index += (int64_t)gridDim.x * blockDim.x) {
        const int64_t item = index / job.rows.numel, row = index - item * job.rows.numel;
        const Place<2> place = job.rows.at(row);
        S *const total = totals ? totals + row * job.items + item : nullptr;
        S sum = total && !totals_only ? *total : S(0);
        const int64_t end = min(job.length, (item + 1) * job.item);
        for (int64_t i = item * job.item; i < end; i += kUnroll) {
            T loaded[kUnroll];
            YOKE_UNROLL
            for (int u = 0; u < kUnroll; u++)
                loaded[u] = i + u < end ? *(const T *)(place.data[1] + (i + u) * job.step[1]) : T{};
            YOKE_UNROLL
            for (int u = 0; u < kUnroll; u++) {
                sum = sum + scan_term(loaded[u], job.of_bools);
                if (!totals_only && i + u < end)
                    *(scan_result<T> *)(place.data[0] + (i + u) * job.step[0]) = scan_sum<T>(sum);
            }
        }
        if (totals_only) *total = sum;
    }
}

// ---- plans ---------------------------------------------------------------------------------------------------------

struct Scan : kernels::ScanRows {
    bool of_bools;

    Scan(const yoke_operand &out, const yoke_operand &x, int axis, bool reverse)
        : ScanRows(out, x, axis, reverse), of_bools(x.dtype == YOKE_BOOL)
    {
    }

    // Returns whether neighbours in memory belong to different rows.
    bool by_columns() const
    {
        const int64_t beside = stride_size(outer.stride[0][1]);
        return outer.numel > 1 && beside && beside < stride_size(step[1]);
    }
};

template <class T>
static bool is_packed(const Scan &scan, const ScanJob &job)
{
    constexpr int64_t kBytes = kScanLength<T> * sizeof(T);
    const int64_t sizes[2] = {sizeof(scan_result<T>), sizeof(T)};
    bool packed = job.item % kScanLength<T> == 0 || job.items == 1;
    for (int i = sizes[0] == sizes[1] ? 0 : 1; i < 2; i++) {
        packed &= scan.step[i] == sizes[i] && is_aligned(scan.outer.data[i], kBytes);
        for (int axis = 0; axis < scan.outer.ndim; axis++)
            packed &= scan.outer.stride[axis][i] % kBytes == 0;
    }
    return packed;
}

constexpr int64_t kScanThreads = 2048 * 256;  // enough for any device

template <class T>
static ScanJob plan_scan(const Scan &scan, int threads, bool by_columns)
{
    ScanJob job{
        Walk<2>(scan.outer), scan.length, {scan.step[0], scan.step[1]}, 1, scan.length, 1, false,
        scan.of_bools};
    const int64_t rows = scan.outer.numel;
    if (by_columns) {
        job.items = max(1, min(kScanThreads / rows, scan.length / 64));
    } else {
        constexpr int64_t N = kScanLength<T>;
        int64_t group = 1;
        while (group < kWarp && group * N < scan.length) group *= 2;
        job.group = scan.length > 8 * kWarp * N ? threads : (int)group;
        if (job.group == threads && rows < kScanThreads / threads / 2)
            job.items = max(1, min(kScanThreads / threads / rows, scan.length / (threads * N * 4)));
    }
    const int64_t whole = by_columns ? 1 : threads * kScanLength<T>;
    if (job.items > 1) job.item = divide_up(divide_up(scan.length, job.items), whole) * whole;
    job.items = divide_up(scan.length, job.item);
    job.packed = is_packed<T>(scan, job);
    return job;
}

template <class T>
static yoke_status scan_all(const yoke_launch *launch, const Scan &scan)
{
    using S = scan_type<T>;
    const int threads = block_size(kThreads);
    const bool by_columns = scan.by_columns();
    const ScanJob job = plan_scan<T>(scan, threads, by_columns);
    const int64_t count = scan.outer.numel * job.items;
    const Grid grid{by_columns || job.group < threads
                        ? blocks_for(launch, count, threads / job.group)
                        : min(count, (int64_t)1 << 30),
                    threads};
    const auto kernel = by_columns ? scan_columns<T> : scan_rows<T>;
    if (job.items == 1) return start(launch, kernel, grid, job, (S *)nullptr, false);
    Scratch scratch(launch);
    if (yoke_status status = scratch.reserve((uint64_t)count * sizeof(S))) return status;
    S *totals = scratch.as<S>();
    if (yoke_status status = start(launch, kernel, grid, job, totals, true)) return status;
    if (yoke_status status =
            start(launch, scan_totals<S>, {scan.outer.numel, threads}, totals, job.items))
        return status;
    return start(launch, kernel, grid, job, totals, false);
}

static yoke_status scan_axis(const yoke_launch *launch, bool reverse)
{
    const yoke_operand &x = launch->operands[0], &out = launch->operands[1];
    if (out.numel == 0) return YOKE_OK;
    const Scan scan(out, x, (int)launch->params[0].v.i, reverse);
    // A bool is read as uint8: a type less to compile.
    return for_number(launch, "x", scan.of_bools ? (yoke_dtype)YOKE_U8 : x.dtype,
                      [&]<class T>() { return scan_all<T>(launch, scan); });
}

YOKE_KERNEL(cumsum)
{
    return scan_axis(launch, false);
}

YOKE_KERNEL(_reverse_cumsum)
{
    return scan_axis(launch, true);
}

YOKE_CUDA_END
