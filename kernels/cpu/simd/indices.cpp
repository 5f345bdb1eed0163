#include "kernels/cpu/simd/indices.h"

#include <cstring>

YOKE_SIMD_BEGIN

// Returns 1 if one of n indices is out of range, which lie `step` bytes apart.
template <class I>
static int one_outside(const char *first, int64_t step, int64_t n, const Indices &indices)
{
    const int64_t length = indices.length, lowest = indices.wraps ? -length : 0;
    int bad = 0;
    if (step == sizeof(I)) {
        const I *index = (const I *)first;
#pragma omp simd reduction(| : bad)
        for (int64_t i = 0; i < n; i++) bad |= (index[i] < lowest) | (index[i] >= length);
        return bad;
    }
    for (int64_t i = 0; i < n; i++) {
        const int64_t index = *(const I *)(first + i * step);
        bad |= (index < lowest) | (index >= length);
    }
    return bad;
}

template <class I>
static bool all_inside(const Indices &indices)
{
    // Along an axis that stands still, one element is looked at.
    yoke_operand once = indices.operand;
    int64_t shape[YOKE_MAX_NDIM];
    for (int axis = 0; axis < once.ndim; axis++)
        shape[axis] = once.strides[axis] == 0 ? min(once.shape[axis], 1) : once.shape[axis];
    once.shape = shape;
    Loop<1> loop;
    plan_loop<1>(loop, {&once});
    int outside = 0;
    parallel_range(loop.numel, kGrain, [&](int64_t begin, int64_t end) {
        walk<1>(loop, begin, end, [&](char *const *data, const int64_t *stride, int64_t n) {
            if (one_outside<I>(data[0], stride[0], n, indices))
                __atomic_store_n(&outside, 1, __ATOMIC_RELAXED);
        });
    });
    return !outside;
}

template <class I>
static yoke_status fail_first(const yoke_launch *launch, const Indices &indices)
{
    const yoke_operand &operand = indices.operand;
    Loop<1> loop;
    plan_ordered<1>(loop, {&operand}, 0, operand.ndim);
    Cursor<1> cursor(loop, 0);
    int64_t place = 0, lowest = indices.wraps ? -indices.length : 0;
    while (place + 1 < operand.numel &&
           kernels::is_inside((int64_t) * (const I *)cursor.data[0], indices.length, indices.wraps))
        place++, cursor.advance(loop, 0, 1);
    const long long value = (long long)*(const I *)cursor.data[0];
    const char *op = op_name(launch->op);
    op += *op == '_';
    char at[160];
    kernels::write_place(operand.shape, operand.ndim, place, at, sizeof(at));
    if (indices.length == 0)
        return fail(YOKE_E_INDEX, "%s: %s%s is %lld, but the axis is empty", op, indices.name, at,
                    value);
    return fail(YOKE_E_INDEX, "%s: %s%s is %lld; along an axis of length %lld use %lld to %lld", op,
                indices.name, at, value, (long long)indices.length, (long long)lowest,
                (long long)indices.length - 1);
}

yoke_status check_indices(const yoke_launch *launch, const Indices &indices)
{
    if (indices.operand.numel == 0) return YOKE_OK;
    return for_index_dtype(launch, indices.name, indices.operand.dtype, [&]<class I>() {
        return all_inside<I>(indices) ? (yoke_status)YOKE_OK : fail_first<I>(launch, indices);
    });
}

yoke_status Tally::start(int64_t names)
{
    int bits = 8;
    while ((kNames << bits) < names) bits++;
    const uint64_t bytes = sizeof(uint16_t) << bits;
    if (yoke_status status = scratch_.reserve(bytes)) return status;
    counts_ = scratch_.as<uint16_t>();
    memset(counts_, 0, bytes);
    shift_ = 64 - bits;
    is_alone_ = team_size() == 1;
    return YOKE_OK;
}

yoke_status Sum::start(const yoke_operand &x)
{
    const bool is_half = out_.dtype == YOKE_F16 || out_.dtype == YOKE_BF16;
    if (is_wide_ || is_half) {
        const yoke_dtype dtype = is_wide_ ? YOKE_F64 : YOKE_F32;
        const uint64_t bytes = (uint64_t)(out_.numel * dtype_size(dtype));
        if (yoke_status status = scratch_.reserve(bytes)) return status;
        sum_ = row_major(out_, scratch_.data(), dtype, strides_);
    }
    return sum_.data == x.data ? (yoke_status)YOKE_OK : copy_operand(launch_, sum_, x);
}

yoke_status Sum::finish()
{
    return sum_.data == out_.data ? (yoke_status)YOKE_OK : copy_operand(launch_, out_, sum_);
}

YOKE_SIMD_END
