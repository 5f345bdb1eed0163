// masked_fill, tril and triu: elements that are kept or replaced.
#include "kernels/cpu/simd/copy.h"
#include "kernels/cpu/simd/indices.h"
#include "kernels/cpu/simd/map.h"
#include "kernels/cpu/simd/run.h"

YOKE_SIMD_BEGIN

// The value is a script's number or a tensor without axes: in either case a single element in memory.
YOKE_KERNEL(masked_fill)
{
    const yoke_operand &x = launch->operands[0], &mask = launch->operands[1],
                       &value = launch->operands[2], &out = launch->operands[3];
    if (mask.dtype != YOKE_BOOL) return bad_dtype(launch, "mask", mask.dtype);
    return for_size(launch, "x", dtype_size(x.dtype), [&]<class T>() {
        return map<T, T, bool8>(kernels::MaskedFill<T>{*data_of<T>(value)}, kGrain, out, x, mask);
    });
}

// Copies x row by row of the last axis. Elements outside of the triangle become 0.
template <class T, class Triangle>
static void copy_triangle(const yoke_operand &out, const yoke_operand &x, int64_t diagonal)
{
    int64_t rows = x.shape[x.ndim - 2], columns = x.shape[x.ndim - 1];
    Loop<2> lines;
    plan_ordered<2>(lines, {&out, &x}, 0, x.ndim - 1);
    const int64_t steps[2] = {axis_step(out, x.ndim - 1), axis_step(x, x.ndim - 1)};
    parallel_range(lines.numel, max(1, kGrain / max(1, columns)), [&](int64_t begin, int64_t end) {
        Cursor<2> line(lines, begin);
        for (; begin < end; begin++, line.advance(lines, 0, 1)) {
            const kernels::Kept kept = Triangle()(begin % rows, columns, diagonal);
            char *to = line.data[0];
            char *part[2] = {to + kept.first * steps[0], line.data[1] + kept.first * steps[1]};
            for (int64_t i = 0; i < kept.first; i++) *(T *)(to + i * steps[0]) = T(0);
            copy_run(part, steps, kept.last - kept.first, sizeof(T));
            for (int64_t i = kept.last; i < columns; i++) *(T *)(to + i * steps[0]) = T(0);
        }
    });
}

template <class Triangle>
static yoke_status triangle(const yoke_launch *launch)
{
    const yoke_operand &x = launch->operands[0], &out = launch->operands[1];
    return for_size(launch, "x", dtype_size(x.dtype), [&]<class T>() {
        copy_triangle<T, Triangle>(out, x, launch->params[0].v.i);
        return (yoke_status)YOKE_OK;
    });
}

YOKE_KERNEL(tril)
{
    return triangle<kernels::LowerTriangle>(launch);
}

YOKE_KERNEL(triu)
{
    return triangle<kernels::UpperTriangle>(launch);
}

YOKE_SIMD_END
