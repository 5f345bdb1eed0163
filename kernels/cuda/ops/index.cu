// index_select, _index and index_put: elements named by integer tensors along neighbouring axes of x.
//
// Blocks are copied in units as wide as alignment permits, up to 16 bytes. If two entries may write the same place, a
// table holds the last entry of each place. Only this entry writes.
#include "kernels/cuda/host/failures.h"
#include "kernels/cuda/ops/copy_strided.cuh"
#include "kernels/cuda/ops/indices.cuh"
#include "kernels/cuda/ops/segment_sum.cuh"

YOKE_CUDA_BEGIN

// ---- places ---------------------------------------------------------------------------------------------------------

// Adds an index tensor: places along the earlier axes become places along these axes and the next axis. An entry with
// an index out of range gets -1.
__global__ void find_places(int64_t *found, Walk<1> index, Places source, bool first)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < source.count;
         i += (int64_t)gridDim.x * blockDim.x) {
        const int64_t before = first ? 0 : found[i], at = source.at(index.at(i).data[0], i);
        found[i] = before < 0 || at < 0 ? -1 : before * source.length + at;
    }
}

yoke_status PlaceList::find(const yoke_operand *indices, int count, const int64_t *lengths,
                            const Wording &wording, bool wraps)
{
    const int64_t n = indices[0].numel;
    int64_t *found = nullptr;
    for (int i = 0; i < count; i++) {
        const yoke_operand &index = indices[i];
        if (const yoke_status status = check_index_dtype(launch_, index)) return status;
        Loop<1> loop;
        kernels::plan_ordered<1>(loop, {&index}, 0, index.ndim);
        places_ = {loop.data[0],
                   loop.stride[0][0],
                   n,
                   index.dtype == YOKE_I64,
                   wraps,
                   false,
                   lengths[i],
                   1,
                   reporter(launch_, lengths[i] == 0 ? wording.empty : wording.outside, index)};
        if (n == 0 || (count == 1 && loop.ndim == 1)) return YOKE_OK;
        if (i == 0) {
            if (const yoke_status status = scratch_.reserve((uint64_t)n * sizeof(int64_t)))
                return status;
            found = scratch_.as<int64_t>();
        }
        const int threads = block_size(kThreads);
        const Grid grid{blocks_for(launch_, n, threads), threads};
        if (const yoke_status status =
                start(launch_, find_places, grid, found, Walk<1>(loop), places_, i == 0))
            return status;
    }
    places_.data = reinterpret_cast<const char *>(found);
    places_.step = sizeof(int64_t);
    places_.wide = places_.found = true;
    return YOKE_OK;
}

// ---- the last of several writers ------------------------------------------------------------------------------------

// A hash table of places; free slots are 0. Entries are numbered from 1.
struct Writers {
    unsigned long long *place = nullptr, *last = nullptr;
    uint64_t slots = 0;           // a power of two
    uint64_t *slot_of = nullptr;  // by entry; null: every entry writes

    __device__ bool writes(int64_t entry) const
    {
        return !slot_of || last[slot_of[entry]] == (unsigned long long)entry + 1;
    }
};

__global__ void claim_places(Writers writers, Places places)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < places.count;
         i += (int64_t)gridDim.x * blockDim.x) {
        const int64_t at = places.at(i);
        if (at < 0) continue;
        const unsigned long long wanted = (unsigned long long)at + 1;
        uint64_t slot = ((uint64_t)wanted * 0x9e3779b97f4a7c15ull >> 20) & (writers.slots - 1);
        for (;; slot = (slot + 1) & (writers.slots - 1)) {
            const unsigned long long held = atomicCAS(&writers.place[slot], 0ull, wanted);
            if (held == 0 || held == wanted) break;
        }
        atomicMax(&writers.last[slot], (unsigned long long)i + 1);
        writers.slot_of[i] = slot;
    }
}

static yoke_status find_writers(const yoke_launch *launch, const Places &places, Scratch &scratch,
                                Writers &writers)
{
    uint64_t slots = 2;
    while (slots < 2 * (uint64_t)places.count) slots *= 2;
    const uint64_t bytes = 2 * slots * sizeof(unsigned long long);
    if (const yoke_status status =
            scratch.reserve(bytes + (uint64_t)places.count * sizeof(uint64_t)))
        return status;
    writers.place = scratch.as<unsigned long long>();
    writers.last = writers.place + slots;
    writers.slots = slots;
    writers.slot_of = reinterpret_cast<uint64_t *>(writers.last + slots);
    const cudaError_t error =
        cudaMemsetAsync(writers.place, 0, bytes, static_cast<cudaStream_t>(launch->stream));
    if (error != cudaSuccess)
        return call_failed(launch, error, "cudaMemsetAsync of %llu bytes",
                           (unsigned long long)bytes);
    const int threads = block_size(kThreads);
    return start(launch, claim_places, {blocks_for(launch, places.count, threads), threads},
                 writers, places);
}

// ---- copies of blocks -----------------------------------------------------------------------------------------------

constexpr int kUnitsAtOnce = 4;

struct Move {
    Walk<2> before, behind;
    Walk<1> middle, own;
    Split by_behind, by_count;
    bool takes;
    int64_t units;

    Move(const Blocks &blocks, int64_t count, bool is_taken)
        : before(blocks.before),
          behind(blocks.behind),
          middle(blocks.middle),
          own(blocks.own),
          by_behind(behind.numel, before.numel * count * behind.numel),
          by_count(count, before.numel * count),
          takes(is_taken),
          units(before.numel * count * behind.numel)
    {
    }

    // Returns where a unit is written and where it is read. Both are null if nothing is written; the second is null
    // if 0 is written.
    __device__ Place<2> at(int64_t unit, const Places &places, const Writers &writers) const
    {
        const int64_t row = by_behind.quotient(unit), outer = by_count.quotient(row);
        const int64_t entry = row - outer * by_count.length, at = places.at(entry);
        if (at < 0 ? !takes : !writers.writes(entry)) return {{nullptr, nullptr}};
        Place<2> place = before.at(outer);
        const Place<2> inner = behind.at(unit - row * by_behind.length);
        for (int i = 0; i < 2; i++) place.data[i] += inner.data[i] - behind.data[i];
        const int64_t of_x = at < 0 ? 0 : offset_in(middle, at), of_other = offset_in(own, entry);
        place.data[0] += takes ? of_other : of_x;
        place.data[1] += takes ? of_x : of_other;
        if (at < 0) place.data[1] = nullptr;
        return place;
    }
};

template <class U>
__global__ void move_units(Move move, Places places, Writers writers)
{
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t first = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; first < move.units;
         first += kUnitsAtOnce * step) {
        Place<2> place[kUnitsAtOnce];
        U unit[kUnitsAtOnce];
        YOKE_UNROLL
        for (int k = 0; k < kUnitsAtOnce; k++)
            place[k] = first + k * step < move.units ? move.at(first + k * step, places, writers)
                                                     : Place<2>{{nullptr, nullptr}};
        YOKE_UNROLL
        for (int k = 0; k < kUnitsAtOnce; k++)
            unit[k] = place[k].data[1] ? *(const U *)place[k].data[1] : U{};
        YOKE_UNROLL
        for (int k = 0; k < kUnitsAtOnce; k++)
            if (place[k].data[0]) *(U *)place[k].data[0] = unit[k];
    }
}

template <int N>
static bool divides(int64_t unit, const Loop<N> &loop, int first)
{
    for (int axis = first; axis < loop.ndim; axis++)
        for (int i = 0; i < N; i++)
            if (loop.stride[axis][i] % unit) return false;
    return true;
}

// Divides blocks into the widest units with which all blocks are aligned. Returns the bytes of a unit.
static int64_t widen(Blocks &blocks, int64_t size)
{
    Loop<2> &behind = blocks.behind;
    const int64_t run = behind.shape[0] * size;
    if (behind.stride[0][0] != size || behind.stride[0][1] != size) return size;
    int64_t unit = 16;
    for (; unit > size; unit /= 2)
        if (run % unit == 0 && is_aligned(blocks.before.data[0], unit) &&
            is_aligned(blocks.before.data[1], unit) && divides<2>(unit, behind, 1) &&
            divides<2>(unit, blocks.before, 0) && divides<1>(unit, blocks.middle, 0) &&
            divides<1>(unit, blocks.own, 0))
            break;
    behind.numel = behind.numel / behind.shape[0] * (run / unit);
    behind.shape[0] = run / unit;
    behind.stride[0][0] = behind.stride[0][1] = unit;
    return unit;
}

template <class U>
static yoke_status start_move(const yoke_launch *launch, const Move &move, const Places &places,
                              const Writers &writers)
{
    if (move.units == 0) return YOKE_OK;
    const int threads = block_size(kThreads);
    return start(launch, move_units<U>,
                 {blocks_for(launch, move.units, kUnitsAtOnce * threads), threads}, move, places,
                 writers);
}

static yoke_status move_all(const yoke_launch *launch, Blocks blocks, const Places &places,
                            int64_t size, bool takes, const Writers &writers)
{
    const int64_t unit = widen(blocks, size);
    const Move move(blocks, places.count, takes);
    if (unit == 16) return start_move<Pack<uint64_t, 2>>(launch, move, places, writers);
    return for_size(launch, "x", unit,
                    [&]<class U>() { return start_move<U>(launch, move, places, writers); });
}

yoke_status move_blocks(const yoke_launch *launch, const Blocks &blocks, const Places &places,
                        int64_t size, bool takes)
{
    return move_all(launch, blocks, places, size, takes, Writers());
}

// ---- the ops --------------------------------------------------------------------------------------------------------

// Returns the blocks of x and of an operand that broadcasts to [before…, entries…, behind…]. If `takes`, x is read,
// else x is written.
static Blocks blocks_of(const yoke_operand &x, const yoke_operand &other, int first, int count,
                        const yoke_operand &index, bool takes)
{
    const kernels::IndexedBlocks beside(x, other, first, count, index, !takes);
    Blocks blocks{beside.before, beside.behind, {}, beside.entries};
    kernels::plan_ordered<1>(blocks.middle, {&x}, first, first + count);
    return blocks;
}

static yoke_status take(const yoke_launch *launch, const Wording &wording, bool wraps)
{
    const yoke_operand &x = launch->operands[0], *indices = launch->operands + 1;
    const int first = (int)launch->params[0].v.i, count = launch->operand_count - 2;
    const yoke_operand &out = indices[count];
    PlaceList list(launch);
    if (const yoke_status status = list.find(indices, count, x.shape + first, wording, wraps))
        return status;
    return move_blocks(launch, blocks_of(x, out, first, count, indices[0], true), list.places(),
                       dtype_size(x.dtype), true);
}

YOKE_KERNEL(_index)
{
    return take(launch, kWrappingWording, true);
}

YOKE_KERNEL(index_select)
{
    return take(launch, kIndexWording, false);
}

// Returns whether all entries write the same values, because the values do not move along the entries.
static bool is_same_for_all(const Loop<1> &own)
{
    for (int axis = 0; axis < own.ndim; axis++)
        if (own.shape[axis] != 1 && own.stride[axis][0] != 0) return false;
    return true;
}

yoke_status write_blocks(const yoke_launch *launch, const Blocks &blocks, const Places &places,
                         int64_t size)
{
    Writers writers;
    Scratch table(launch);
    if (places.count > 1 && !is_same_for_all(blocks.own))
        if (const yoke_status status = find_writers(launch, places, table, writers)) return status;
    return move_all(launch, blocks, places, size, false, writers);
}

static yoke_status add_values(const yoke_launch *launch, const Blocks &blocks, const Places &places,
                              const yoke_operand &out)
{
    Loop<2> columns = blocks.before;
    columns.ndim = 0;
    columns.numel = 1;
    for (const Loop<2> *loop : {&blocks.before, &blocks.behind})
        for (int axis = 0; axis < loop->ndim; axis++)
            add_axis<2>(columns, loop->shape[axis], loop->stride[axis]);
    finish_loop<2>(columns);
    EntryList entries(launch);
    if (const yoke_status status = entries.list(places, blocks.middle.numel, -1)) return status;
    return sum_entries(launch, entries, {columns, blocks.own, blocks.middle, true}, out.dtype);
}

// Parameters: whether values are added, the first indexed axis, and whether negative indices count from the end.
YOKE_KERNEL(index_put)
{
    const yoke_operand &x = launch->operands[0], *indices = launch->operands + 1;
    const int first = (int)launch->params[1].v.i, count = launch->operand_count - 3;
    const bool wraps = launch->params[2].v.i != 0;
    const yoke_operand &values = indices[count], &out = indices[count + 1];
    if (out.data != x.data)
        if (const yoke_status status = copy_operand(launch, out, x)) return status;
    PlaceList list(launch);
    if (const yoke_status status = list.find(indices, count, x.shape + first,
                                             wraps ? kWrappingWording : kIndexWording, wraps))
        return status;
    if (list.places().count == 0 || out.numel == 0) return YOKE_OK;
    const Blocks blocks = blocks_of(out, values, first, count, indices[0], false);
    if (launch->params[0].v.i == 0)
        return write_blocks(launch, blocks, list.places(), dtype_size(out.dtype));
    return add_values(launch, blocks, list.places(), out);
}

YOKE_CUDA_END
