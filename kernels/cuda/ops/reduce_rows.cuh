// Reductions of rows: elements of a result lie next to each other, or are too few for anything better than a thread
// for each result. See reduce.cuh.
#pragma once

#include "kernels/cuda/ops/reduce_fold.cuh"

YOKE_CUDA_BEGIN

struct RowJob {
    Walk<kSides> kept;
    Walk<1> reduced;
    int64_t items, item;  // items of a result, and their length
    int group;            // threads of one item: a power of two up to the warp, or the block
    bool packed;          // runs go in packs
    int dtype, size;      // data type and item size of x
};

// Combines the states of a group's threads. The group's first thread gets the result.
template <class Op>
__device__ inline typename Op::State join_group(const Op &op, typename Op::State state, int group)
{
    auto combine = [&](const typename Op::State &a, const typename Op::State &b) {
        return op.combine(a, b);
    };
    if (group == (int)blockDim.x) return reduce_block(state, op.init(), combine);
    YOKE_NO_UNROLL
    for (int distance = group / 2; distance > 0; distance /= 2)
        state = combine(state, shuffle_down(state, distance));
    return state;
}

// Elements [begin, end) of a result, as a thread of a group sees them.
template <class In, class Op>
struct RowReader {
    using Element = typename Op::Element;
    static constexpr int N = kAtOnce<typename In::Value>;
    static constexpr int kUnroll = sizeof(Stored<In, N>) > 32 ? 2 : kLoadsAtOnce<In, Op>;
    const Op &op;
    const RowJob &job;
    const char *x;
    int in_group;
    Fold<Op, 4> fold;

    __device__ const char *at(int64_t i) const
    {
        const Walk<1> &reduced = job.reduced;
        if (reduced.ndim == 1) return x + i * reduced.stride[0][0];
        return x + (reduced.at(i).data[0] - reduced.data[0]);
    }

    // Takes the thread's elements of [begin, end), at any strides.
    __device__ void take_each(int64_t begin, int64_t end)
    {
        const int group = job.group;
        int64_t i = begin + in_group;
        for (; i + (kUnroll - 1) * group < end; i += kUnroll * group) {
            Stored<In, 1> stored[kUnroll];
            YOKE_UNROLL
            for (int u = 0; u < kUnroll; u++) stored[u].load(at(i + u * group), job.size);
            take_stored(stored, i, group);
        }
        for (; i < end; i += group) take_one(at(i), i);
    }

    __device__ void take_one(const char *from, int64_t i)
    {
        Stored<In, 1> stored[1];
        stored[0].load(from, job.size);
        take_stored(stored, i, 1);
    }

    // Takes loaded packs, `step` elements apart; the first pack begins at element i.
    template <int kLoads, int kEach>
    __device__ void take_stored(const Stored<In, kEach> (&stored)[kLoads], int64_t i, int64_t step)
    {
        if constexpr (kLooksTwice<Op> || kEach == 1) {
            Element loaded[kLoads * kEach];
            YOKE_UNROLL
            for (int u = 0; u < kLoads; u++) elements_of(stored[u], loaded + u * kEach);
            fold.template take<kLoads * kEach>(op, loaded, i, step);
        } else {
            YOKE_UNROLL
            for (int u = 0; u < kLoads; u++) {
                Element loaded[kEach];
                elements_of(stored[u], loaded);
                fold.template take<kEach>(op, loaded, i + u * step, 1);
            }
        }
    }

    template <int kEach>
    __device__ void elements_of(const Stored<In, kEach> &stored, Element *to) const
    {
        typename In::Value values[kEach];
        stored.unpack(job.dtype, values);
        YOKE_UNROLL
        for (int k = 0; k < kEach; k++) to[k] = op.element(values[k]);
    }

    // Takes kPacks packs, each as far apart as a group's packs are long. The first pack begins at element i.
    template <int kPacks>
    __device__ void take_packs(const char *from, int64_t i)
    {
        const int64_t step = job.group * N;
        Stored<In, N> packs[kPacks];
        YOKE_UNROLL
        for (int u = 0; u < kPacks; u++) packs[u].load(from, job.size, u * step, N / 2);
        take_stored(packs, i, step);
    }

    // Takes n elements without gaps, from element i on. Aligned packs are loaded at once; elements before and after
    // them go one by one.
    __device__ void take_run(const char *from, int64_t i, int64_t n)
    {
        const int64_t size = job.size, bytes = min(16, N * size), group = job.group;
        const int64_t beyond = (int64_t)((uintptr_t)from % (uintptr_t)bytes) / size;
        const int64_t head = min(n, beyond ? bytes / size - beyond : 0), packs = (n - head) / N;
        for (int64_t k = in_group; k < head; k += group) take_one(from + k * size, i + k);
        int64_t p = in_group;
        for (; p + (kUnroll - 1) * group < packs; p += kUnroll * group)
            take_packs<kUnroll>(from + (head + p * N) * size, i + head + p * N);
        for (; p < packs; p += group) take_packs<1>(from + (head + p * N) * size, i + head + p * N);
        for (int64_t k = head + packs * N + in_group; k < n; k += group)
            take_one(from + k * size, i + k);
    }

    // Takes the thread's elements of [begin, end), if the innermost axis has no gaps.
    __device__ void take_runs(int64_t begin, int64_t end)
    {
        const int64_t length = job.reduced.shape[0];
        for (int64_t i = begin, n; i < end; i += n) {
            n = end - i;
            if (job.reduced.ndim > 1) n = min(n, length - i % length);
            take_run(at(i), i, n);
        }
    }
};

template <class In, class Op>
__global__ void reduce_rows(RowJob job, Op given, typename Op::State *parts)
{
    const int in_group = (int)threadIdx.x % job.group, per_block = (int)blockDim.x / job.group;
    const int64_t total = job.kept.numel * job.items;
    for (int64_t first = (int64_t)blockIdx.x * per_block; first < total;
         first += (int64_t)gridDim.x * per_block) {
        const int64_t index = first + (int)threadIdx.x / job.group;
        const bool inside = index < total;
        const int64_t row = job.items == 1 ? index : index / job.items;
        const Place<kSides> place = job.kept.at(inside ? row : 0);
        const Op op = op_at(given, place);
        RowReader<In, Op> reader{op, job, place.data[kX], in_group, {}};
        reader.fold.begin(op);
        if (inside) {
            const int64_t begin = (index - row * job.items) * job.item;
            const int64_t end = min(job.reduced.numel, begin + job.item);
            if (job.packed)
                reader.take_runs(begin, end);
            else
                reader.take_each(begin, end);
        }
        const auto state = join_group(op, reader.fold.finish(op), job.group);
        if (!inside || in_group) continue;
        if (parts)
            parts[index] = state;
        else
            op.put(place.data[kResult], state);
    }
}

// Returns whether rows consist of runs that are long enough for a group's packs of n elements.
inline bool has_runs(const RowJob &job, int64_t n)
{
    if (job.reduced.stride[0][0] != job.size) return false;
    return job.reduced.ndim == 1 || job.reduced.shape[0] >= (job.group / 2 + 1) * n;
}

// Plans a reduction of rows. If `alone`, each result has a thread. Otherwise a result has enough threads that each
// thread loads four packs, so loads overlap. Long rows are cut into items.
template <class In>
inline RowJob plan_rows(const ReduceAxes &axes, int threads, bool alone)
{
    constexpr int64_t N = kAtOnce<typename In::Value>;
    RowJob job{
        Walk<kSides>(axes.kept),   Walk<1>(axes.reduced),      1, axes.reduced.numel, 1, false,
        as_format<In>(axes.dtype), (int)dtype_size(axes.dtype)};
    if (alone) return job;
    const int64_t length = axes.reduced.numel, rows = axes.kept.numel;
    const int64_t packs = divide_up(length, N), wanted = power_of_two_from(divide_up(packs, 4));
    if (wanted <= kWarp || (rows >= 2 * kReduceBlocks && packs <= kLongestRun * kWarp)) {
        job.group = (int)min(kWarp, max(wanted, min(4, power_of_two_from(packs))));
        job.packed = has_runs(job, N);
        return job;
    }
    job.group = (int)min(threads, wanted);
    job.packed = has_runs(job, N);
    const int64_t least = job.group * N * 4, most = job.group * N * kLongestRun;
    int64_t items = max(1, min(kReduceBlocks / rows, length / least));
    items = max(items, divide_up(length, most));
    if (items == 1) return job;
    job.item = divide_up(divide_up(length, items), job.group * N) * job.group * N;
    job.items = divide_up(length, job.item);
    return job;
}

YOKE_CUDA_END
