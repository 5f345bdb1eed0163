// sum, mean, prod, amax, amin, all and any over any set of axes.
#include "kernels/cpu/simd/reduce.h"
#include "kernels/common/prod.h"

YOKE_SIMD_BEGIN

// Computes the sum of floats divided by `divisor`: the mean. If `divisor` is below 0, or for integers, computes the
// plain sum.
template <class T>
static yoke_status add_up(const yoke_launch *launch, int64_t divisor)
{
    kernels::Sum<compute_type<T>> op;
    using State = typename kernels::Sum<compute_type<T>>::State;
    yoke_dtype dtype = launch->operands[1].dtype;
    if (dtype_size(dtype) == 0) return bad_dtype(launch, "the result", dtype);
    return reduce<T>(launch, op, [=](char *out, State state) {
        if constexpr (is_float<T>)
            put_as(dtype, out, op.mean(state, divisor >= 0 ? (double)divisor : 1.0));
        else
            put_as(dtype, out, state);
    });
}

YOKE_KERNEL(sum)
{
    return for_any(launch, "x", launch->operands[0].dtype,
                   [&]<class T>() { return add_up<T>(launch, -1); });
}

YOKE_KERNEL(mean)
{
    const yoke_operand &x = launch->operands[0];
    int64_t divisor = kernels::elements_a_result(x, launch->operands[1]);
    return for_float(launch, "x", x.dtype, [&]<class T>() { return add_up<T>(launch, divisor); });
}

YOKE_KERNEL(prod)
{
    yoke_dtype dtype = launch->operands[1].dtype;
    if (dtype_size(dtype) == 0) return bad_dtype(launch, "the result", dtype);
    return for_any(launch, "x", launch->operands[0].dtype, [&]<class T>() {
        const kernels::Prod<compute_type<T>> op;
        return reduce<T>(launch, op,
                         [=](char *out, auto state) { put_as(dtype, out, op.project(state, 0)); });
    });
}

// Reduces by Extreme, Amax or Amin. If x has no elements and the result has some, returns YOKE_E_VALUE.
template <template <class> class Extreme>
static yoke_status reduce_to_extreme(const yoke_launch *launch, const char *what)
{
    const yoke_operand &x = launch->operands[0];
    if (x.numel == 0 && launch->operands[1].numel > 0)
        return fail(YOKE_E_VALUE, "%s: x has no elements to take the %s of", op_name(launch->op),
                    what);
    return for_any(launch, "x", x.dtype, [&]<class T>() {
        return reduce<T>(launch, Extreme<compute_type<T>>(),
                         [](char *out, compute_type<T> state) { *(T *)out = store<T>(state); });
    });
}

YOKE_KERNEL(amax)
{
    return reduce_to_extreme<kernels::Amax>(launch, "largest");
}

YOKE_KERNEL(amin)
{
    return reduce_to_extreme<kernels::Amin>(launch, "smallest");
}

// Reduces by Truth, All or Any.
template <template <class> class Truth>
static yoke_status reduce_to_bool(const yoke_launch *launch)
{
    return for_any(launch, "x", launch->operands[0].dtype, [&]<class T>() {
        Truth<compute_type<T>> op;
        return reduce<T>(launch, op, [=](char *out, typename Truth<compute_type<T>>::State state) {
            *(bool *)out = op.project(state, 0);
        });
    });
}

YOKE_KERNEL(all)
{
    return reduce_to_bool<kernels::All>(launch);
}

YOKE_KERNEL(any)
{
    return reduce_to_bool<kernels::Any>(launch);
}

YOKE_SIMD_END
