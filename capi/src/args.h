// args.h: conversion of C arguments of the functions in ops.cpp to the core's argument list.
//
// The converters run outside the guard, so they cannot raise. An invalid argument becomes an entry of a negative
// kind, and call() turns the entry into the error. A good call pays an OR per argument for this.
#pragma once

#include "core/ops/op_def.h"
#include "yoke/types.h"

#include <array>
#include <climits>
#include <vector>

namespace yoke::capi {

// Kinds below zero, distinct only for the message.
enum BadKind : int32_t {
    kBadNull = INT32_MIN,  // NULL where something is needed
    kBadItem,              // item `count` of a list of tensors is NULL
    kBadCount,             // v.i is no length of a list
    kBadItems,             // NULL with a length of v.i
    kBadScalar,            // v.i is no kind of a scalar
};

inline yoke_arg make_arg(int32_t kind, int32_t count = 0)
{
    return {kind, count, {}};
}
inline yoke_arg make_bad(BadKind kind, int64_t number, int32_t count = 0)
{
    return {kind, count, {.i = number}};
}

inline yoke_arg to_tensor(yoke_tensor *x)
{
    return {x ? YOKE_ARG_TENSOR : kBadNull, 0, {.tensor = x}};
}
inline yoke_arg to_optional_tensor(yoke_tensor *x)
{
    return {x ? YOKE_ARG_TENSOR : YOKE_ARG_NONE, 0, {.tensor = x}};
}
inline yoke_arg to_int(int64_t i)
{
    return {YOKE_ARG_INT, 0, {.i = i}};
}
inline yoke_arg to_optional_int(const int64_t *i)
{
    return i ? to_int(*i) : make_arg(YOKE_ARG_NONE);
}
inline yoke_arg to_float(double f)
{
    return {YOKE_ARG_FLOAT, 0, {.f = f}};
}
inline yoke_arg to_bool(int32_t b)
{
    return {YOKE_ARG_BOOL, 0, {.i = b != 0}};
}
inline yoke_arg to_string(const char *text)
{
    return {text ? YOKE_ARG_STRING : kBadNull, 0, {.string = text}};
}
inline yoke_arg to_device(yoke_device *device)
{
    return {device ? YOKE_ARG_DEVICE : YOKE_ARG_NONE, 0, {.device = device}};
}
inline yoke_arg to_generator(yoke_generator *generator)
{
    return {generator ? YOKE_ARG_GENERATOR : YOKE_ARG_NONE, 0, {.generator = generator}};
}
inline yoke_arg to_scalar(const yoke_scalar *x)
{
    if (!x) return make_arg(kBadNull);
    const bool scalar =
        x->kind == YOKE_ARG_BOOL || x->kind == YOKE_ARG_INT || x->kind == YOKE_ARG_FLOAT;
    return scalar ? *x : make_bad(kBadScalar, x->kind);
}
inline yoke_arg to_optional_scalar(const yoke_scalar *x)
{
    return x ? to_scalar(x) : make_arg(YOKE_ARG_NONE);
}
inline yoke_arg to_ints(const int64_t *items, int64_t count)
{
    if (count < 0 || count > INT32_MAX) return make_bad(kBadCount, count);
    if (!items && count) return make_bad(kBadItems, count);
    return {YOKE_ARG_INTS, static_cast<int32_t>(count), {.ints = items}};
}
inline yoke_arg to_optional_ints(const int64_t *items, int64_t count)
{
    // NULL with a count is no absent list but a lost one.
    return items || count ? to_ints(items, count) : make_arg(YOKE_ARG_NONE);
}
inline yoke_arg to_optional_floats(const double *items, int64_t count)
{
    if (count < 0 || count > INT32_MAX) return make_bad(kBadCount, count);
    if (!items && count) return make_bad(kBadItems, count);
    return {
        items ? YOKE_ARG_FLOATS : YOKE_ARG_NONE, static_cast<int32_t>(count), {.floats = items}};
}
inline yoke_arg to_tensors(yoke_tensor *const *items, int64_t count)
{
    if (count < 0 || count > INT32_MAX) return make_bad(kBadCount, count);
    if (!items && count) return make_bad(kBadItems, count);
    for (int32_t i = 0; i < count; ++i)
        if (!items[i]) return make_bad(kBadItem, 0, i);
    return {YOKE_ARG_TENSORS, static_cast<int32_t>(count), {.tensors = items}};
}

// Runs an op for the C function `name`. Results go to `outs`; after a failure `outs` are NULL.
yoke_status run_call(const char *name, int32_t op, yoke_arg *args, int arg_count,
                     yoke_tensor **const *outs, int out_count) noexcept;

// Runs an op with a list of results for the C function `name`, and puts the results into `outs`. *count receives
// their number. Fails without a result if `capacity` is too small.
yoke_status run_list_call(const char *name, int32_t op, yoke_arg *args, int arg_count,
                          yoke_tensor **outs, int64_t capacity, int64_t *count) noexcept;

template <size_t N>
yoke_status call_list(const char *name, int32_t op, yoke_arg (&args)[N], yoke_tensor **outs,
                      int64_t capacity, int64_t *count) noexcept
{
    return run_list_call(name, op, args, N, outs, capacity, count);
}

// Runs an op whose results are a list, for a caller with space for `capacity` results. If the space is too small,
// raises before any result is made. *count is set. `call` is the name in the message.
void give_list(int32_t op, yoke_arg *args, yoke_tensor **outs, int64_t capacity, int64_t *count,
               const char *call);

template <size_t N, class... Outs>
yoke_status call(const char *name, int32_t op, yoke_arg (&args)[N], Outs... outs) noexcept
{
    const std::array<yoke_tensor **, sizeof...(outs)> places{outs...};
    return run_call(name, op, args, N, places.data(), sizeof...(outs));
}

}  // namespace yoke::capi
