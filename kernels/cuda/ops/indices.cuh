// Common parts of kernels with indices: reads indices of either dtype, reports indices out of range, and describes
// x[before…, indices…, behind…].
//
// Contract
//  * An entry is an element of the index tensors, by its row-major number. Its place is its row-major number along
//    the indexed axes, or -1 if an index is out of range. Such an index is reported (fault.h), and no memory is
//    accessed: a read gives 0, and a write is dropped.
//  * Entries of the same place are written, or added, in their order.
#pragma once

#include "kernels/common/index.h"
#include "kernels/common/index_axes.h"
#include "kernels/cuda/host/fault.h"
#include "kernels/cuda/ops/walk.cuh"

YOKE_CUDA_BEGIN

// Returns the bytes from a walk's beginning to its element `number`, in an operand.
template <int N>
__device__ inline int64_t offset_in(const Walk<N> &walk, int64_t number, int operand = 0)
{
    return walk.at(number).data[operand] - walk.data[operand];
}

using kernels::axis_length;
using kernels::axis_step;

// Places of entries: an index along one axis, or the places found from several indices.
struct Places {
    const char *data;
    int64_t step;  // bytes from an entry to the next
    int64_t count;
    bool wide;           // int64
    bool wraps;          // negative indices count from the end
    bool found;          // places are there, not indices
    int64_t length;      // length of the axis
    int64_t spread = 1;  // elements of the index operand from an entry to the next, for the report
    Reporter reporter;

    __device__ int64_t at(int64_t entry) const { return at(data + entry * step, entry); }
    // Returns the place of an entry whose index lies at `from`. Reports an index out of range and returns -1.
    __device__ int64_t at(const char *from, int64_t entry) const
    {
        const int64_t index = wide ? *(const int64_t *)from : *(const int32_t *)from;
        if (found) return index;
        if (kernels::is_inside(index, length, wraps)) return kernels::resolved(index, length);
        report(reporter, entry * spread, index, length);
        return -1;
    }
};

// Messages about an index out of range; see reporter() in fault.h.
struct Wording {
    const char *outside, *empty;
};
inline constexpr Wording kIndexWording = {
    "%1$s: index%2$s is %3$lld; along an axis of length %4$lld use 0 to %5$lld",
    "%1$s: index%2$s is %3$lld, but the axis is empty"};
inline constexpr Wording kWrappingWording = {
    "%1$s: the index%2$s is %3$lld; along an axis of length %4$lld use -%4$lld to %5$lld",
    "%1$s: the index%2$s is %3$lld, but the axis is empty"};

// Returns YOKE_OK for an index dtype. Otherwise reports the failure to the core and returns it.
inline yoke_status check_index_dtype(const yoke_launch *launch, const yoke_operand &index)
{
    return index.dtype == YOKE_I64 || index.dtype == YOKE_I32
               ? (yoke_status)YOKE_OK
               : bad_dtype(launch, "index", index.dtype);
}

// Places for `count` index tensors of one shape, beside axes of these lengths. Negative indices wrap if `wraps`.
class PlaceList {
public:
    explicit PlaceList(const yoke_launch *launch) : launch_(launch), scratch_(launch) {}
    yoke_status find(const yoke_operand *indices, int count, const int64_t *lengths,
                     const Wording &wording, bool wraps);
    const Places &places() const { return places_; }

private:
    const yoke_launch *launch_;
    Scratch scratch_;
    Places places_{};
};

// Blocks for copies between x and an operand of the shape [before…, entries…, behind…].
struct Blocks {
    Loop<2> before, behind;  // first the operand written, then the operand read
    Loop<1> middle;          // x: the places
    Loop<1> own;             // the other operand: the entries
};

// Copies blocks with elements of `size` bytes, from x if `takes`, else to x. A place of -1 reads as 0, and is not
// written.
yoke_status move_blocks(const yoke_launch *launch, const Blocks &blocks, const Places &places,
                        int64_t size, bool takes);

// Copies blocks with elements of `size` bytes to x. Of several entries with the same place, the last writes.
yoke_status write_blocks(const yoke_launch *launch, const Blocks &blocks, const Places &places,
                         int64_t size);

YOKE_CUDA_END
