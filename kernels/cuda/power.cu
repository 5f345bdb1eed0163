// Powers and their gradients.
#include "kernels/common/elementwise.h"
#include "kernels/cuda/fault.h"
#include "kernels/cuda/map.cuh"

YOKE_CUDA_BEGIN

// The exponent of all elements if it is a script's 2 or 3, which are products; else 0.
template <class T>
static int small_power(const yoke_operand &y)
{
    if (!is_float<T> || !(y.flags & YOKE_OPERAND_SCALAR)) return 0;
    const compute_type<T> exponent = load<T>(Input<T>(y).number);
    return exponent == 2 ? 2 : exponent == 3 ? 3 : 0;
}

// An integer's negative power is no integer: it is told, and the element is 0.
template <class T>
struct CheckedPower {
    Reporter reporter;
    __device__ T operator()(T x, T y) const
    {
        if (std::is_signed_v<T> && y < T(0)) {
            report(reporter, (int64_t)y, 0, 0);
            return T(0);
        }
        return kernels::Pow()(x, y);
    }
};

YOKE_KERNEL(pow)
{
    const yoke_operand *x = launch->operands;
    return for_number(launch, "x", x[0].dtype, [&]<class T>() {
        if constexpr (is_float<T>) {
            switch (small_power<T>(x[1])) {
                case 2:
                    return map<T>(launch, x[2], Stored<T, kernels::Square>{}, Input<T>(x[0]));
                case 3:
                    return map<T>(launch, x[2], Stored<T, kernels::Cube>{}, Input<T>(x[0]));
                default:
                    return binary<T, kernels::Pow>(launch);
            }
        } else {
            const Reporter to =
                reporter(launch,
                         "%s: an exponent is %lld, and a negative power of an integer is no "
                         "integer; cast x to a floating dtype",
                         YOKE_E_VALUE);
            return map<T>(launch, x[2], CheckedPower<T>{to}, Input<T>(x[0]), Input<T>(x[1]));
        }
    });
}

YOKE_KERNEL(_pow_backward)
{
    const yoke_operand *x = launch->operands;
    return for_float(launch, "grad", x[0].dtype, [&]<class T>() {
        switch (small_power<T>(x[2])) {
            case 2:
                return map<T>(launch, x[3], Stored<T, kernels::SquareBackward>{}, Input<T>(x[0]),
                              Input<T>(x[1]));
            case 3:
                return map<T>(launch, x[3], Stored<T, kernels::CubeBackward>{}, Input<T>(x[0]),
                              Input<T>(x[1]));
            default:
                return ternary<T, kernels::PowBackward>(launch);
        }
    });
}

YOKE_KERNEL(_pow_exponent_backward)
{
    const yoke_operand *x = launch->operands;
    return for_float(launch, "x", x[0].dtype, [&]<class T>() {
        return map<T>(launch, x[4], Stored<T, kernels::PowExponentBackward>{}, Input<T>(x[0]),
                      Input<T>(x[1]), Input<T>(x[2]), Input<T>(x[3]));
    });
}

YOKE_CUDA_END
