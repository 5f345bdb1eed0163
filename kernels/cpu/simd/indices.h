// What the kernels that go by index share: reading indices of either dtype, and refusing those out of range before
// anything is read or written.
#pragma once

#include "kernels/common/elementwise.h"
#include "kernels/common/index.h"
#include "kernels/common/index_axes.h"
#include "kernels/common/stand_in.h"
#include "kernels/cpu/simd/copy.h"

YOKE_SIMD_BEGIN

#define YOKE_INDEX_DTYPES(CASE) CASE(YOKE_I64, int64_t) CASE(YOKE_I32, int32_t)
YOKE_DISPATCHER(for_index_dtype, YOKE_INDEX_DTYPES)

// An integer tensor and the axis whose positions it names.
struct Indices {
    const yoke_operand &operand;
    const char *name;  // "index", for the error
    int64_t length;    // of the axis
    bool wraps;        // negative ones count from the end
};

// YOKE_OK, or YOKE_E_INDEX naming the first index that is out of range, in row-major order.
yoke_status check_indices(const yoke_launch *launch, const Indices &indices);

using kernels::axis_length;
using kernels::axis_step;
using kernels::row_major;

// sum += x, of sums as Sum, below, keeps them.
template <class T>
inline void add_to(char *sum, const char *x)
{
    using K = kernels::sum_kept<T>;
    *(K *)sum = kernels::added(*(const K *)sum, convert<K>(*(const T *)x));
}

// What an op that adds into a copy of x adds into: the result itself, which gets x's values unless it is x; for
// halves a float32 copy, so that a sum is rounded once. finish() brings that into the result.
class Sum {
public:
    Sum(const yoke_launch *launch, const yoke_operand &out)
        : launch_(launch), out_(out), scratch_(launch), sum_(out)
    {
    }
    yoke_status start(const yoke_operand &x);
    yoke_status finish();
    const yoke_operand &operand() const { return sum_; }

private:
    const yoke_launch *launch_;
    const yoke_operand &out_;
    Scratch scratch_;
    yoke_operand sum_;
    int64_t strides_[YOKE_MAX_NDIM];
};

YOKE_SIMD_END
