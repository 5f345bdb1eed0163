// sum, mean and amax over any set of axes.
#include "kernels/cpu/simd/reduce.h"

YOKE_SIMD_BEGIN

// A state in the result's dtype, which may be wider or narrower than x's.
template <class State>
static void put_as(yoke_dtype dtype, char *out, State state)
{
#define YOKE_PUT(value, type)                \
    case value:                              \
        *(type *)out = convert<type>(state); \
        break;
    switch (dtype) {
        YOKE_ALL_TYPES(YOKE_PUT)
        default:
            break;  // refused before the first element
    }
#undef YOKE_PUT
}

// sum, or with mean's divisor the mean.
template <class T>
static yoke_status add_up(const yoke_launch *launch, int64_t divisor)
{
    kernels::Sum<T> op;
    using State = typename kernels::Sum<T>::State;
    yoke_dtype dtype = launch->operands[1].dtype;
    if (dtype_size(dtype) == 0) return bad_dtype(launch, "the result", dtype);
    return reduce<T>(launch, op, [=](char *out, State state) {
        if (divisor >= 0) {
            if constexpr (is_float<T>) state = state / (State)divisor;
        }
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
    int64_t results = launch->operands[1].numel;
    int64_t divisor = results ? x.numel / results : 0;
    return for_float(launch, "x", x.dtype, [&]<class T>() { return add_up<T>(launch, divisor); });
}

YOKE_KERNEL(amax)
{
    const yoke_operand &x = launch->operands[0];
    if (x.numel == 0 && launch->operands[1].numel > 0)
        return fail(YOKE_E_VALUE, "amax: x has no elements to take the largest of");
    return for_any(launch, "x", x.dtype, [&]<class T>() {
        return reduce<T>(launch, kernels::Amax<T>(),
                         [](char *out, compute_type<T> state) { *(T *)out = store<T>(state); });
    });
}

YOKE_SIMD_END
