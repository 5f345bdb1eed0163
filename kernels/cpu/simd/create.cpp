// _arange and _eye: tensors made from their indices alone.
#include <cstring>

#include "kernels/cpu/simd/iterate.h"

YOKE_SIMD_BEGIN

// Sets each element i of the vector x to f(i), by the team.
template <class T, class F>
static yoke_status generate(const yoke_operand &x, const F &f)
{
    T *data = data_of<T>(x);
    int64_t stride = is_contiguous(x) ? 1 : x.strides[0];
    parallel_range(x.numel, kGrain, [&](int64_t begin, int64_t end) {
        if (stride == 1)
            for (int64_t i = begin; i < end; i++) data[i] = f(i);
        else
            for (int64_t i = begin; i < end; i++) data[i * stride] = f(i);
    });
    return YOKE_OK;
}

// Writes start + i * step to each element i. Integers are computed in int64 (wrapping), floats in double and rounded
// once.
YOKE_KERNEL(_arange)
{
    const yoke_operand &x = launch->operands[0];
    const yoke_arg &start = launch->params[0], &step = launch->params[1];
    if (x.ndim != 1) return fail(YOKE_E_VALUE, "_arange: x has %d axes; it must have 1", x.ndim);
    return for_any(launch, "x", x.dtype, [&]<class T>() {
        if (start.kind != YOKE_ARG_FLOAT && step.kind != YOKE_ARG_FLOAT) {
            uint64_t from = (uint64_t)start.v.i, by = (uint64_t)step.v.i;
            return generate<T>(
                x, [=](int64_t i) { return convert<T>((int64_t)(from + (uint64_t)i * by)); });
        }
        double from = float_param(start), by = float_param(step);
        return generate<T>(x, [=](int64_t i) { return convert<T>(from + (double)i * by); });
    });
}

YOKE_KERNEL(_eye)
{
    const yoke_operand &x = launch->operands[0];
    if (x.ndim != 2) return fail(YOKE_E_VALUE, "_eye: x has %d axes; it must have 2", x.ndim);
    return for_any(launch, "x", x.dtype, [&]<class T>() {
        int64_t columns = x.shape[1],
                rows = columns ? x.shape[0] : 0;  // no loop over 2^40 rows without elements
        T one = convert<T>((int64_t)1), zero = convert<T>((int64_t)0);
        parallel_range(rows, max(1, kGrain / max(1, columns)), [&](int64_t begin, int64_t end) {
            for (int64_t r = begin; r < end; r++) {
                T *row = data_of<T>(x) + r * x.strides[0];
                for (int64_t c = 0; c < columns; c++) row[c * x.strides[1]] = c == r ? one : zero;
            }
        });
        return (yoke_status)YOKE_OK;
    });
}

YOKE_SIMD_END
