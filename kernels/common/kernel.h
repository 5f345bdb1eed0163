// Names that the kernels of every backend use unqualified, and arithmetic of whole numbers.
#pragma once

#include "kernels/common/operand.h"

YOKE_KERNELS_BEGIN

// ---- names ------------------------------------------------------------------------------------------------------

// Declares these names in the namespace of a backend's kernels.
#define YOKE_KERNEL_NAMES           \
    using kernels::bf16;            \
    using kernels::bool8;           \
    using kernels::compute_type;    \
    using kernels::convert;         \
    using kernels::data_of;         \
    using kernels::divide_up;       \
    using kernels::dtype_size;      \
    using kernels::f16;             \
    using kernels::float_param;     \
    using kernels::is_contiguous;   \
    using kernels::is_float;        \
    using kernels::is_half;         \
    using kernels::is_present;      \
    using kernels::is_run_or_value; \
    using kernels::load;            \
    using kernels::max;             \
    using kernels::min;             \
    using kernels::store;           \
    YOKE_MADE_TYPES(YOKE_USING_TYPE)
#define YOKE_USING_TYPE(name, ...) using kernels::name;

// ---- whole numbers ----------------------------------------------------------------------------------------------

YOKE_HD constexpr int64_t min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

YOKE_HD constexpr int64_t max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

YOKE_HD constexpr int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

// ---- operands ---------------------------------------------------------------------------------------------------

// Returns whether an operand is a contiguous run of n elements, or a single value. Most operands of small launches
// are.
inline bool is_run_or_value(const yoke_operand &operand, int64_t n)
{
    return operand.numel == 1 || (operand.numel == n && is_contiguous(operand));
}

YOKE_KERNELS_END
