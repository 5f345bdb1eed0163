// Deterministic sums of rows by place: the gradient of all ops that read by index.
//
// Contract
//  * Entries are sorted by place, and the entries of a place are added in their order. First, entries are added
//    within chunks of kChunk sorted entries. Then the sums that cross the edges of chunks are added likewise, until a
//    single chunk is left. The order of additions depends on the entries only.
//  * Halves are added in float and rounded once, together with the old value if the sum is added to it.
#pragma once

#include "kernels/cuda/ops/cub_sort.h"
#include "kernels/cuda/ops/indices.cuh"

YOKE_CUDA_BEGIN

// Places of entries, and the entries' numbers, for kernels.
struct Keys {
    void *key = nullptr;  // uint64_t where `wide`, else uint32_t
    uint32_t *number = nullptr;
    int64_t count = 0;
    uint64_t bound = 0;  // entries of this place or beyond have none
    bool wide = false;

    __device__ uint64_t at(int64_t i) const
    {
        return wide ? ((const uint64_t *)key)[i] : ((const uint32_t *)key)[i];
    }
    __device__ void set(int64_t i, uint64_t place, uint32_t entry) const
    {
        if (wide)
            ((uint64_t *)key)[i] = place;
        else
            ((uint32_t *)key)[i] = (uint32_t)place;
        number[i] = entry;
    }
    // Lists entry i with its place. A negative place means no place.
    __device__ void list(int64_t i, int64_t place) const
    {
        set(i, place < 0 ? bound : (uint64_t)place, (uint32_t)i);
    }
};

class EntryList {
public:
    explicit EntryList(const yoke_launch *launch) : launch_(launch), scratch_(launch) {}
    // Reserves memory for `count` entries of places below `places`. A kernel then calls keys().list() for each entry,
    // and then the caller calls sort(). Fails with YOKE_E_VALUE above kMostPairs entries.
    yoke_status reserve(int64_t count, int64_t places);
    yoke_status sort();
    // Lists and sorts entries in their order. Entries with the place `skipped` get no place.
    yoke_status list(const Places &places, int64_t bound, int64_t skipped);
    const Keys &keys() const { return keys_; }

private:
    const yoke_launch *launch_;
    Scratch scratch_;
    Keys keys_;
};

// Operands of an addition.
struct Addition {
    Loop<2> columns;  // columns of a row: result, then source
    Loop<1> own;      // source: rows by entry
    Loop<1> middle;   // result: rows by place
    bool adds;        // adds to the old value; else the sum replaces it
};

// Adds the source rows of each place's entries, in elements of `dtype`, and writes the sums to the result. Rows
// without entries stay unchanged.
yoke_status sum_entries(const yoke_launch *launch, const EntryList &entries,
                        const Addition &addition, yoke_dtype dtype);

YOKE_CUDA_END
