// Sums of rows by place, deterministic: the gradient of everything that reads by index.
//
// Contract
//  * Entries are sorted by place, and those of one place added in their order: at first within chunks of kChunk sorted
//    entries, then the sums of what crosses the edges of chunks likewise, until one chunk is left. The order of
//    additions depends on nothing but the entries.
//  * Halves are added in float and rounded once, together with what they are added to.
#pragma once

#include "kernels/cuda/ops/cub_sort.h"
#include "kernels/cuda/ops/indices.cuh"

YOKE_CUDA_BEGIN

// The places of entries, and which entries these are, as kernels see them.
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
    // Of an entry in its turn; a negative place is none.
    __device__ void list(int64_t i, int64_t place) const
    {
        set(i, place < 0 ? bound : (uint64_t)place, (uint32_t)i);
    }
};

class EntryList {
public:
    explicit EntryList(const yoke_launch *launch) : launch_(launch), scratch_(launch) {}
    // Room for `count` entries of places below `places`: a kernel calls list() of keys() for each, then sort() is due.
    yoke_status reserve(int64_t count, int64_t places);
    yoke_status sort();
    // Both, of entries as they stand; those of place `skipped` have none.
    yoke_status list(const Places &places, int64_t bound, int64_t skipped);
    const Keys &keys() const { return keys_; }

private:
    const yoke_launch *launch_;
    Scratch scratch_;
    Keys keys_;
};

// What is added to what.
struct Addition {
    Loop<2> columns;  // of a row: what is written, what is read
    Loop<1> own;      // of what is read: rows by entry
    Loop<1> middle;   // of what is written: rows by place
    bool adds;        // to what is there; else the sum takes its place
};

// Of elements of `dtype` on both sides. Rows that no entry names are left alone.
yoke_status sum_entries(const yoke_launch *launch, const EntryList &entries,
                        const Addition &addition, yoke_dtype dtype);

YOKE_CUDA_END
