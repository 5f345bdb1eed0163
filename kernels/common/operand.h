// Contents of a launch record as kernels read them: dtypes as types, operands, parameters.
//
// Contract: host code. YOKE_DISPATCHERS defines for_float, for_number, for_any and for_size in the namespace of a
// backend. The backend has bad_dtype(launch, operand, dtype). Each dispatcher calls f.operator()<T>() with the type
// of a dtype.
#pragma once

#include "core/backend/backend.h"
#include "kernels/common/numeric.h"

YOKE_KERNELS_BEGIN

// ---- dtypes -----------------------------------------------------------------------------------------------------

#define YOKE_NUMBER_TYPES(CASE) YOKE_FLOAT_TYPES(CASE) YOKE_INTEGER_TYPES(CASE)
#define YOKE_ALL_TYPES(CASE) YOKE_NUMBER_TYPES(CASE) YOKE_BOOL_TYPES(CASE)
// All dtypes that can be stored and cast, also dtypes without arithmetic.
#define YOKE_STORED_TYPES(CASE) \
    YOKE_ALL_TYPES(CASE) YOKE_STORED_FLOAT_TYPES(CASE) YOKE_STORED_INTEGER_TYPES(CASE)
// Types for code that only moves elements: any type of the same size serves.
#define YOKE_SIZE_TYPES(CASE) CASE(8, uint64_t) CASE(4, uint32_t) CASE(2, uint16_t) CASE(1, uint8_t)

#define YOKE_TYPE_CASE(value, type) \
    case value:                     \
        return f.template operator()<type>();

// Defines a function that calls f.operator()<T>() with the type T of a dtype. For other dtypes the function returns
// bad_dtype(), whose message names `operand`.
#define YOKE_DISPATCHER(name, TYPES)                                                              \
    template <class F>                                                                            \
    inline yoke_status name(const yoke_launch *launch, const char *operand, int64_t dtype, F &&f) \
    {                                                                                             \
        switch (dtype) {                                                                          \
            TYPES(YOKE_TYPE_CASE)                                                                 \
            default:                                                                              \
                return bad_dtype(launch, operand, (yoke_dtype)dtype);                             \
        }                                                                                         \
    }
#define YOKE_DISPATCHERS                             \
    YOKE_DISPATCHER(for_integer, YOKE_INTEGER_TYPES) \
    YOKE_DISPATCHER(for_float, YOKE_FLOAT_TYPES)     \
    YOKE_DISPATCHER(for_number, YOKE_NUMBER_TYPES)   \
    YOKE_DISPATCHER(for_any, YOKE_ALL_TYPES)         \
    YOKE_DISPATCHER(for_stored, YOKE_STORED_TYPES)   \
    YOKE_DISPATCHER(for_size, YOKE_SIZE_TYPES)

// The dtype that a type stores.
template <class T>
inline constexpr yoke_dtype dtype_of = YOKE_NONE;
#define YOKE_DTYPE_OF(value, type) \
    template <>                    \
    inline constexpr yoke_dtype dtype_of<type> = value;
YOKE_STORED_TYPES(YOKE_DTYPE_OF)
#undef YOKE_DTYPE_OF

// Returns the bytes of an element; 0 for an unknown dtype.
inline int64_t dtype_size(yoke_dtype dtype)
{
#define YOKE_SIZE_CASE(value, type) \
    case value:                     \
        return sizeof(type);
    switch (dtype) {
        YOKE_STORED_TYPES(YOKE_SIZE_CASE)
        default:
            return 0;
    }
#undef YOKE_SIZE_CASE
}

// ---- operands and parameters ------------------------------------------------------------------------------------

template <class T>
inline T *data_of(const yoke_operand &operand)
{
    return static_cast<T *>(operand.data);
}

// Returns whether the elements are a single row-major run without gaps. An operand with at most one element is such a
// run.
inline bool is_contiguous(const yoke_operand &operand)
{
    return (operand.flags & YOKE_OPERAND_CONTIGUOUS) || operand.numel <= 1;
}

inline bool is_present(const yoke_operand &operand)
{
    return operand.flags != 0;
}

inline double float_param(const yoke_arg &arg)
{
    return arg.kind == YOKE_ARG_FLOAT ? arg.v.f : (double)arg.v.i;
}

// Returns a number of a script as T.
template <class T>
inline T value_of(const yoke_arg &arg)
{
    return arg.kind == YOKE_ARG_FLOAT ? convert<T>(arg.v.f) : convert<T>(arg.v.i);
}

// Returns a bound as T. If the bound is missing or out of range, returns the end of T.
template <class T>
inline compute_type<T> bound_of(const yoke_arg &arg, bool is_upper)
{
    if (arg.kind == YOKE_ARG_FLOAT) return load<T>(convert<T>(arg.v.f));
    if (arg.kind == YOKE_ARG_NONE && is_float<T>)
        return (compute_type<T>)(is_upper ? __builtin_inf() : -__builtin_inf());
    if (arg.kind == YOKE_ARG_NONE) return load<T>(convert<T>(is_upper ? 1e30 : -1e30));
    if (is_float<T> || sizeof(T) == 8) return load<T>(convert<T>(arg.v.i));
    return load<T>(convert<T>((double)arg.v.i));  // a double beyond the ends of T gives the end
}

YOKE_KERNELS_END
