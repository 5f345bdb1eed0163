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

constexpr int64_t kSmallSum = 65536, kManyAdditions = 4;

// sum += x, of sums that are kept as K.
template <class T, class K>
inline void add_to(char *sum, const char *x)
{
    *(K *)sum = kernels::added(*(const K *)sum, convert<K>(*(const T *)x));
}

// What an op that adds into a copy of x adds into: the result itself, which gets x's values unless it is x; for
// halves a float32 copy, so that a sum is rounded once. Floats have a float64 copy where that is small, or there are
// many additions for each element: a float32 of 2^24 would not grow by ones. finish() brings a copy into the result.
class Sum {
public:
    Sum(const yoke_launch *launch, const yoke_operand &out, int64_t additions)
        : launch_(launch), out_(out), scratch_(launch), sum_(out)
    {
        const bool is_narrow =
            out.dtype == YOKE_F16 || out.dtype == YOKE_BF16 || out.dtype == YOKE_F32;
        is_wide_ = is_narrow && (out.numel <= kSmallSum || additions >= kManyAdditions * out.numel);
    }
    // Calls f.operator()<K>() with what sums of T are kept as.
    template <class T, class F>
    yoke_status for_kept(const F &f) const
    {
        using Kept = kernels::sum_kept<T>;
        if constexpr (std::is_same_v<Kept, float>)
            if (is_wide_) return f.template operator()<double>();
        return f.template operator()<Kept>();
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
    bool is_wide_;
};

YOKE_SIMD_END
