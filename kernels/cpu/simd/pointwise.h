// Macros for elementwise kernels: a line for each op, over a functor of kernels/common.
//
// Contract
//  * YOKE_UNARY, YOKE_BINARY, YOKE_COMPARISON and YOKE_TEST define the kernel of a line of pointwise_ops.h.
#pragma once

#include "kernels/common/pointwise_ops.h"
#include "kernels/cpu/simd/map.h"

YOKE_SIMD_BEGIN

// An exp or an erf costs some ten additions, so it is worth sharing sooner.
constexpr int64_t kCostlyGrain = 4096;

template <class T, class F>
inline yoke_status unary(const yoke_launch *launch, int64_t grain, F f = F())
{
    const yoke_operand *x = launch->operands;
    return map<T, T>(Stored<T, F>{f}, grain, x[1], x[0]);
}

template <class T, class F>
inline yoke_status binary(const yoke_launch *launch, int64_t grain, F f = F())
{
    const yoke_operand *x = launch->operands;
    return map<T, T, T>(Stored<T, F>{f}, grain, x[2], x[0], x[1]);
}

template <class T, class F>
inline yoke_status ternary(const yoke_launch *launch, int64_t grain, F f = F())
{
    const yoke_operand *x = launch->operands;
    return map<T, T, T, T>(Stored<T, F>{f}, grain, x[3], x[0], x[1], x[2]);
}

// Functor that gives a bool for stored values.
template <class L, class F>
struct ToldAs {
    F f;
    template <class... A>
    YOKE_HD bool operator()(A... a) const
    {
        return f(load<L>(a)...);
    }
};

template <class T, class F>
inline yoke_status test(const yoke_launch *launch)
{
    using L = loop_type<T>;
    return map<bool, L>(ToldAs<L, F>{}, kGrain, launch->operands[1], launch->operands[0]);
}

template <class T, class F>
inline yoke_status comparison(const yoke_launch *launch)
{
    using L = loop_type<T>;
    const yoke_operand *x = launch->operands;
    return map<bool, L, L>(ToldAs<L, F>{}, kGrain, x[2], x[0], x[1]);
}

#define YOKE_POINTWISE(name, types, grain, call)                                               \
    YOKE_KERNEL(name)                                                                          \
    {                                                                                          \
        return types(launch, "x", launch->operands[0].dtype, [&]<class T>() { return call; }); \
    }
#define YOKE_UNARY(name, types, F, grain) \
    YOKE_POINTWISE(name, types, grain, (unary<T, kernels::F>(launch, grain)))
#define YOKE_BINARY(name, types, F, grain) \
    YOKE_POINTWISE(name, types, grain, (binary<T, kernels::F>(launch, grain)))
#define YOKE_TEST(name, F) YOKE_POINTWISE(name, for_any, kGrain, (test<T, kernels::F>(launch)))
#define YOKE_COMPARISON(name, F) \
    YOKE_POINTWISE(name, for_any, kGrain, (comparison<T, kernels::F>(launch)))

YOKE_SIMD_END
