// draws.h: places of draws in streams of random numbers, and the ranges of random numbers.
#pragma once

#include "core/base/random.h"
#include "core/ops/family.h"

namespace yoke {

// Reserves the counters for a draw of `elements` in the generator's stream, or in the calling thread's stream without
// a generator. Returns their start. Raises YOKE_E_STATE for a generator while the thread captures a graph.
RandomState reserve_random(int64_t elements, yoke_generator *generator, const char *call);

// Whole numbers from `least` to `most`, all of them exact in a dtype.
struct WholeRange {
    int64_t least, most;
};

// Returns the range of a dtype. A float with a fraction of n bits has every whole number up to 2^(n + 1). Beyond,
// rounding could draw `high` itself, or infinity.
WholeRange whole_range(yoke_dtype dtype);

// Raises YOKE_E_VALUE unless low < high, and the dtype holds all whole numbers in [low, high).
void check_range(int64_t low, int64_t high, yoke_dtype dtype, const char *call);

// Raises YOKE_E_VALUE unless `std` is a standard deviation: finite, 0 or more.
void check_deviation(double std, const char *call);

}  // namespace yoke
