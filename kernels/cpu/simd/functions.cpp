// Elementwise functions beyond arithmetic, and their slopes, over any strides.
#include "kernels/common/named.h"
#include "kernels/common/nan_to_num.h"
#include "kernels/cpu/simd/pointwise.h"

YOKE_SIMD_BEGIN

YOKE_FUNCTION_OPS(YOKE_UNARY, YOKE_BINARY)

YOKE_KERNEL(nan_to_num)
{
    return for_any(launch, "x", launch->operands[0].dtype, [&]<class T>() {
        return unary<T>(launch, kGrain, kernels::nan_to_num_of<T>(launch->params));
    });
}

// A name that no slope has cannot arrive: only the core calls these kernels.
#define YOKE_SLOPE(name, F) \
    if (kernels::is_text(of, name)) return binary<T, kernels::F>(launch, kCostlyGrain);
YOKE_KERNEL(_slope)
{
    const yoke_arg &of = launch->params[0];
    return for_float(launch, "x", launch->operands[1].dtype, [&]<class T>() {
        YOKE_SLOPES(YOKE_SLOPE)
        return fail(YOKE_E_INTERNAL, "slope: there is no function '%s'", of.v.string);
    });
}

#define YOKE_PAIR_SLOPE(name, F) \
    if (kernels::is_text(of, name)) return ternary<T, kernels::F>(launch, kCostlyGrain);
YOKE_KERNEL(_pair_slope)
{
    const yoke_arg &of = launch->params[0];
    return for_float(launch, "grad", launch->operands[0].dtype, [&]<class T>() {
        YOKE_PAIR_SLOPES(YOKE_PAIR_SLOPE)
        return fail(YOKE_E_INTERNAL, "pair_slope: there is no function '%s'", of.v.string);
    });
}

YOKE_SIMD_END
