// Common parts of kernels with indices: reads indices of either dtype, and refuses indices out of range before any
// access.
#pragma once

#include "kernels/common/elementwise.h"
#include "kernels/common/index.h"
#include "kernels/common/index_axes.h"
#include "kernels/common/stand_in.h"
#include "kernels/cpu/simd/copy.h"

YOKE_SIMD_BEGIN

#define YOKE_INDEX_DTYPES(CASE) CASE(YOKE_I64, int64_t) CASE(YOKE_I32, int32_t)
YOKE_DISPATCHER(for_index_dtype, YOKE_INDEX_DTYPES)

// Integer tensor, and the axis of its positions.
struct Indices {
    const yoke_operand &operand;
    const char *name;  // "index", for the error
    int64_t length;    // length of the axis
    bool wraps;        // negative ones count from the end
};

// Returns YOKE_OK, or reports the first index out of range, in row-major order, and returns YOKE_E_INDEX.
yoke_status check_indices(const yoke_launch *launch, const Indices &indices);

using kernels::axis_length;
using kernels::axis_step;
using kernels::row_major;

// A sum of this many floats, one after another, loses little more than rounding does.
constexpr int64_t kFewAdditions = 256;
// Additions for each element of the result from which a float64 copy of the result costs little in comparison.
constexpr int64_t kManyAdditions = 4;

// Counter of how often an index names each element. It detects elements named far more than kFewAdditions times. It
// looks at one name of each kNames, and elements share counters: a false alarm is harmless.
class Tally {
public:
    explicit Tally(const yoke_launch *launch) : scratch_(launch) {}
    // Allocates counters for this many names, all 0.
    yoke_status start(int64_t names);
    // Counts a sample of n names, the first of which has number `first`. Any thread may call this. offset_of(i) is
    // the offset of the element with name i.
    template <class Offset>
    void count(int64_t first, int64_t n, const Offset &offset_of)
    {
        if (is_often()) return;
        for (int64_t group = first / kNames;; group++) {
            const int64_t i = group * kNames + looked_at(group) - first;
            if (i >= n || (i >= 0 && add(offset_of(i)))) return;
        }
    }
    bool is_often() const { return __atomic_load_n(&is_often_, __ATOMIC_RELAXED); }

private:
    static constexpr int kNameBits = 4;
    static constexpr int64_t kNames = 1 << kNameBits;
    static constexpr int kOften = kFewAdditions / kNames;

    static uint64_t mixed(int64_t number) { return (uint64_t)number * 0x9e3779b97f4a7c15; }
    // Returns which name of a group is counted; the same for all threads. The choice has no period that an index
    // could match.
    static int64_t looked_at(int64_t group) { return (int64_t)(mixed(group) >> (64 - kNameBits)); }
    bool add(int64_t offset)
    {
        uint16_t *count = counts_ + (mixed(offset) >> shift_);
        const int before = is_alone_ ? (*count)++ : __atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
        if (before < kOften) return false;
        __atomic_store_n(&is_often_, true, __ATOMIC_RELAXED);
        return true;
    }

    Scratch scratch_;
    uint16_t *counts_ = nullptr;
    int shift_ = 0;
    bool is_alone_ = false, is_often_ = false;
};

// Adds x to a sum that is kept as K.
template <class T, class K>
inline void add_to(char *sum, const char *x)
{
    *(K *)sum = kernels::added(*(const K *)sum, convert<K>(*(const T *)x));
}

// Number of additions of an op, and the largest number of additions to a single element.
struct Additions {
    int64_t all, to_one;
};

// Target of an op that adds into a copy of x. For most dtypes this is the result itself, which first gets x's values
// unless it is x. Halves have a float32 copy, so a sum is rounded once. Floats have a float64 copy if an element may
// get far more than kFewAdditions additions: a float32 of 2^24 would not grow by ones. finish() converts a copy into
// the result.
class Sum {
public:
    Sum(const yoke_launch *launch, const yoke_operand &out, const Additions &additions)
        : launch_(launch), out_(out), scratch_(launch), sum_(out)
    {
        const bool is_narrow =
            out.dtype == YOKE_F16 || out.dtype == YOKE_BF16 || out.dtype == YOKE_F32;
        const bool may_lose = is_narrow && additions.to_one > kFewAdditions;
        is_wide_ = may_lose && additions.all >= kManyAdditions * out.numel;
        wants_tally_ = may_lose && !is_wide_;
    }
    // Returns whether an element may get many additions, but the copy would cost much in comparison. Then a `Tally`
    // decides whether the copy is needed.
    bool wants_tally() const { return wants_tally_; }
    void take(const Tally &tally) { is_wide_ = tally.is_often(); }
    // Calls f.operator()<K>() with the type K in which sums of T are kept.
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
    bool is_wide_, wants_tally_;
};

YOKE_SIMD_END
