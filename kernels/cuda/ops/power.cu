// Powers and their gradients.
#include "kernels/common/elementwise.h"
#include "kernels/cuda/host/fault.h"
#include "kernels/cuda/ops/map.cuh"

YOKE_CUDA_BEGIN

using Products = OneOf<kernels::Square, kernels::Cube>;
using ProductsBackward = OneOf<kernels::SquareBackward, kernels::CubeBackward>;

// Returns the exponent of all elements if it is a script's number 2 or 3, because these powers are products; else 0.
static int small_power(const yoke_launch *launch, const yoke_operand &y)
{
    if (!(y.flags & YOKE_OPERAND_SCALAR)) return 0;
    double exponent = 0;
    (void)for_float(launch, "y", y.dtype, [&]<class T>() {
        T number;
        memcpy(&number, &y.immediate, sizeof(T));
        exponent = (double)load<T>(number);
        return (yoke_status)YOKE_OK;
    });
    return exponent == 2 ? 2 : exponent == 3 ? 3 : 0;
}

// Power of integers. A negative power is not an integer: it is reported, and the element is 0.
struct CheckedPower {
    static constexpr bool kIsSeldom = true;
    Reporter reporter;
    __device__ int64_t operator()(int64_t x, int64_t y) const
    {
        if (y < 0) {
            report(reporter, y, 0, 0);
            return 0;
        }
        return call_apart<int64_t>(kernels::Pow(), x, y);
    }
};

YOKE_KERNEL(pow)
{
    const yoke_operand *x = launch->operands;
    return for_number_format(launch, "x", x[0].dtype, [&]<class In>() {
        if constexpr (std::is_same_v<In, Integers>) {
            const Reporter to = reporter(
                launch,
                "%s: an exponent is %lld, and a negative power of an integer is not an integer; cast x to a floating dtype",
                YOKE_E_VALUE);
            return binary<In>(launch, CheckedPower{to});
        } else {
            switch (small_power(launch, x[1])) {
                case 2:
                    return map<In>(launch, x[2], Products::of<kernels::Square>(), x[0]);
                case 3:
                    return map<In>(launch, x[2], Products::of<kernels::Cube>(), x[0]);
                default:
                    return binary<In>(launch, Seldom<kernels::Pow>());
            }
        }
    });
}

YOKE_KERNEL(_pow_backward)
{
    const yoke_operand *x = launch->operands;
    return for_float_format(launch, "grad", x[0].dtype, [&]<class In>() {
        switch (small_power(launch, x[2])) {
            case 2:
                return map<In>(launch, x[3], ProductsBackward::of<kernels::SquareBackward>(), x[0],
                               x[1]);
            case 3:
                return map<In>(launch, x[3], ProductsBackward::of<kernels::CubeBackward>(), x[0],
                               x[1]);
            default:
                return ternary<In>(launch, Seldom<kernels::PowBackward>());
        }
    });
}

YOKE_KERNEL(_pow_exponent_backward)
{
    const yoke_operand *x = launch->operands;
    return for_float_format(launch, "x", x[0].dtype, [&]<class In>() {
        return map<In>(launch, x[4], Seldom<kernels::PowExponentBackward>(), x[0], x[1], x[2],
                       x[3]);
    });
}

YOKE_CUDA_END
